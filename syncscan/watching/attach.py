"""Attach to a process: give it an order, through a folder, and wait for what it answers.

It hears nothing while its main thread is in a call of C's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from syncscan.errors import ProgramFailed
from syncscan.watching.code_injection import PythonProcess, run_line

ORDER, ANSWERS = "order.json", "answers.jsonl"
Action = Literal["capture", "watch", "stop"]


@dataclass(frozen=True, slots=True)
class Order:
    """An order to a process: an action, where its result goes, and how much of it."""

    action: Action
    out: str = ""
    steps: int = 3
    warmup: int = 4
    interval: float = 20.0
    wait_s: float = 600.0
    capture_on_alarm: bool = False
    asker: int = 0
    """Process that waits for the answers; 0 where that is unknown."""

    def write(self, folder: Path) -> None:
        (folder / ORDER).write_bytes(msgspec.json.encode(self))

    @staticmethod
    def read(folder: Path) -> Order:
        return msgspec.json.decode((folder / ORDER).read_bytes(), type=Order)


def answer(folder: Path, **row: Any) -> None:
    """Append a line to the answers; in the attached process.

    A folder that has gone wants none, and one whose command was killed is removed.
    """
    if not folder.is_dir():
        return
    if not _is_awaited(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    file = os.open(folder / ANSWERS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(row).encode() + b"\n")
    finally:
        os.close(file)


def _is_awaited(folder: Path) -> bool:
    """Return whether the command that wrote a folder's order still runs, as far as is known."""
    try:
        asker = Order.read(folder).asker
        if asker:
            os.kill(asker, 0)
    except ProcessLookupError:
        return False
    except (OSError, msgspec.DecodeError):
        pass
    return True


def answers(folder: Path, since: int = 0) -> Iterator[dict[str, Any]]:
    file = folder / ANSWERS
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines()[since:]:
            yield json.loads(line)


SCRIPT = "begin.py"
LOOK_S = 0.05
HEARD_S = 10.0
"""Time that the main thread has to come to an order; it is between two instructions thousands of times a second."""

BOOTSTRAP = """
def _begin(folder, package):
    import sys, threading
    def run():
        import json, os
        try:
            with open(os.path.join(folder, "answers.jsonl"), "a") as file:
                file.write('{"heard": true}\\n')
            try:
                import syncscan
            except ImportError:
                import importlib.util
                spec = importlib.util.spec_from_file_location("syncscan", os.path.join(package, "__init__.py"))
                module = sys.modules["syncscan"] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            from syncscan.watching.attached_process import carry_out
        except Exception as error:
            with open(os.path.join(folder, "answers.jsonl"), "a") as file:
                why = "%s: %s; its environment is %s" % (type(error).__name__, error, sys.prefix)
                file.write(json.dumps({"failed": "The process can't import syncscan (" + why + ")."}) + "\\n")
        else:
            carry_out(folder)
    threading.Thread(target=run, name="syncscan-attach", daemon=True).start()
_begin(FOLDER, PACKAGE)
"""
"""Script that runs in the process: on its main thread only a thread is started."""


TAKEN_BACK = """
import os
os.remove(FILE)
os.rmdir(os.path.dirname(FILE))
"""
"""Script that Python 3.14 finds in the place of an order that was taken back; it would print that there is none."""


class NotHeard(ProgramFailed):
    """The process's main thread is in a call of C's that doesn't return."""

    slug = "not-heard"


@contextlib.contextmanager
def attached(process: PythonProcess, order: Order, *, heard_s: float = HEARD_S) -> Iterator[Answers]:
    """Give a process an order for as long as the context lasts, and yield its answers.

    An order that isn't heard is taken back at the context's end, and never carried out.

    Raises:
        UsageError: the process can't be reached.
        NotHeard: its main thread didn't come to it.
    """
    folder = Path(tempfile.mkdtemp(prefix="syncscan-attach-"))
    try:
        replace(order, asker=os.getpid()).write(folder)
        script = folder / SCRIPT
        package = str(Path(__file__).parents[1])
        script.write_text(BOOTSTRAP.replace("FOLDER", repr(str(folder))).replace("PACKAGE", repr(package)))
        _give(process, folder, folder / ORDER, script)
        run_line(process, script)
        heard = Answers(process, folder)
        heard.wait(heard_s)
        yield heard
    except NotHeard:
        _take_back(process, folder)
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _take_back(process: PythonProcess, folder: Path) -> None:
    """Remove an order that a process may still come to; of Python 3.14 a script stays that removes itself then."""
    shutil.rmtree(folder, ignore_errors=True)
    if process.remote:
        folder.mkdir(mode=0o700)
        script = folder / SCRIPT
        script.write_text(TAKEN_BACK.replace("FILE", repr(str(script))))
        _give(process, folder, script)


def _give(process: PythonProcess, *paths: Path) -> None:
    """Make paths a process's user's, where that is another."""
    for path in paths if process.uid != os.geteuid() else ():
        os.chown(path, process.uid, -1)


class Answers:
    """Answers of a process to one order."""

    def __init__(self, process: PythonProcess, folder: Path) -> None:
        self._process, self._folder = process, folder

    def wait(self, seconds: float) -> None:
        """Wait until the process has heard.

        Raises:
            NotHeard: it hasn't in time.
            ProgramFailed: it has ended.
        """
        until = time.monotonic() + seconds
        while not any(True for _ in answers(self._folder)):
            self._look()
            if time.monotonic() > until:
                raise NotHeard(
                    f"The main thread of process {self._process.pid} has been in a C call for {seconds:.0f} s, so"
                    " nothing was started.",
                    "py-spy dump --native --pid PID shows the call.",
                )
            time.sleep(LOOK_S)

    def until(self, key: str, say: Callable[[str], None] = lambda sentence: None) -> dict[str, Any]:
        """Return the first answer with a key.

        Raises:
            ProgramFailed: the process failed at it, or has ended.
        """
        seen = 0
        while True:
            for row in list(answers(self._folder, seen)):
                seen += 1
                if "said" in row:
                    say(row["said"])
                if row.get("failed"):
                    why = row["failed"].rstrip(".")
                    raise ProgramFailed(f"Process {self._process.pid}: {why}{'' if why.endswith('?') else '.'}", "")
                if key in row:
                    return row
            self._look()
            time.sleep(LOOK_S)

    def _look(self) -> None:
        state = ""
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state in ("", "Z", "X") and not list(answers(self._folder)):
            raise ProgramFailed(f"Process {self._process.pid} has ended.", "")
        if state in ("", "Z", "X"):
            time.sleep(4 * LOOK_S)
            if not any("done" in row or row.get("failed") for row in answers(self._folder)):
                raise ProgramFailed(f"Process {self._process.pid} ended before it answered.", "")
