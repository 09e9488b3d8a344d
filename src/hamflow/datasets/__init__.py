"""Image pairs with known flow: public data sets in their own layout, one's own, and rendered ones.

`open_dataset` opens any of them by its name. The public names are listed in ``__init__.pyi``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
