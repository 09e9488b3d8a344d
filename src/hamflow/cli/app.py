"""The commands by name: which there are, and how the one that was asked for is started.

A table of names instead of imported functions, so that a command loads its own module and nothing
of the others, and ``hamflow --help`` none of them.
"""

from __future__ import annotations

import difflib
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import Any


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes
    ----------
    name : str
        What the user types; of several words for a command below another.
    group : str
        The heading that it is listed under. Commands of one group stand together.
    summary : str
        What it does, in one line.
    target : str
        The function that does it, as ``module:function``. Its arguments are those of the command.
    prepared : bool
        Whether the target is first called with the words of the command line, and returns that
        function: for a command that takes its defaults from a file that these words name.
    """

    name: str
    group: str
    summary: str
    target: str
    prepared: bool = False

    def load(self, words: Sequence[str]) -> Callable[..., Any]:
        """Import the function; `words` are those of the command line after the name."""
        module, _, function = self.target.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), function)
        return found(words) if self.prepared else found


def grouped(group: str, *rows: tuple[str, str, str]) -> tuple[Command, ...]:
    """Return the commands of a group from their names, summaries and targets."""
    return tuple(Command(name, group, summary, target) for name, summary, target in rows)


COMMANDS = (
    *grouped(
        "Estimate",
        ("pair", "the flow between two images", "hamflow.cli.pair:pair"),
        ("video", "the flow of a video or of numbered frames", "hamflow.cli.video:video"),
        ("demo", "the flow of a rendered scene, beside the truth", "hamflow.cli.demo:demo"),
    ),
    *grouped(
        "Look and convert",
        ("viz", "draw a flow in colors, or its error", "hamflow.cli.viz:viz"),
        ("warp", "warp the second image to the first", "hamflow.cli.warp:warp_image"),
        ("convert", "change the format of flow files", "hamflow.cli.convert:convert"),
    ),
    *grouped(
        "Evaluate",
        ("evaluate", "measure a method on known flow", "hamflow.cli.evaluate:evaluate_command"),
        ("compare", "set evaluations side by side", "hamflow.cli.compare:compare_command"),
        ("submit", "make the files for a benchmark's server", "hamflow.cli.submit:submit"),
    ),
    Command("train", "Train", "learn descriptors", "hamflow.cli.train:train_command", True),
    *grouped(
        "Train",
        ("synth", "render scenes with known flow", "hamflow.cli.synth:synth"),
        ("export", "write trained descriptors as an ONNX file", "hamflow.cli.export:export"),
    ),
    *grouped(
        "About",
        ("doctor", "show what this installation can do", "hamflow.cli.doctor:doctor"),
    ),
)


def run(commands: Sequence[Command], words: Sequence[str], prog: str, description: str) -> None:
    """Run the command that `words` begin with, or print the list of commands.

    Parameters
    ----------
    commands : sequence of Command
        Those that there are.
    words : sequence of str
        The command line, without the name of the program.
    prog : str
        The name of the program.
    description : str
        What the list of commands begins with.

    Raises
    ------
    SystemExit
        With 0 after a help page, with 2 if the words are not a command and its arguments.
    """
    for command in commands:
        name = command.name.split()
        if list(words[: len(name)]) == name:
            _start(command, words[len(name) :], f"{prog} {command.name}")
            return
    # The beginning of some names, as in `bench` for `bench kernels`.
    before = 0
    while _below(commands, words[: before + 1]) and before < len(words):
        before += 1
    listed, rest = _below(commands, words[:before]), words[before:]
    here = " ".join([prog, *words[:before]])
    if rest and rest[0] in ("-h", "--help"):
        print(help_page(listed, here, "" if before else description))
        raise SystemExit(0)
    print(_complaint(listed, rest, before, here), file=sys.stderr)
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
    import tyro  # noqa: PLC0415  (not for the list of commands)

    tyro.cli(function, args=words, prog=prog, config=(tyro.conf.FlagCreatePairsOff,))


def _below(commands: Sequence[Command], words: Sequence[str]) -> list[Command]:
    """Return the commands whose names begin with these words."""
    return [c for c in commands if c.name.split()[: len(words)] == list(words)]


def _complaint(commands: Sequence[Command], rest: Sequence[str], before: int, prog: str) -> str:
    names = list(dict.fromkeys(command.name.split()[before] for command in commands))
    if not rest:
        wrong = "Which command?"
    else:
        near = difflib.get_close_matches(rest[0], names, 1)
        wrong = f"There is no command {rest[0]!r}" + (
            f"; did you mean {near[0]!r}?" if near else "."
        )
    return f"{prog}: {wrong} Choose one of {', '.join(names)}; {prog} --help tells what they do."
