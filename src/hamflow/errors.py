"""The exceptions that Hamflow raises on purpose.

Each carries one sentence that names the file or argument at fault and what to do about it. Both
kinds are also ``ValueError``, so code that does not know Hamflow's own classes can catch them.
"""

from __future__ import annotations


class HamflowError(Exception):
    """Base of every error that Hamflow raises on purpose."""


class InputError(HamflowError, ValueError):
    """An array or argument that Hamflow cannot work with."""


class FileError(HamflowError, ValueError):
    """A file that is missing, unreadable, malformed or cannot be written.

    The message starts with the file's path.
    """
