"""Have a running process of Python's run a line of code, by Python's own means or by a debugger.

Python 3.14 and later run a script in another process by themselves (`sys.remote_exec`, PEP 768). Before that gdb, or
lldb where there is no gdb, stops the process for a fraction of a second and calls two functions in it: `mmap`, for a
page that holds the line, and `Py_AddPendingCall`, which may be called at any time and by any thread. The line then runs
when the main thread is between two instructions, never in the middle of an allocation or of torch. While it is in a
call of C's nothing runs. The page stays with the process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from syncscan.errors import UsageError

REMOTE_EXEC = (3, 14)
GDB_S = 60.0
"""How long gdb may take; where all symbols of torch's and CUDA's libraries are read that takes some seconds."""
_GDB = r"""
import gdb
OPTIONS = "auto-load off;pagination off;confirm off;unwindonsignal on;debuginfod enabled off;auto-solib-add off"
for option in OPTIONS.split(";"):
    try:
        gdb.execute("set " + option)
    except gdb.error:
        pass
# A signal that stops any thread would break off a call in the midst, and the process would end by it. Only what shows
# that the call itself failed stops it. A stop is dropped: the call would never return.
gdb.execute("handle all nostop noprint pass", to_string=True)
for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"):
    gdb.execute("handle " + name + " stop", to_string=True)
gdb.execute("handle SIGSTOP nopass", to_string=True)
try:
    gdb.execute("attach PID", to_string=True)
    # Only these libraries' symbols: torch's and CUDA's take seconds to read, and half a gigabyte.
    for library in ("libc[.]so", "libc-", "libpython"):
        gdb.execute("sharedlibrary " + library, to_string=True)
    # Some can write a part of the registers alone (13 and earlier, on processors with AMX). A call would change that
    # part, fail at the others, and leave the thread where it crashes. So one of the others is written first.
    flags = gdb.parse_and_eval("$mxcsr")
    if flags.type.code != gdb.TYPE_CODE_VOID:
        try:
            for value in (int(flags) ^ 1, int(flags)):
                gdb.execute("set var $mxcsr = %d" % value, to_string=True)
        except gdb.error:
            print("SYNCSCAN UNABLE " + gdb.VERSION)
            raise
    name = str(gdb.newest_frame().name())
    if "pending" in name.lower():
        raise gdb.error("the main thread is handling another request")
    page = int(gdb.parse_and_eval("((char*(*)(void*,unsigned long,int,int,int,long))mmap)(0,4096,3,34,-1,0)"))
    if page in (0, 2**64 - 1):
        raise gdb.error("the process has no memory left")
    gdb.selected_inferior().write_memory(page, LINE)
    call = "((int(*)(void*,void*))Py_AddPendingCall)((void*)PyRun_SimpleString,(void*)%d)" % page
    if int(gdb.parse_and_eval(call)) != 0:
        raise gdb.error("Python takes no further request now")
    print("SYNCSCAN DONE")
except gdb.error as error:
    print("SYNCSCAN FAILED " + str(error).splitlines()[0])
finally:
    try:
        gdb.execute("detach", to_string=True)
    except gdb.error:
        pass
"""
"""Script for gdb, which stops process PID, reads the symbols that it needs, and has it run LINE.

It prints `UNABLE` and gdb's version where gdb would harm the process. Linux takes the extended registers in one piece
only (`xstateregs_set` in arch/x86/kernel/fpu/regset.c), and gdb knows how long that is since 14 (binutils-gdb b42405a).
"""


@dataclass(frozen=True, slots=True)
class PythonProcess:
    """A running process of Python's: its number, user, program, and Python's version."""

    pid: int
    uid: int
    executable: str
    version: tuple[int, int]

    @property
    def remote(self) -> bool:
        """Return whether its Python can be asked by `sys.remote_exec`."""
        return self.version >= REMOTE_EXEC


def process_of(pid: int) -> PythonProcess:
    """Return a process, if it may be attached to.

    Raises:
        UsageError: there is none, it isn't Python's, or this user, this container or the system's settings forbid it.
    """
    folder = Path("/proc") / str(pid)
    if not Path("/proc/self").exists():
        raise UsageError(
            "Attaching needs Linux's /proc; no debugger is driven on this system, lldb neither.",
            "Start the job with syncscan watch SCRIPT.",
        )
    try:
        uid = folder.stat().st_uid
    except OSError:
        raise UsageError(f"Process {pid} doesn't exist.") from None
    if uid != os.geteuid() and os.geteuid() != 0:
        raise UsageError(f"Process {pid} belongs to another user.", "Attach as that user, or as root.")
    _same_container(pid)
    try:
        executable, maps = str((folder / "exe").readlink()), (folder / "maps").read_text()
    except OSError:
        raise UsageError(
            f"The system doesn't allow access to process {pid}.",
            "Give this command CAP_SYS_PTRACE (for a container: --cap-add SYS_PTRACE).",
        ) from None
    version = _version(executable, maps)
    if version is None:
        raise UsageError(f"Process {pid} is {executable}, not Python.", "Give the PID of the Python process itself.")
    process = PythonProcess(pid, uid, executable, version)
    _allowed(process)
    return process


def run_line(process: PythonProcess, script: Path) -> None:
    """Have a process run a script of Python's when its main thread comes to it; it may not have run on return.

    Args:
        script: a file that the process can read; what it raises is lost.

    Raises:
        UsageError: there is no debugger, or it could not.
    """
    if process.remote:
        _by_python(process, script)
    elif shutil.which("gdb") is None and (lldb := shutil.which("lldb")):
        _by_lldb(lldb, process, script)
    else:
        _by_gdb(process, script)


def run_debugger(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a debugger to its end; Ctrl-C waits for it, as one that is killed while it calls a function ends the process.

    Raises:
        TimeoutExpired: it took too long, and was killed.
        KeyboardInterrupt: there was a Ctrl-C meanwhile.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C goes to all of its session
    )
    interrupted: KeyboardInterrupt | None = None
    until = time.monotonic() + GDB_S
    while True:
        try:
            out, error = process.communicate(timeout=max(0.0, until - time.monotonic()))
            break
        except KeyboardInterrupt as now:
            interrupted = now
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if interrupted is not None:
        raise interrupted
    return subprocess.CompletedProcess(words, process.returncode, out, error)


def _by_python(process: PythonProcess, script: Path) -> None:
    """Ask with the process's own Python, whose version must be the same."""
    code = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
    words = [process.executable, "-I", "-S", "-c", code, str(process.pid), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=GDB_S)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(f"Python can't attach to process {process.pid} ({why}).", _ALLOW)


def _by_gdb(process: PythonProcess, script: Path) -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        version = ".".join(map(str, process.version))
        raise UsageError(
            f"Attaching to process {process.pid} (Python {version}) needs gdb or lldb, and neither is installed.",
            "Install one of them. Python 3.14 and later don't need it.",
        )
    with tempfile.NamedTemporaryFile("w", suffix=".py") as commands:
        commands.write(_GDB.replace("PID", str(process.pid)).replace("LINE", repr(_line(script))))
        commands.flush()
        try:
            done = run_debugger([gdb, "-nx", "-batch", "-iex", "set auto-load off", "-x", commands.name])
        except subprocess.TimeoutExpired:
            raise UsageError(f"gdb didn't finish with process {process.pid} within {GDB_S:.0f} s.") from None
    if "SYNCSCAN DONE" in done.stdout:
        return
    if unable := re.search(r"SYNCSCAN UNABLE (.*)", done.stdout):
        raise UsageError(
            f"gdb {unable[1]} can't write this processor's registers, and would end process {process.pid}. It goes on.",
            "Install gdb 14 or later. lldb is taken where there is no gdb.",
        )
    failed = re.search(r"SYNCSCAN FAILED (.*)", done.stdout)
    why = (failed[1] if failed else (done.stderr.strip().splitlines() or ["no reason given"])[-1]).strip(". ")
    raise UsageError(f"gdb couldn't attach to process {process.pid}: {why}.", _ALLOW)


def _line(script: Path) -> bytes:
    """Return the line of Python's that runs a script, as a string of C's; what it raises is lost."""
    run = f"exec(open({str(script)!r}).read(), {{'__name__': 'syncscan_attached'}})"
    return f"try:\n {run}\nexcept BaseException: pass\n\0".encode()


_EXPRESSION = "expr --unwind-on-error true --timeout 10000000 -- "
_PAGE = "char *$page = (char*)((void*(*)(void*,unsigned long,int,int,int,long))mmap)(0,4096,3,34,-1,0)"
_RUN = "unsigned long $run = (unsigned long)&PyRun_SimpleString"
_CALL = "(int)((int(*)(unsigned long,void*))Py_AddPendingCall)($run, $page)"


def _by_lldb(lldb: str, process: PythonProcess, script: Path) -> None:
    """Do as gdb does, by commands of lldb's: its own Python isn't always there."""
    with tempfile.NamedTemporaryFile() as line:
        line.write(_line(script))
        line.flush()
        commands = [
            "settings set target.preload-symbols false",
            f"process attach -p {process.pid}",
            _EXPRESSION + _PAGE,
            f"memory write -i {line.name} $page",
            _EXPRESSION + _RUN,
            _EXPRESSION + _CALL,
            "detach",
        ]
        words = [lldb, "--no-lldbinit", "--batch", *(word for command in commands for word in ("-o", command))]
        try:
            done = run_debugger(words)
        except subprocess.TimeoutExpired:
            raise UsageError(f"lldb didn't come back from process {process.pid} in {GDB_S:.0f} s.") from None
    if re.search(r"^\(int\) \$\d+ = 0$", done.stdout, re.M):
        return
    errors = re.findall(r"^error: (.*)", done.stdout + done.stderr, re.M)
    why = (errors or ["Python takes no further request now"])[0].strip(". ")
    raise UsageError(f"lldb couldn't attach to process {process.pid}: {why}.", _ALLOW)


_ALLOW = "If the system forbids it, use CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0."


def _version(executable: str, maps: str) -> tuple[int, int] | None:
    """Return the version of Python that a process runs, by its library or its program's name."""
    for text in (maps, executable):
        if match := re.search(r"(?:libpython|/python)(\d)\.(\d+)", text):
            return int(match[1]), int(match[2])
    return None


def _same_container(pid: int) -> None:
    try:
        same = Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return
    if not same:
        raise UsageError(f"Process {pid} runs in another container.", "Run this command inside that container.")


def _allowed(process: PythonProcess) -> None:
    """Refuse what would fail, with the reason."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    if re.search(r"^State:\s*T", status, re.M):
        raise UsageError(
            f"Process {process.pid} is stopped, by SIGSTOP or Ctrl-Z, so nothing runs in it.",
            f"To let it go on: kill -CONT {process.pid}",
        )
    if (tracer := re.search(r"^TracerPid:\s*(\d+)", status, re.M)) and tracer[1] != "0":
        raise UsageError(
            f"Process {process.pid} is already being debugged by process {tracer[1]}.", "Stop the debugger first."
        )
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    level = int(scope.read_text()) if scope.exists() else 0
    if level == 3 or (level and not _capable()):
        raise UsageError(
            f"The system doesn't allow access to other processes (kernel.yama.ptrace_scope is {level}).",
            "As root: sysctl kernel.yama.ptrace_scope=0, or give this command CAP_SYS_PTRACE.",
        )
    if process.remote:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()
        if b"PYTHON_DISABLE_REMOTE_DEBUG=" in words or b"disable-remote-debug" in words:
            raise UsageError(f"Process {process.pid} was started with remote debugging disabled.")


def _capable() -> bool:
    """Return whether this process has CAP_SYS_PTRACE, number 19."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.M)
    return bool(match and int(match[1], 16) >> 19 & 1)
