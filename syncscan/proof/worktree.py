"""A revision of the repository that a program is in goes in, the program as it was there comes out, in a worktree.

Worktrees lie in a folder of their own and are gone afterwards; the user's files, index and branch stay as they are.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from syncscan.errors import UsageError
from syncscan.proof.program import Program


@contextlib.contextmanager
def at_revision(program: Program, revision: str) -> Iterator[Program]:
    """Yield the program at a revision while the context lasts.

    It runs in the worktree's folder that matches the one where it would have run, so that it reads that revision's
    files; what isn't tracked isn't there.

    Raises:
        UsageError: it is in no repository, or that has no such revision, or it wasn't there then.
    """
    top = Path(
        _git(
            program.path.parent,
            "rev-parse",
            "--show-toplevel",
            wrong=f"{program.path} is in no git repository, which --rev needs",
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
            yield _in_place(program, top.resolve(), place, f"{program.name} at {revision}")
        finally:
            _git(top, "worktree", "remove", "--force", str(place))


def _in_place(program: Program, top: Path, place: Path, name: str) -> Program:
    path = place / program.path.resolve().relative_to(top)
    if not path.is_file():
        raise UsageError(f"{name}: it wasn't there then.", "Give a revision that has it.")
    folder = program.folder.resolve()
    within = place / folder.relative_to(top) if folder.is_relative_to(top) else place
    return replace(program, name=name, path=path, folder=within if within.is_dir() else place, moved=(top, place))


def _git(folder: Path, *words: str, wrong: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise UsageError("There is no git here, which --rev needs.", "Install it, or give two scripts.") from None
    if done.returncode:
        reason = wrong or f"git {words[0]}: {done.stderr.strip() or done.returncode}"
        raise UsageError(f"{reason}.")
    return done.stdout.strip()
