"""Open a URL in the browser, and serve an HTML page locally."""

from __future__ import annotations

import html as markup
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from syncscan.integrations.private_server import Gate, SecretPathHandler, Server


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
    """A running server of a page, for browsers that run on another machine or in a sandbox without its files.

    Args:
        html: the page.
        host: address to listen on.
        port: port to listen on; 0 for any that is free.

    Raises:
        UsageError: the port is taken.
    """

    def __init__(self, html: str, host: str = "127.0.0.1", port: int = 0) -> None:
        gate = Gate(host)
        handler = type("_Pages", (_PageHandler,), {"page": html, "gate": gate})
        self._server = Server(host, port, handler)
        self.url = f"{self._server.origin}{gate.prefix}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _PageHandler(SecretPathHandler):
    page = ""

    def give(self, path: str) -> None:
        """Send the page, and no file."""
        if path != "/":
            raise FileNotFoundError(path)
        self.answer(self.page.encode("utf-8", "replace"), "text/html; charset=utf-8")
