# The public names. The class of a data set is in its own module; `open_dataset` knows it by name.
from .flow_pair import FlowPair as FlowPair
from .pair_dataset import PairDataset as PairDataset
from .registry import open_dataset as open_dataset
from .synthetic import SyntheticConfig as SyntheticConfig
from .synthetic import SyntheticDataset as SyntheticDataset
from .synthetic import SyntheticScene as SyntheticScene
from .synthetic import demo_scene as demo_scene
