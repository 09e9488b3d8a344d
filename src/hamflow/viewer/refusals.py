"""What the page refuses, and why: one sentence with the fitting status of HTTP."""

from __future__ import annotations

from hamflow.errors import HamflowError


class Refusal(HamflowError):  # noqa: N818  (an answer, not an accident)
    """A request that is not fulfilled.

    Parameters
    ----------
    status : int
        Of HTTP.
    sentence : str
        What is wrong, and what to do.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def unknown(what: str) -> Refusal:
    """Return the refusal for something that does not exist, or is another browser's."""
    return Refusal(404, f"There is no such {what}; it may have been removed.")
