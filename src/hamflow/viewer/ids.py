"""Names of sources, jobs and results."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_urlsafe(12)
