"""Data sets by name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, overload

from hamflow import datasets
from hamflow.errors import InputError

if TYPE_CHECKING:
    from hamflow.datasets.pair_dataset import PairDataset
    from hamflow.datasets.synthetic import SyntheticDataset

_Path = str | os.PathLike[str]

PairDatasetName = Literal[
    "chairs",
    "folder",
    "hd1k",
    "kitti2012",
    "kitti2015",
    "middlebury",
    "middlebury-stereo",
    "sintel",
    "spring",
    "things",
]
DatasetName = Literal[PairDatasetName, "synthetic"]

# The public class of each in this package.
_CLASSES = {
    "chairs": "FlyingChairsDataset",
    "folder": "FolderDataset",
    "hd1k": "Hd1kDataset",
    "kitti2012": "Kitti2012Dataset",
    "kitti2015": "Kitti2015Dataset",
    "middlebury": "MiddleburyDataset",
    "middlebury-stereo": "MiddleburyStereoDataset",
    "sintel": "SintelDataset",
    "spring": "SpringDataset",
    "synthetic": "SyntheticDataset",
    "things": "FlyingThingsDataset",
}


@overload
def open_dataset(
    name: PairDatasetName,
    root: _Path,
    *,
    subset: float | str | Iterable[str] | None = None,
    **options: Any,
) -> PairDataset: ...
@overload
def open_dataset(
    name: Literal["synthetic"], root: _Path | None = None, **options: Any
) -> SyntheticDataset: ...
@overload
def open_dataset(
    name: str, root: _Path | None = None, **options: Any
) -> PairDataset | SyntheticDataset: ...
def open_dataset(
    name: str, root: _Path | None = None, **options: Any
) -> PairDataset | SyntheticDataset:
    """Open a data set, by default its part for training. Nothing is ever downloaded.

    Parameters
    ----------
    name : str
        One of chairs (FlyingChairs), folder (pairs of one's own), hd1k, kitti2012, kitti2015,
        middlebury (flow), middlebury-stereo (as flow), sintel, spring, synthetic (rendered on
        demand), and things (FlyingThings3D).
    root : str or os.PathLike
        Its folder, laid out as it is published. For synthetic, a folder of photographs, or none.
    subset : float, str or iterable of str, optional
        A share of the pairs, evenly sampled (see `PairDataset.evenly`), or names of pairs or
        groups (see `PairDataset.subset`). Not for synthetic.
    **options
        What the class of the data set takes, such as ``split="test"`` or ``pass_="final"``.

    Returns
    -------
    dataset : PairDataset or SyntheticDataset
        A sequence of pairs with ``image0``, ``image1``, ``flow`` and ``occluded``.

    Raises
    ------
    InputError
        If the name or an option is unknown, an option has a wrong value, or the root is missing.
    FileError
        If a file of the data set is missing.

    Examples
    --------
    >>> import tempfile
    >>> from hamflow.datasets import SyntheticConfig, open_dataset
    >>> from hamflow.datasets.synthetic import write_sintel
    >>> with tempfile.TemporaryDirectory() as root:
    ...     report = write_sintel(root, SyntheticConfig(height=32, width=48), 2)
    ...     data = open_dataset("sintel", root, pass_="final", subset="scene_00001")
    ...     data.names
    ('scene_00001/frame_0001',)
    """
    known = dataset_options(name)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(
            f"The data set {name} has no option {unknown[0]!r}; possible are {', '.join(known)}."
        )
    if root is None and name != "synthetic":
        raise InputError(f"The data set {name} needs its root, the folder that it is in.")
    subset = options.pop("subset", None)
    root_name = "folder" if name == "synthetic" else "root"
    dataset = _class_of(name)(**{root_name: root}, **options)
    if subset is None:
        return dataset  # type: ignore[no-any-return]
    part = dataset.evenly if isinstance(subset, Real) else dataset.subset
    return part(subset)  # type: ignore[no-any-return]


def dataset_options(name: str) -> list[str]:
    """Return the options that `open_dataset` takes for a data set."""
    known = [
        o for o in inspect.signature(_class_of(name)).parameters if o not in ("root", "folder")
    ]
    return known if name == "synthetic" else [*known, "subset"]


def _class_of(name: str) -> Any:
    if name not in _CLASSES:
        raise InputError(f"There is no data set {name!r}; known are {', '.join(_CLASSES)}.")
    return getattr(datasets, _CLASSES[name])
