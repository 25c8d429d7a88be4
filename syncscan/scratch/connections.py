"""Names the machines that a program connects to: what it sends them can't be held back."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

_HERE = ("", "localhost", "0.0.0.0", "::", "::1")


def name_connections(tell: Callable[[str], None], is_on: Callable[[], bool] = lambda: True) -> None:
    """Tell of each other machine before this process first connects to it; as long as the process runs.

    Only connections by Python's `socket` are seen.

    Args:
        tell: gets the machine's name or address.
        is_on: says whether a connection counts now.
    """
    told: set[str] = set()
    asked: set[object] = set()

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if not event.startswith("socket.") or not is_on():
            return
        if event == "socket.getaddrinfo":
            host, port = arguments[0], arguments[1]
            asked.add(_number(port))
        elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][1] not in asked:
            host = arguments[1][0]
        else:
            return
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name not in told and not _is_here(name):
            told.add(name)
            tell(name)

    sys.addaudithook(heard)


def _number(port: object) -> object:
    return int(port) if isinstance(port, str) and port.isdigit() else port


def _is_here(name: str) -> bool:
    return name in _HERE or name.startswith("127.") or name == socket.gethostname()
