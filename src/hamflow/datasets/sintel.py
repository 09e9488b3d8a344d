"""MPI-Sintel in its own layout.

::

    ROOT/training/clean/SCENE/frame_0001.png         without effects
                              frame_0002.png ...
    ROOT/training/final/SCENE/...                    the same with blur, fog and depth of field
    ROOT/training/flow/SCENE/frame_0001.flo
    ROOT/training/occlusions/SCENE/frame_0001.png    optional, white: occluded
    ROOT/training/invalid/SCENE/frame_0001.png       optional, white: not to be evaluated
    ROOT/test/{clean,final}/SCENE/frame_0001.png     without flow

`hamflow.datasets.synthetic.write_sintel` writes this layout, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from hamflow.datasets._listing import Listing, RenderPass, Root, Split, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_EXPECTED = (
    "expected is MPI-Sintel's tree with the frames <training or test>/<clean or final>/<scene>/"
    "frame_0001.png and so on and the flows training/flow/<scene>/frame_0001.flo and so on."
)


class SintelDataset(PairDataset):
    """The pairs of consecutive frames of MPI-Sintel: 1041 for training, 552 for testing.

    Pairs are named after scene and first frame, as in ``"alley_1/frame_0001"``, in both passes.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``test``.
    split : "training" or "test"
        Test pairs have no flow.
    pass_ : "clean" or "final"
        Which pass of the renderer the frames are from.

    Examples
    --------
    The shares of the paper: 20 % of the training images to learn from, and 40 % of them, without
    any of the former, to evaluate on:

    >>> import tempfile
    >>> from hamflow.datasets import SyntheticConfig
    >>> from hamflow.datasets.sintel import SintelDataset
    >>> from hamflow.datasets.synthetic import write_sintel
    >>> with tempfile.TemporaryDirectory() as root:
    ...     report = write_sintel(root, SyntheticConfig(height=32, width=48), 5)
    ...     data = SintelDataset(root, pass_="final")
    ...     learned = data.evenly(0.2)
    ...     evaluated = data.evenly(0.4, disjoint_from=learned)
    ...     print(learned.groups, evaluated.groups)
    ('scene_00002',) ('scene_00001', 'scene_00004')
    """

    def __init__(
        self, root: Root, *, split: Split = "training", pass_: RenderPass = "clean"
    ) -> None:
        check_choice("split", split, ("training", "test"))
        check_choice("pass_", pass_, ("clean", "final"))
        top = Listing(root, _EXPECTED).folder(split)
        super().__init__(top, _pairs(top, pass_, split == "training"))


def _pairs(top: Listing, pass_: str, known: bool) -> Iterator[FlowPair]:
    scenes = top.folder(pass_).folders()
    flow = top.folder("flow", optional=not known)
    for scene in scenes:
        frames = top.folder(pass_, scene)
        flows = flow.folder(scene, optional=not known)
        occlusions = top.folder("occlusions", scene, optional=True)
        invalid = top.folder("invalid", scene, optional=True)
        for number, first, second in frames.consecutive("frame_", ".png"):
            yield FlowPair(
                f"{scene}/frame_{number}",
                first,
                second,
                flow_path=flows.file(f"frame_{number}.flo") if known else None,
                occluded_path=occlusions.find(f"frame_{number}.png"),
                invalid_path=invalid.find(f"frame_{number}.png"),
            )
