"""What several commands parse alike."""

from __future__ import annotations

from hamflow.errors import InputError
from hamflow.window import Window


def parse_window(text: str) -> Window:
    """Return the window of ``128`` or ``u0,du,v0,dv``."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return Window.of(numbers[0])
    if len(numbers) == 4:
        return Window(*numbers)
    raise InputError(
        "--window must be one number D or four, u0,du,v0,dv, such as -100,140,-20,40; "
        f"not {text!r}."
    )
