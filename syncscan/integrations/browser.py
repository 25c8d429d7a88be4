"""A page of our own for the browser: from a URL to a browser window, and from HTML text to a local server."""

from __future__ import annotations

import http.server
import threading
import webbrowser

from syncscan.errors import UsageError


def show(url: str) -> bool:
    """Open a URL in the user's browser; False where there is none."""
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


class Page:
    """A running server of one page, for browsers that run on another machine or in a sandbox without its files.

    Args:
        html: the page.
        host: address to listen on.
        port: port to listen on; 0 for any that is free.

    Raises:
        UsageError: the port is taken.
    """

    def __init__(self, html: str, host: str = "127.0.0.1", port: int = 0) -> None:
        page = html.encode("utf-8", "replace")
        handler = type("_OnePage", (_Handler,), {"page": page})
        try:
            self._server = http.server.ThreadingHTTPServer((host, port), handler)
        except OSError as e:
            why = f"{host}:{port} can't be listened on: {e.strerror}."
            raise UsageError(why, "Give another --port or --host.") from None
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self) -> None:
        """Give the page, whatever is asked for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""
