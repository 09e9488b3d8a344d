"""The table of commands, and how the one that the user asks for is started.

The table holds names instead of imported functions: a command loads its own module and no other,
and ``hamflow --help`` loads none.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import groupby
from typing import Annotated, Any, get_type_hints


@dataclass(frozen=True)
class Command:
    """A command."""

    name: str  # what the user types, possibly several words, as in "bench kernels"
    group: str  # the heading in the list of commands
    summary: str
    target: str  # the function, as "module:function"; its parameters are the command's arguments
    # Whether the target makes that function when it is called with the words of the command line:
    # for a command whose defaults come from a file that is named there.
    prepared: bool = False

    def load(self, words: Sequence[str]) -> Callable[..., Any]:
        """Import the function; `words` is the command line after the name of the command."""
        module, _, function = self.target.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), function)
        return found(words) if self.prepared else found


def grouped(group: str, *rows: tuple[str, str, str]) -> tuple[Command, ...]:
    """Return the commands of a group from their names, summaries and targets."""
    return tuple(Command(name, group, summary, target) for name, summary, target in rows)


COMMANDS = (
    *grouped(
        "Estimate",
        ("pair", "compute the flow between two images", "hamflow.cli.pair:pair"),
        ("video", "compute the flow of a video or a folder of frames", "hamflow.cli.video:video"),
        (
            "batch",
            "compute the flow of many pairs, on all cores or on Ray",
            "hamflow.cli.batch:batch",
        ),
        ("serve", "look at flow, and why it is so, in the browser", "hamflow.cli.serve:serve"),
        ("plan", "say how much memory a run will need", "hamflow.cli.plan:plan"),
        ("demo", "try it on a rendered scene with known flow", "hamflow.cli.demo:demo"),
    ),
    *grouped(
        "Visualize and convert",
        ("view", "write a page to look into results", "hamflow.cli.view:view"),
        ("viz", "draw a flow as colors or arrows, or its error", "hamflow.cli.viz:viz"),
        ("warp", "warp the second image to the first", "hamflow.cli.warp:warp_image"),
        ("convert", "change the format of flow files", "hamflow.cli.convert:convert"),
    ),
    *grouped(
        "Use the flow of a video",
        ("track", "follow points through a video", "hamflow.cli.track:track"),
        ("interpolate", "add frames in between", "hamflow.cli.interpolate:interpolate"),
        ("stabilize", "remove the shaking of the camera", "hamflow.cli.stabilize:stabilize"),
        ("mask", "find what moves by itself", "hamflow.cli.mask:mask"),
    ),
    *grouped(
        "Evaluate",
        ("evaluate", "measure the errors of a method", "hamflow.cli.evaluate:evaluate_command"),
        ("compare", "compare the errors of several methods", "hamflow.cli.compare:compare_command"),
        ("submit", "write the files that a benchmark server takes", "hamflow.cli.submit:submit"),
    ),
    Command("train", "Train", "train descriptors", "hamflow.cli.train:train_command", True),
    *grouped(
        "Train",
        ("synth", "render scenes with known flow", "hamflow.cli.synth:synth"),
        ("export", "write trained descriptors as an ONNX file", "hamflow.cli.export:export"),
    ),
    *grouped(
        "About",
        (
            "doctor",
            "show what is installed and what this machine can do",
            "hamflow.cli.doctor:doctor",
        ),
    ),
)


def run(commands: Sequence[Command], words: Sequence[str], prog: str, description: str) -> None:
    """Run the command that `words` begin with, or print the list of commands.

    `prog` is the name of the program, and `description` the first paragraph of that list. Raises a
    SystemExit with 0 after a help page, and with 2 if the words are not a command.
    """
    for command in commands:
        name = command.name.split()
        if list(words[: len(name)]) == name:
            _start(command, words[len(name) :], f"{prog} {command.name}")
            return
    # The words may be the first part of longer names, such as `bench` of `bench kernels`.
    before = 0
    while before < len(words) and _below(commands, words[: before + 1]):
        before += 1
    listed, rest = _below(commands, words[:before]), words[before:]
    here = " ".join([prog, *words[:before]])
    if rest and rest[0] in ("-h", "--help"):
        print(help_page(listed, here, "" if before else description))
        raise SystemExit(0)
    names = list(dict.fromkeys(command.name.split()[before] for command in listed))
    wrong = "No command is given."
    if rest:
        near = difflib.get_close_matches(rest[0], names, 1)
        wrong = f"There is no command {rest[0]!r}{f'; did you mean {near[0]!r}?' if near else '.'}"
    print(
        f"{here}: {wrong} Choose one of {', '.join(names)}; {here} --help describes them.",
        file=sys.stderr,
    )
    raise SystemExit(2)


def help_page(commands: Sequence[Command], prog: str, description: str) -> str:
    """Return the list of commands by group, with a line for each."""
    width = max(len(command.name) for command in commands)
    lines = [f"usage: {prog} COMMAND [OPTIONS]", ""]
    if description:
        lines += [*textwrap.wrap(description, 78), ""]
    for group, members in groupby(commands, key=lambda command: command.group):
        lines += [f"{group}:", *(f"  {c.name:{width}}  {c.summary}" for c in members), ""]
    return "\n".join([*lines, f"{prog} COMMAND --help shows the options of a command."])


def _start(command: Command, words: Sequence[str], prog: str) -> None:
    function = command.load(words)
    # The list of commands does not need these.
    import tyro  # noqa: PLC0415

    from hamflow.cli._help import default_hint, filled, print_page  # noqa: PLC0415

    @wraps(function)
    def shown(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    hint = tyro.conf.arg(help_behavior_hint=default_hint)
    hints = get_type_hints(function, include_extras=True)
    shown.__annotations__ = {name: Annotated[kind, hint] for name, kind in hints.items()}
    shown.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    docstring = function.__doc__ or ""
    shown.__doc__ = filled(docstring)
    del shown.__wrapped__  # otherwise tyro looks at the original function
    config: tuple[Any, ...] = (tyro.conf.FlagCreatePairsOff,)
    if not command.prepared:  # defaults that come from a file may have to be set to None again
        config += (tyro.conf.DisallowNone,)

    def parse() -> None:
        tyro.cli(shown, args=words, prog=prog, description="", config=config)

    if {"-h", "--help"}.isdisjoint(words):
        parse()
    else:
        print_page(parse, docstring)


def _below(commands: Sequence[Command], words: Sequence[str]) -> list[Command]:
    """Return the commands whose names begin with these words."""
    return [c for c in commands if c.name.split()[: len(words)] == list(words)]
