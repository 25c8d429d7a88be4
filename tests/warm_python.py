"""A `python` that has torch imported: what is started by it is forked from one process, in place of seconds of imports.

The fixture `warm_python` is a file that a test starts in place of `sys.executable`, or has for it (the fixture `warm`).
It hands its words, folder, environment and open files to the server of the whole run, which forks; signals, the end and
its code are passed on. A test about the interpreter's own start, process ids or groups starts `python` itself.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import gc
import importlib
import importlib.util
import os
import runpy
import select
import signal
import site
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from syncscan.capture.torch_hooks import unseen

IMPORTED = (
    "torch._dynamo",
    "torch.utils.cpp_extension",
    "syncscan.api",
    "syncscan.cli",
    "syncscan.capture.main_script",
    "syncscan.capture.session",
    "syncscan.report.html",
)
OF_ROOMS = (
    "syncscan.dryrun.pretend",
    "syncscan.dryrun.device_functions",
    "syncscan.dryrun.dispatch_mode",
    "syncscan.fixing.job_process",
)
"""Imported where they are: a room may have been taken away."""
HIGH = 500
"""Numbers of files from here on are no program's."""
LOST = 70
"""Exit code of a program whose server is gone."""

CLIENT = """\
#!{python} -IS
import os, signal, socket, sys
words = sys.argv[1:]
if not words or (words[0].startswith("-") and words[0] not in ("-m", "-c")):
    os.execv({python!r}, [{python!r}, *words])
passed = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]
signal.pthread_sigmask(signal.SIG_BLOCK, passed)
files = [number for number in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{{number}}")]
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
order = repr((words, os.getcwd(), dict(os.environ), files)).encode("utf-8", "surrogateescape")
socket.send_fds(server, [len(order).to_bytes(8, "big")], files)
server.sendall(order)
def answer():
    number = server.recv(8, socket.MSG_WAITALL)
    return int.from_bytes(number, "big", signed=True) if number else os._exit({lost})
pid = answer()
for number in passed:
    signal.signal(number, lambda number, frame: os.kill(pid, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, passed)
for number in files:
    os.close(number)
code = answer()
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextlib.contextmanager
def started(folder: Path) -> Iterator[str]:
    """Start a server, and return the file that is the `python`; what runs is ended with the server."""
    address, client = folder / "socket", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address), lost=LOST))
    client.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, "-c", "import sys; from tests import warm_python; warm_python.main(sys.argv[1])"]
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(address))
        door.listen(16)
        server = subprocess.Popen(
            [*words, str(door.fileno())],
            cwd=Path(__file__).parents[1],
            env=environment,
            stdin=subprocess.PIPE,
            pass_fds=(door.fileno(),),
        )
    assert server.stdin is not None
    with server.stdin:
        yield str(client)
    server.wait()


def main(door: str) -> None:
    """Serve until stdin ends; the children run their programs from here."""
    for name in IMPORTED:
        importlib.import_module(name)
    for name in OF_ROOMS:
        if importlib.util.find_spec(".".join(name.split(".")[:2])):
            importlib.import_module(name)
    unseen()
    for registration in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        registration.atexit = False  # torch would take its libraries apart at each end
    gc.collect()
    gc.freeze()
    if words := Server(socket.socket(fileno=int(door))).next_program():
        _run(words)


class Server:
    """Forks a child for each client, ends it with its client, and answers with its exit code."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._clients: dict[int, socket.socket] = {}
        self._awake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)

    def next_program(self) -> list[str]:
        """Return the words of a program in a child that is to run it, and nothing in the server when that ends."""
        while True:
            ready, _, _ = select.select([0, self._awake, self._door, *self._clients.values()], [], [])
            if self._awake in ready:
                os.read(self._awake, 1024)
                self._answer_ended()
            for pid, client in list(self._clients.items()):
                if 0 in ready or client in ready:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                    self._clients.pop(pid).close()
            if 0 in ready:
                return []
            if self._door in ready and (words := self._forked()):
                return words

    def _answer_ended(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if client := self._clients.pop(ended[0], None):
                    with client, contextlib.suppress(OSError):
                        client.sendall(_number(os.waitstatus_to_exitcode(ended[1])))

    def _forked(self) -> list[str]:
        client, _ = self._door.accept()
        size, files, _, _ = socket.recv_fds(client, 8, 250)
        order = client.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        pid = os.fork()
        if not pid:
            for held in (client, self._door, *self._clients.values()):
                held.detach()  # its number may be a file of the program's
            return _become(order.decode("utf-8", "surrogateescape"), files)
        for file in files:
            os.close(file)
        self._clients[pid] = client
        with contextlib.suppress(OSError):  # who has ended meanwhile is seen to
            client.sendall(_number(pid))
        return []


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _become(order: str, files: list[int]) -> list[str]:
    """Take a client's files, folder, environment and words; return the words."""
    words, folder, environment, numbers = ast.literal_eval(order)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, HIGH) for file in files]
    os.closerange(0, HIGH)
    for file, number in zip(high, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(write_through=unbuffered, line_buffering=unbuffered)
    sys.stderr.reconfigure(write_through=True, line_buffering=True)
    return list(words)


def _run(words: list[str]) -> None:
    """Run a program as `python WORDS` does: what it raises is the interpreter's to show."""
    first = "" if words[0] == "-c" else str(Path.cwd() if words[0] == "-m" else Path(words[0]).resolve().parent)
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [first, *given, *sys.path[1:]]
    module = sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = [words[0], *words[2:]] if words[0] in ("-m", "-c") else words
    sys.modules.pop("sitecustomize", None)
    site.execsitecustomize()  # that of the client's path, as at an interpreter's start
    if words[0] == "-m":
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]
    elif words[0] == "-c":
        exec(compile(words[1], "<string>", "exec"), vars(module))
    else:
        module.__file__ = words[0]
        exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), vars(module))
