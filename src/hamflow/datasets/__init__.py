"""Image pairs with known flow: public data sets in their own layout, one's own, and rendered ones.

`open_dataset` opens any of them by its name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamflow.datasets.demo_scene import Scene, demo_scene
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.folder import FolderDataset
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.datasets.registry import open_dataset

if TYPE_CHECKING:
    from hamflow.datasets.chairs import FlyingChairsDataset
    from hamflow.datasets.hd1k import Hd1kDataset
    from hamflow.datasets.kitti import Kitti2012Dataset, Kitti2015Dataset
    from hamflow.datasets.middlebury import MiddleburyDataset
    from hamflow.datasets.middlebury_stereo import MiddleburyStereoDataset, StereoPair
    from hamflow.datasets.sintel import SintelDataset
    from hamflow.datasets.spring import SpringDataset, SpringPair
    from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset, SyntheticScene
    from hamflow.datasets.things import FlyingThingsDataset

__all__ = [
    "FlowPair",
    "FlyingChairsDataset",
    "FlyingThingsDataset",
    "FolderDataset",
    "Hd1kDataset",
    "Kitti2012Dataset",
    "Kitti2015Dataset",
    "MiddleburyDataset",
    "MiddleburyStereoDataset",
    "PairDataset",
    "Scene",
    "SintelDataset",
    "SpringDataset",
    "SpringPair",
    "StereoPair",
    "SyntheticConfig",
    "SyntheticDataset",
    "SyntheticScene",
    "demo_scene",
    "open_dataset",
]

# Where each name lives that is imported on first use: nobody needs all data sets at once.
_HOMES = {
    "FlyingChairsDataset": "chairs",
    "FlyingThingsDataset": "things",
    "Hd1kDataset": "hd1k",
    "Kitti2012Dataset": "kitti",
    "Kitti2015Dataset": "kitti",
    "MiddleburyDataset": "middlebury",
    "MiddleburyStereoDataset": "middlebury_stereo",
    "SintelDataset": "sintel",
    "SpringDataset": "spring",
    "SpringPair": "spring",
    "StereoPair": "middlebury_stereo",
    "SyntheticConfig": "synthetic",
    "SyntheticDataset": "synthetic",
    "SyntheticScene": "synthetic",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hamflow.datasets' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hamflow.datasets.{home}"), name)
    globals()[name] = value
    return value
