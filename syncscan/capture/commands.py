"""Resolve a command as a user types it to the Python program in it, and to what starts that program."""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from syncscan.errors import UsageError

_PYTHON = re.compile(r"pythonw?(\d+(\.\d+)?)?(\.exe)?")
_PLAIN = frozenset({"-u", "-B", "-s", "-E", "-q", "-b"})
"""Options of Python's that change nothing of what the program does."""
_SHEBANG = re.compile(rb"#!.*\bpython|#!/bin/sh\n'''exec' ")
"""How a script of Python's begins; the second is pip's where the interpreter's path is too long."""
_HINTS = {"lightning": "Lightning's command is called fabric by now: fabric run SCRIPT ARGS."}
"""Hints for commands that packages no longer have."""
HINT = "Give a script, -m MODULE, or a command: python, torchrun, accelerate launch, the name of a console script."


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a user typed it.

    `target` and `arguments` are the program's, `module` that it is one to be run as by `python -m`. `words` is the
    whole command. `launcher` names who starts the program in processes of its own, empty where this process can run it;
    then `target` is empty, and `arguments` are the launcher's. `console` says that it is a script without a suffix, as
    an installation makes one for an entry point of a package; with a launcher, one of another environment.
    """

    target: str
    arguments: tuple[str, ...]
    words: tuple[str, ...]
    module: bool = False
    launcher: str = ""
    console: bool = False


def resolved(words: Sequence[str], *, module: bool = False) -> Command:
    """Return what a command is."""
    first, arguments = words[0], tuple(words[1:])
    if module:
        return _module(first, arguments, (sys.executable, "-m", *words))
    name = PurePath(first).name.removesuffix(".exe")
    if not Path(first).is_dir() and _PYTHON.fullmatch(name) and shutil.which(first):
        return _python(words)
    refuse_notebook(first)
    if Path(first).exists():
        if not Path(first).is_dir() and not _is_python(Path(first)):
            return Command("", (), (_runnable(first), *arguments), launcher=name)
        return (
            Command(first, arguments, tuple(words))
            if Path(first).is_dir() or Path(first).suffix
            else _console(first, arguments)
        )
    path = shutil.which(first)
    if path is None:
        what = "script at" if first.endswith(".py") or os.sep in first else "script or command"
        raise UsageError(f"There is no {what} {first}.", _HINTS.get(first, HINT))
    if name in _LAUNCHERS or name in NOTEBOOKS:
        return Command("", arguments, (path, *arguments), launcher=name)
    if _is_python(Path(path)):
        return _console(path, arguments)
    return Command("", (), (path, *arguments), launcher=name)


def is_pythons(word: str) -> bool:
    """Return whether a word on the PATH is a Python, a launcher of Python programs, or one."""
    path = shutil.which(word)
    if path is None:
        return False
    return _PYTHON.fullmatch(word) is not None or word in _LAUNCHERS or word in NOTEBOOKS or _is_python(Path(path))


def refuse_notebook(path: str) -> None:
    """Refuse a notebook, by the end of its name, in the place of a script."""
    if path.endswith(".ipynb"):
        convert = f"jupyter nbconvert --to script {shlex.quote(path)}"
        raise UsageError(f"{path} is a notebook, not a script.", f"Make a script of it: {convert}")


def _runnable(path: str) -> str:
    """Return the absolute path of a file that the system can run; refuse any other file."""
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} is not a Python file and can't be run.", HINT)
    return str(Path(path).absolute())


def _is_python(path: Path) -> bool:
    """Return whether a file is a program of Python's: by its name, or by how it begins."""
    if path.suffix in (".py", ".pyw", ".pyz", ".zip", ".pyc"):
        return True
    try:
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return _SHEBANG.match(head) is not None or not (head.startswith(b"#!") or b"\0" in head or os.access(path, os.X_OK))


def _console(path: str, arguments: tuple[str, ...]) -> Command:
    """Read a script without a suffix; it runs here unless its first line names the Python of another environment."""
    with Path(path).open("rb") as file:
        head = file.readline() + file.readline()
    interpreter = re.match(rb"#!\s*(/\S*python[\d.]*)\s*\n|#!/bin/sh\n\W+exec\W+(/[^\"\n]*python[\d.]*)\W", head)
    if interpreter and not _same_python(os.fsdecode(interpreter[1] or interpreter[2])) and os.access(path, os.X_OK):
        return Command("", (), (str(Path(path).absolute()), *arguments), launcher=Path(path).name, console=True)
    return Command(path, arguments, (path, *arguments), console=True)


def _python(words: Sequence[str]) -> Command:
    """Resolve `python [-u] SCRIPT …` and `python -m MODULE …`; other options or Pythons run without syncscan."""
    remaining = list(words[1:])
    while remaining and remaining[0] in _PLAIN:
        remaining.pop(0)
    if not remaining:
        raise UsageError(f"{words[0]} without a script has no steps.", "Give the script: python train.py.")
    if remaining[0] == "-c":
        raise UsageError("python -c has no file, so its lines can't be reported.", "Put the code into a script.")
    path = shutil.which(words[0]) or words[0]
    if not _same_python(path) or (remaining[0].startswith("-") and remaining[0] != "-m"):
        return Command("", (), (path, *words[1:]), launcher=PurePath(words[0]).name)
    if remaining[0] == "-m":
        if len(remaining) < 2:
            raise UsageError("python -m needs the name of a module.", HINT)
        return _module(remaining[1], tuple(remaining[2:]), (path, *words[1:]))
    refuse_notebook(remaining[0])
    if not Path(remaining[0]).exists():
        raise UsageError(f"There is no script at {remaining[0]}.", HINT)
    return Command(remaining[0], tuple(remaining[1:]), (path, *words[1:]))


def _same_python(path: str) -> bool:
    """Return whether this is the interpreter that runs here, with the same environment."""
    here, there = Path(sys.executable), Path(path)
    return here.absolute() == there.absolute() or (
        here.resolve() == there.resolve() and here.absolute().parent == there.absolute().parent
    )


def _module(name: str, arguments: tuple[str, ...], words: tuple[str, ...]) -> Command:
    launcher = next((known for known, module in _LAUNCHERS.items() if module == name), "")
    if name == "torch.distributed.launch":
        launcher = "torchrun"
    if launcher:
        return Command("", arguments, words, launcher=launcher)
    return Command(name, arguments, words, module=True)


_LAUNCHERS = {
    "torchrun": "torch.distributed.run",
    "accelerate": "accelerate.commands.launch",
    "deepspeed": "deepspeed.launcher.runner",
    "lightning": "lightning.fabric.cli",
    "fabric": "lightning_fabric.cli",
    "composer": "composer.cli",
    "colossalai": "colossalai.cli",
    "horovodrun": "horovod.runner.launch",
    "mpirun": "",
    "mpiexec": "",
    "srun": "",
}
"""Who starts a program in processes of its own, and its module."""
NOTEBOOKS = frozenset({"jupyter", "papermill"})
"""Commands that run notebooks in a kernel."""


def notebook(command: Command) -> str | None:
    """Return the name of the notebook that a command runs, without its ending; None where it runs none."""
    if command.launcher not in NOTEBOOKS:
        return None
    return next((PurePath(word).stem for word in command.words[1:] if word.endswith(".ipynb")), None)


def _launched(command: Command) -> Command:
    """Return the program that a launcher starts: the first Python file among its words, or a module behind `-m`."""
    words = command.arguments
    for at, word in enumerate(words):
        if word.endswith(".py") and Path(word).exists():
            return replace(command, target=word, arguments=words[at + 1 :], module=False)
        if word in ("-m", "--module") and _LAUNCHERS.get(command.launcher) and at + 1 < len(words):
            return replace(command, target=words[at + 1], arguments=words[at + 2 :], module=True)
    return replace(command, target="", arguments=())


def ranks_wanted(command: Command) -> int | None:
    """Return how many ranks a launcher was asked for, on all machines; None where its words don't say."""
    own = itertools.takewhile(lambda word: not word.endswith(".py"), command.arguments)  # what follows is the program's
    numbers = _RANKS.findall(" ".join(own)) if command.launcher in _LAUNCHERS else []
    return math.prod(map(int, numbers)) if numbers else None


_RANKS = re.compile(
    r"(?<!\S)(?:--(?:nproc.per.node|nnodes|num.processes|num.gpus|num.nodes|num.proc|devices|ntasks)|-np?)[ =]"
    r"(?:\d+:)?(\d+)(?!\S)"
)
"""Options of launchers whose numbers multiply to the number of ranks; of 1:4 nodes the most counts."""


def _alone() -> dict[str, str]:
    """Return the variables with which a program of several ranks runs as one of one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": 0}
    return {**{key: str(value) for key, value in names.items()}, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def _alone_hint(command: Command, subcommand: str) -> str:
    """Return how a program is given by itself, instead of to a launcher that starts others."""
    name = notebook(command)
    if name is None:
        return f"Give it the program itself: syncscan {subcommand} SCRIPT ARGS."
    convert = f"jupyter nbconvert --to script {name}.ipynb"
    return f"Convert the notebook first: {convert}, then syncscan {subcommand} {name}.py."


def names_one_program(command: Command) -> bool:
    """Return whether this process can run the command's program by itself, also where a launcher would start it."""
    return not command.launcher or (not command.console and bool(_launched(command).target))


def in_this_process(command: Command, subcommand: str) -> Command:
    """Return the command as one that this process can run: the launcher's program alone."""
    if not command.launcher:
        return command
    alone = _launched(command)
    if command.console:
        raise UsageError(
            f"{command.words[0]} is from a different environment than this syncscan.",
            f"Install syncscan there, and run it from there: syncscan {subcommand} {command.launcher} ARGS.",
        )
    if not alone.target:
        raise UsageError(
            f"{subcommand} runs a single Python program, but {command.launcher} starts others.",
            _alone_hint(command, subcommand),
        )
    os.environ.update(_alone())
    return alone
