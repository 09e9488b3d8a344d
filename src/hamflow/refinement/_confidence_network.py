import numpy as np
WEIGHTS = np.zeros(815, np.float32)
