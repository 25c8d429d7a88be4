"""Serve pages locally, and open them: requests are answered only with their secret and their own host name."""

from __future__ import annotations

import hmac
import html as markup
import http.server
import ipaddress
import secrets
import socket
import socketserver
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from syncscan.errors import UsageError

HEADERS = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
"""Headers of every answer: it isn't cached, and no other site learns the address, which holds the secret."""


class Gate:
    """Tells requests that may be answered from others."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.prefix = f"/{secrets.token_urlsafe(16)}"
        """How every path begins: 128 random bits, which no other user or site can guess."""

    def inside(self, path: str, host: str | None) -> str | None:
        """Return the path behind the secret, with its slash; None if the request may not be answered.

        A browser sends the name by which it found the server as `Host`: a page whose name suddenly points to this
        machine (DNS rebinding) asks by that name.
        """
        prefix, rest = path[: len(self.prefix)], path[len(self.prefix) :]
        known = hmac.compare_digest(prefix.encode("utf-8", "replace"), self.prefix.encode())
        return (rest or "/") if known and rest[:1] in ("", "/") and self._is_own_name(host) else None

    def _is_own_name(self, host: str | None) -> bool:
        name = (host or "").strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name in ("localhost", self.host.lower(), socket.gethostname().lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def is_local(host: str) -> bool:
    """Return whether only this machine can reach this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server(http.server.ThreadingHTTPServer):
    """A running server that says nothing about requests, neither those that are cut nor those that fail."""

    daemon_threads = True

    def __init__(self, host: str, port: int, handler: Callable[..., socketserver.BaseRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except OSError as e:
            why = f"{host}:{port} can't be used: {e.strerror}."
            raise UsageError(why, "Give another --port or --host.") from None
        self.origin = f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking a name server for the machine's full name, as the base class does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser may go away at any time, and a path may be none."""


class SecretPathHandler(http.server.BaseHTTPRequestHandler):
    """Answers GET below the secret, by `give`, and nothing else; a subclass sets `gate`."""

    gate: Gate
    server_version, sys_version = "syncscan", ""

    def do_GET(self) -> None:
        """Answer one request; all that isn't meant to be answered looks the same."""
        path = self.gate.inside(self.path, self.headers.get("Host"))
        if path is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            self.give(path)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
            self.send_error(HTTPStatus.NOT_FOUND)

    def give(self, path: str) -> None:
        raise NotImplementedError

    def answer(self, body: bytes, kind: str) -> None:
        self.begin(len(body), kind)
        self.wfile.write(body)

    def begin(self, length: int, kind: str) -> None:
        """Send what goes before a body."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def end_headers(self) -> None:
        for name, value in HEADERS:
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""


@contextmanager
def shown(url: str) -> Iterator[bool]:
    """Open a URL in the user's browser; gives False where there is none.

    Every user of a machine can read with what a browser was started: it gets a file that leads to the URL, which only
    its user can read, and which is there as long as the context.
    """
    with TemporaryDirectory(prefix="syncscan-") as folder:
        page = Path(folder, "open.html")
        target = markup.escape(url, quote=True)
        refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
        page.write_text(f'<!doctype html>{refresh}<a href="{target}">Open</a>')
        yield opens(page.as_uri())


def opens(url: str) -> bool:
    """Open a URL in the user's browser, and return whether there is one."""
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


class Page:
    """A running server of a page, for browsers that run on another machine or in a sandbox without its files."""

    def __init__(self, html: str, host: str = "127.0.0.1", port: int = 0) -> None:
        gate = Gate(host)
        handler = type("_Pages", (_PageHandler,), {"page": html, "gate": gate})
        server = Server(host, port, handler)
        self.url, self.close = f"{server.origin}{gate.prefix}/", server.close


class _PageHandler(SecretPathHandler):
    page = ""

    def give(self, path: str) -> None:
        if path != "/":
            raise FileNotFoundError(path)
        self.answer(self.page.encode("utf-8", "replace"), "text/html; charset=utf-8")
