"""Programs that a user names, at a revision too: a script with its arguments, or a function of a file.

Worktrees of revisions lie in a folder of their own and are gone afterwards; the user's files, index and branch stay as
they are.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from syncscan.capture.main_script import script_and_function
from syncscan.errors import UsageError
from syncscan.model.libraries import is_library, only_starts


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """One of two programs.

    `name` is what a report calls it, `path` where its file is, `function` empty for a script. `folder` is where it
    runs; `moved` leads from a folder of the user's to the one that replaces it, for a program at a revision.
    `patched` are files of the user's, each with one whose text takes its place in what the program sees.
    """

    name: str
    path: Path
    function: str
    arguments: tuple[str, ...]
    folder: Path
    moved: tuple[Path, Path] | None = None
    patched: tuple[tuple[Path, Path], ...] = ()


def program(spec: str, arguments: Sequence[str] = ()) -> ComparedProgram:
    """Return the program that `train.py` or `file.py:function` names.

    Raises:
        UsageError: the file doesn't exist, or a function was given arguments.
    """
    file, function = script_and_function(spec)
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"There is no script at {path}.", "Write train.py, or file.py:function for a function.")
    if function and arguments:
        raise UsageError(
            f"{spec} is a function, and is called without arguments: it can't take {arguments[0]}.",
            "Let it create its own inputs, or give two scripts.",
        )
    return ComparedProgram(spec, path.absolute(), function, tuple(arguments), Path.cwd())


@contextlib.contextmanager
def at_revision(program: ComparedProgram, revision: str) -> Iterator[ComparedProgram]:
    """Yield the program at a revision while the context lasts.

    It runs in the worktree's folder that matches the one where it would have run, so that it reads that revision's
    files; what isn't tracked isn't there. Of a console script the revision is that of the package that it calls.

    Raises:
        UsageError: the program is in no repository, the revision doesn't exist, or doesn't have the program.
    """
    package = _package(program.path)
    with worktree(package or program.path.parent, revision, str(package or program.path)) as (top, place):
        yield _in_place(program, top, place, f"{program.name} at {revision}", installed=package is not None)


@contextlib.contextmanager
def worktree(inside: Path, revision: str, name: str = "") -> Iterator[tuple[Path, Path]]:
    """Yield the top of the repository that a folder lies in, and a folder with its files at a revision, for a while.

    Raises:
        UsageError: it lies in no repository, or the revision doesn't exist.
    """
    top = Path(
        _git(
            inside,
            "rev-parse",
            "--show-toplevel",
            wrong=f"{name or inside} isn't in a git repository, which --rev needs",
        )
    )
    commit = _git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        wrong=f"{top} has no revision {revision}: see git log",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="syncscan-") as made:
        place = Path(made).resolve() / commit[:12]
        _git(top, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield top.resolve(), place
        finally:
            _git(top, "worktree", "remove", "--force", str(place))


def within(folder: Path, top: Path, place: Path) -> Path:
    """Return the folder of a worktree that matches one of the repository's, or the worktree itself."""
    folder = folder.resolve()
    inner = place / folder.relative_to(top) if folder.is_relative_to(top) else place
    return inner if inner.is_dir() else place


def _package(script: Path) -> Path | None:
    """Return the folder of the package that a console script calls; None for any other script.

    Raises:
        UsageError: it is installed, and so is the same at any revision.
    """
    if not only_starts(str(script)):
        return None
    name = re.findall(r"^from (\w+)\S* import", script.read_text(errors="replace"), re.MULTILINE)
    spec = importlib.util.find_spec(name[-1]) if name else None
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or is_library(str(folder / "x.py")):
        raise UsageError(
            f"{script.name} calls an installed package, which is the same at any revision.",
            "Install it from its repository with pip install -e, or give a script.",
        )
    return folder


def _in_place(
    program: ComparedProgram, top: Path, place: Path, name: str, *, installed: bool = False
) -> ComparedProgram:
    path = program.path if installed else place / program.path.resolve().relative_to(top)
    if not path.is_file():
        raise UsageError(f"{name} doesn't exist at that revision.", "Give a revision that has it.")
    return replace(program, name=name, path=path, folder=within(program.folder, top, place), moved=(top, place))


def _git(folder: Path, *words: str, wrong: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise UsageError("--rev needs git, which isn't installed.", "Install it, or give two scripts.") from None
    if done.returncode:
        reason = wrong or f"git {words[0]}: {done.stderr.strip() or done.returncode}"
        raise UsageError(f"{reason}.")
    return done.stdout.strip()
