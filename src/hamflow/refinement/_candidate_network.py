import numpy as np
WEIGHTS=np.zeros(40+12*(20+12+3),np.float32)
