from __future__ import annotations

from _browser import browser  # noqa: F401  (a fixture)
