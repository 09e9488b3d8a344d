"""The log: silent, unless the program that uses Hamflow asks for it.

``logging.basicConfig(level=logging.INFO)`` shows a line for each pair, and ``logging.DEBUG`` also
the stages.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("hamflow")
"""Messages are formatted only if somebody listens."""
logger.addHandler(logging.NullHandler())
