# The public names. A new one needs one line here: `from .module import name as name`.
from . import crf as crf
from . import datasets as datasets
from . import descriptors as descriptors
from . import evaluation as evaluation
from . import flow as flow
from . import io as io
from . import matching as matching
from . import refinement as refinement
from . import visualize as visualize
from ._runtime import get_isa as get_isa
from ._runtime import get_num_threads as get_num_threads
from ._runtime import isa_levels as isa_levels
from ._runtime import set_isa as set_isa
from ._runtime import set_num_threads as set_num_threads
from .config import EstimatorConfig as EstimatorConfig
from .descriptors import load_model as load_model
from .descriptors import pair_bits as pair_bits
from .errors import FileError as FileError
from .errors import HamflowError as HamflowError
from .errors import InputError as InputError
from .estimator import Estimator as Estimator
from .estimator import estimate as estimate
from .flow import endpoint_error as endpoint_error
from .flow import warp as warp
from .io import read_flow as read_flow
from .io import read_image as read_image
from .io import write_flow as write_flow
from .io import write_image as write_image
from .pipeline.frame import Frame as Frame
from .pipeline.matches import Matches as Matches
from .result import FlowResult as FlowResult
from .sequence import PairFlow as PairFlow
from .sequence import video as video
from .visualize import flow_to_color as flow_to_color
from .window import Window as Window

__version__: str
