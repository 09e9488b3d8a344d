"""Image pairs with known flow: public data sets in their own layout, your own, and rendered ones.

`open_dataset` opens any of them by its name.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
