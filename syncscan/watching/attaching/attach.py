"""Attach to a process: give it an order, and wait for what it answers; read its frames where it hears nothing.

It hears nothing while its main thread is in a call of C's. Python 3.14 reads another process's frames by itself. Before
that gdb has the process write them by the function that `faulthandler` uses, which needs no GIL and allocates nothing.
Neither runs any code of Python's in the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from syncscan.errors import ProgramFailed
from syncscan.watching.attaching.injection import GDB_ATTACH, GDB_S, PythonProcess, run_debugger, run_line
from syncscan.watching.attaching.requests import Order, answers

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
            from syncscan.watching.attaching.inside import carry_out
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


def attached(
    process: PythonProcess, order: Order, *, heard_s: float = HEARD_S
) -> contextlib.AbstractContextManager[Answers]:
    """Return a context in which a process has been given an order, with its answers.

    An order that isn't heard is taken back at the context's end, and never carried out.

    Raises:
        UsageError: the process can't be reached.
        NotHeard: its main thread didn't come to it.
    """
    return _attached(process, order, heard_s)


@contextlib.contextmanager
def _attached(process: PythonProcess, order: Order, heard_s: float) -> Iterator[Answers]:
    folder = Path(tempfile.mkdtemp(prefix="syncscan-attach-"))
    try:
        replace(order, asker=os.getpid()).write(folder)
        script = folder / SCRIPT
        package = str(Path(__file__).parents[2])
        script.write_text(BOOTSTRAP.replace("FOLDER", repr(str(folder))).replace("PACKAGE", repr(package)))
        if process.uid != os.geteuid():
            for path in (folder, folder / "order.json", script):
                os.chown(path, process.uid, -1)
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
        if process.uid != os.geteuid():
            for path in (folder, script):
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
                    "syncscan attach PID --dump shows the call.",
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


Frames = list[tuple[str, int, str]]
"""File, line and function of each frame of a thread, innermost first."""

_READ = """
import _remote_debugging, json, sys
pid = int(sys.argv[1])
rows = []
for thread in _remote_debugging.RemoteUnwinder(pid, all_threads=True).get_stack_trace():
    frames = [(f.filename, f.lineno, f.funcname) for f in thread.frame_info]
    rows.append((thread.thread_id == pid, frames))
print(json.dumps(rows))
"""
_WRITE = (
    GDB_ATTACH
    + r"""    page = int(gdb.parse_and_eval("((char*(*)(void*,unsigned long,int,int,int,long))mmap)(0,4096,3,34,-1,0)"))
    if page in (0, 2**64 - 1):
        raise gdb.error("the process has no memory left")
    gdb.selected_inferior().write_memory(page, PATH)
    file = int(gdb.parse_and_eval("((int(*)(char*,int,int))open)((char*)%d,1025,0)" % page))
    if file >= 0:
        call = "((char*(*)(int,void*,void*))_Py_DumpTracebackThreads)(%d,(void*)0,(void*)0)" % file
        gdb.parse_and_eval(call)
        gdb.parse_and_eval("((int(*)(int))close)(%d)" % file)
    gdb.parse_and_eval("((int(*)(void*,unsigned long))munmap)((void*)%d,4096)" % page)
except gdb.error:
    pass
finally:
    try:
        gdb.execute("detach", to_string=True)
    except gdb.error:
        pass
"""
)


def python_frames(process: PythonProcess) -> list[Frames]:
    """Return the frames of each thread, the main one's first; empty where they can't be read."""
    try:
        return _by_python(process) if process.remote else _by_gdb(process)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


def _by_python(process: PythonProcess) -> list[Frames]:
    words = [process.executable, "-I", "-S", "-c", _READ, str(process.pid)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=GDB_S, check=True)
    rows = sorted(json.loads(done.stdout), key=lambda row: not row[0])
    return [[(file, line, function) for file, line, function in frames] for _, frames in rows]


def _by_gdb(process: PythonProcess) -> list[Frames]:
    gdb = shutil.which("gdb")
    if gdb is None:
        return []
    with tempfile.TemporaryDirectory(prefix="syncscan-dump-") as folder:
        written, commands = Path(folder) / "frames", Path(folder) / "commands.py"
        written.touch(mode=0o600)
        commands.write_text(_WRITE.replace("PID", str(process.pid)).replace("PATH", repr(os.fsencode(written) + b"\0")))
        if process.uid != os.geteuid():
            for path in (Path(folder), written):
                os.chown(path, process.uid, -1)
        run_debugger([gdb, "-nx", "-batch", "-iex", "set auto-load off", "-x", str(commands)])
        return _parsed(written.read_text(errors="replace"))


def _parsed(text: str) -> list[Frames]:
    """Return the threads of faulthandler's text; the one that gdb had chosen is the main one."""
    main: list[Frames] = []
    other_threads: list[Frames] = []
    for part in re.split(r"\n(?=\S)", text):
        frames = re.findall(r'^  File "(.*)", line (\d+) in (.*)$', part, re.MULTILINE)
        threads = main if part.startswith("Current thread") else other_threads
        threads.append([(file, int(line), function) for file, line, function in frames])
    return [frames for frames in (*main, *other_threads) if frames]
