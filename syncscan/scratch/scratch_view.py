"""A place for what a program writes: it reads it back, and its user's files stay as they are.

Scratch folders are made on a disk, since a program may write checkpoints larger than the memory.
"""

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
from syncscan.scratch import environment, landlock
from syncscan.scratch.environment import cache_folders

if TYPE_CHECKING:
    from syncscan.scratch.redirect import Redirection
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from typing import Any

from syncscan.scratch.kernel import Mounts

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

KERNEL, PYTHON = "kernel", "python"
VARIABLE = "SYNCSCAN_SCRATCH"
"""Environment variable by which a user chooses the kind."""
_BY_KERNEL = "the kernel sees to it."
_BY_PYTHON = "Python's functions see to it, and whatever else writes is refused."
_BY_PYTHON_ALONE = "Python's functions see to it. What native code and other programs write isn't held back here."
PREFIX = "syncscan-view-"
_FRESH_S = 60.0
"""How old a folder is that nobody holds before it is taken for left behind."""
_locked: dict[Path, int | None] = {}
"""Open and locked folders of this process, so that no other takes them for left behind."""
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


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
        return cls(kind_here(), tuple(_made()))

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
        environment.keep_back()

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
            changes.callback(environment.keep_back().close)
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
                _remove(folder)

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
    with Scratch(KERNEL, tuple(_made())) as scratch:
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
        with open(answer, "rb") as answered:
            refusal = answered.read().decode(errors="replace")
        os.waitpid(pid, 0)
    return refusal


def _made() -> list[Path]:
    """Make a scratch folder in each place that is fit for it, the best first.

    No two are in the same top-level folder: what lies over one of these folders can't be kept in it.
    """
    folders: list[Path] = []
    for base in _bases():
        _sweep(base)
        if base.parts[:2] not in [folder.parts[:2] for folder in folders]:
            with contextlib.suppress(OSError):
                folders.append(Path(tempfile.mkdtemp(prefix=PREFIX, dir=base)))
                _locked[folders[-1]] = _lock(folders[-1])
    return folders


def _lock(folder: Path) -> int | None:
    """Lock a folder for this process and those that it forks; None if another one has it."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _sweep(base: Path) -> None:
    """Remove the folders of commands that were killed."""
    for folder in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _FRESH_S:
                held = _lock(folder)
                if held is not None:
                    os.close(held)
                    _remove(folder)


def _bases() -> list[Path]:
    """Return the folders for temporary files, those in memory last."""
    named = [tempfile.gettempdir(), "/var/tmp", "/tmp", "/dev/shm"]
    known = [Path(os.path.realpath(name)) for name in named if Path(name).is_dir()]
    return sorted(dict.fromkeys(known), key=_is_in_memory)


def _is_in_memory(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return Mounts.here().kind_of(str(folder)) in _IN_MEMORY
    return False


def _remove(folder: Path) -> None:
    """Remove a scratch folder, whatever permissions a program has left in it."""
    held = _locked.pop(folder, None)
    shutil.rmtree(folder, onerror=_again)
    if held is not None:
        os.close(held)


def _again(remove: Callable[..., Any], path: str, _: object) -> None:
    with contextlib.suppress(OSError):
        for each in (Path(path).parent, Path(path)):
            if not each.is_symlink():
                each.chmod(each.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path) if Path(path).is_dir() and not Path(path).is_symlink() else Path(path).unlink()
