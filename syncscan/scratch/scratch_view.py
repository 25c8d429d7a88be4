"""A place for what a program writes: it reads it back, and its user's files stay as they are."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from syncscan.errors import UsageError
from syncscan.scratch import bases, environment, landlock, uploads
from syncscan.scratch.environment import cache_folders

if TYPE_CHECKING:
    from syncscan.scratch.redirect import Redirection

KERNEL, PYTHON = "kernel", "python"
VARIABLE = "SYNCSCAN_SCRATCH"
"""Environment variable by which a user chooses the kind."""
_BY_KERNEL = "the kernel sees to it."
_BY_PYTHON = "Python's functions see to it, and whatever else writes is refused."
_BY_PYTHON_ALONE = "Python's functions see to it. What native code and other programs write isn't held back here."


@dataclass(frozen=True, slots=True)
class Scratch:
    """A view of the file tree for one run: `with Scratch.made() as scratch`.

    The process that runs the program calls `enter`, and the one that has started it reads `written` when the run is
    over; `kind` and `folders` are all that the first needs to make its own, and can be sent to it.

    Attributes:
        kind: `kernel` (mount namespace and overlays, `scratch.kernel`) or `python` (replaced functions of Python,
            `scratch.redirect`).
        folders: where it is all kept, which `close` removes; the first has what `written` returns.
    """

    kind: str
    folders: tuple[Path, ...]

    @classmethod
    def made(cls) -> Scratch:
        """Make one, of the kind that holds here."""
        return cls(kind_here(), tuple(bases.made()))

    def enter(self, *, dry: bool = True) -> None:
        """Let this process, and all that it starts, write into the view from here on; there is no way back.

        It must have no other thread, as right after a fork. A program is told of a dry run by `SYNCSCAN_DRY_RUN=1`.
        """
        if self.kind == KERNEL:
            from syncscan.scratch import kernel

            kernel.enter(self.folders, cache_folders())
        else:
            from syncscan.scratch import redirect

            redirect.enter(self.folders[0], cache_folders())
        environment.quiet(self.folders[0], dry=dry)
        uploads.keep_back()

    @contextlib.contextmanager
    def entered(self, passed: Sequence[Path] = ()) -> Iterator[Redirection]:
        """Redirect a dry run's files while the context lasts, in a process that goes on afterwards.

        Only Python's functions can be redirected so, whatever the `kind`; what else writes isn't held back. Neither
        `passed` folders nor those of caches are part of the view.
        """
        from syncscan.scratch.redirect import Redirection, temporary_folder

        folder = self.folders[0]
        with contextlib.ExitStack() as changes, environment.quieted(folder, temporary_folder(folder)):
            redirection = Redirection(folder, [*cache_folders(), *passed])
            changes.callback(redirection.end)
            changes.callback(uploads.keep_back().close)
            yield redirection

    def written(self) -> dict[str, Path | None]:
        """Return the files that a program has written or removed, once its process has ended.

        By the absolute path that the program used, with links resolved: the file that the run left there, which is gone
        after `close`; None where it removed the user's. A file that was opened for writing counts as written.
        """
        from syncscan.scratch import layers

        return (layers.in_copies if self.kind == PYTHON else layers.in_layers)(self.folders[0])

    def close(self) -> None:
        """Remove all that was written."""
        for folder in self.folders:
            with contextlib.suppress(FileNotFoundError):
                bases.removed(folder)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def sentence(writer: str = "the program", kind: str = "") -> str:
    """Return what holds for the files that `writer` writes here, for a user."""
    by_python = _BY_PYTHON if landlock.holds() else _BY_PYTHON_ALONE
    how = _BY_KERNEL if (kind or kind_here()) == KERNEL else by_python
    return f"What {writer} writes goes to a scratch copy that is gone afterwards; {how}"


def kind_here() -> str:
    """Return the kind of view that holds here, as the system allows it and the user chooses."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen not in ("", KERNEL, PYTHON):
        raise UsageError(f"{VARIABLE} is '{chosen}'.", f"Set it to {KERNEL} or {PYTHON}, or unset it.")
    refusal = "" if chosen == PYTHON else _kernels_refusal()
    if chosen == KERNEL and refusal:
        raise UsageError(f"{VARIABLE} is {KERNEL}, which this system refuses: {refusal}.", f"Set it to {PYTHON}.")
    return PYTHON if chosen == PYTHON or refusal else KERNEL


@functools.cache
def _kernels_refusal() -> str:
    """Return why the kernel gives no view here; empty where it does, as a child process tries out."""
    if sys.platform != "linux":
        return "only Linux has it"
    with Scratch(KERNEL, tuple(bases.made())) as scratch:
        answer, asks = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                scratch.enter()
            except BaseException as error:
                os.write(asks, str(error).encode()[:500])
            finally:
                os._exit(0)
        os.close(asks)
        with open(answer, "rb") as told:
            refusal = told.read().decode(errors="replace")
        os.waitpid(pid, 0)
    return refusal
