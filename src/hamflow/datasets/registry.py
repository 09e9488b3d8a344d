"""Data sets by name. A new one is one file and one line in `DATASETS`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from numbers import Real
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, overload

from hamflow.errors import InputError

if TYPE_CHECKING:
    from hamflow.datasets.pair_dataset import PairDataset
    from hamflow.datasets.synthetic import SyntheticDataset

_Path = str | os.PathLike[str]

DATASETS = {
    "chairs": "hamflow.datasets.chairs:FlyingChairsDataset",
    "folder": "hamflow.datasets.folder:FolderDataset",
    "hd1k": "hamflow.datasets.hd1k:Hd1kDataset",
    "kitti2012": "hamflow.datasets.kitti:Kitti2012Dataset",
    "kitti2015": "hamflow.datasets.kitti:Kitti2015Dataset",
    "middlebury": "hamflow.datasets.middlebury:MiddleburyDataset",
    "middlebury-stereo": "hamflow.datasets.middlebury_stereo:MiddleburyStereoDataset",
    "sintel": "hamflow.datasets.sintel:SintelDataset",
    "spring": "hamflow.datasets.spring:SpringDataset",
    "synthetic": "hamflow.datasets.synthetic:SyntheticDataset",
    "things": "hamflow.datasets.things:FlyingThingsDataset",
}
"""Where the class of each data set is."""

if TYPE_CHECKING:
    DatasetName = str
else:
    DatasetName = Literal[tuple(DATASETS)]  # commands offer these choices


@overload
def open_dataset(
    name: Literal["synthetic"], root: _Path | None = None, **options: Any
) -> SyntheticDataset: ...
@overload
def open_dataset(
    name: str,
    root: _Path | None,
    *,
    subset: float | str | Iterable[str] | None = None,
    **options: Any,
) -> PairDataset: ...
def open_dataset(
    name: str, root: _Path | None = None, **options: Any
) -> PairDataset | SyntheticDataset:
    """Open a data set on the disk, by default its training split. Nothing is ever downloaded.

    Parameters
    ----------
    name : str
        One of chairs (FlyingChairs), folder (your own pairs), hd1k, kitti2012, kitti2015,
        middlebury (flow), middlebury-stereo (as flow), sintel, spring, synthetic (rendered on
        demand), and things (FlyingThings3D).
    root : str or os.PathLike
        Its folder, laid out as it is published. For synthetic, a folder of photographs, or None.
    subset : float, str or iterable of str, optional
        A share of the pairs, evenly sampled (see `PairDataset.evenly`), or names of pairs or
        groups (see `PairDataset.subset`). Not for synthetic.
    **options
        Options of the class of the data set, such as ``split="test"`` or ``pass_="final"``.

    Returns
    -------
    dataset : PairDataset or SyntheticDataset
        A sequence of pairs with ``image0``, ``image1``, ``flow`` and ``occluded``.

    Raises
    ------
    InputError
        If the name or an option is unknown, an option has a wrong value, or `root` is not given.
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
    subset = options.pop("subset", None)
    if name == "synthetic":
        return dataset_class(name)(folder=root, **options)  # type: ignore[no-any-return]
    if root is None:
        raise InputError(f"The data set {name} needs its root, the folder that it is in.")
    dataset: PairDataset = dataset_class(name)(root, **options)
    if subset is None:
        return dataset
    return dataset.evenly(float(subset)) if isinstance(subset, Real) else dataset.subset(subset)


def dataset_options(name: str) -> list[str]:
    """Return the names of the options that `open_dataset` takes for a data set."""
    names = [o for o in inspect.signature(dataset_class(name)).parameters if o != "root"]
    return [o for o in names if o != "folder"] if name == "synthetic" else [*names, "subset"]


def dataset_class(name: str) -> Any:
    """Return the class of a data set."""
    if name not in DATASETS:
        raise InputError(f"There is no data set {name!r}; known are {', '.join(DATASETS)}.")
    return resolve_name(DATASETS[name])
