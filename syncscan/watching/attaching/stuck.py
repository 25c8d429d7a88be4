"""Read where the threads of a process stand that hears nothing: its main thread is in a call of C's.

Python 3.14 reads another process's frames by itself. Before that gdb has the process write them by the function that
`faulthandler` uses, which needs no GIL and allocates nothing. Neither runs any code of Python's in the process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from syncscan.watching.attaching.injection import GDB_ATTACH, GDB_S, PythonProcess, run_debugger

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
