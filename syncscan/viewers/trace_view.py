"""Serve TensorBoard's Trace View of a log folder, also on a machine without the internet.

The PyTorch plugin (torch-tb-profiler 0.4.3, the last there will be) pulls two scripts from the internet, Google's chart
loader and a polyfill of web components version 0, and its page waits for both for ever. On its way to the browser the
page gets short scripts of our own instead (for the chart loader only offline: a stub draws no charts), and what it
imports is put into it; the installed plugin stays as it is.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from syncscan.errors import MissingExtra, UsageError, installing
from syncscan.viewers.annotate import Opening
from syncscan.viewers.private_server import Gate

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Rewrite = Callable[[bytes], bytes]
"""Changes an answer on its way to the browser."""

CHART_HOST = "www.gstatic.com"
"""Where the plugin's page gets its chart loader from."""
PLUGIN = "/data/plugin/pytorch_profiler"
"""Where TensorBoard serves the plugin's pages and data."""

_CHART_LOADER = re.compile(rb'<script src="https://www\.gstatic\.com/charts/loader\.js"></script>')
_POLYFILL = re.compile(rb'<script src="https://cdnjs\.cloudflare\.com/[^"]*webcomponents[^"]*"></script>')
_IMPORT = re.compile(rb'<link rel="import" href="trace_viewer_full\.html"[^>]*>')
_INSTALL = f"{installing('tensorboard')}, or use --in perfetto or --in html."


def check() -> None:
    """Find out what would keep TensorBoard from starting, before it is started."""
    tensorboard = _version("tensorboard")
    if tensorboard is None:
        raise MissingExtra("TensorBoard isn't installed.", _INSTALL)
    if _version("torch-tb-profiler") is None:
        raise MissingExtra("TensorBoard's PyTorch plugin (torch-tb-profiler) isn't installed.", _INSTALL)
    setuptools = _version("setuptools")
    if _number(tensorboard) < (2, 21) and (setuptools is None or _number(setuptools) >= (82,)):
        problem = f"setuptools {setuptools} has none" if setuptools else "setuptools isn't installed"
        raise UsageError(
            f"TensorBoard {tensorboard} can't start: it needs pkg_resources, and {problem}.",
            "pip install 'tensorboard>=2.21' (or 'setuptools<82').",
        )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def charts_reachable(timeout: float = 2.0) -> bool:
    """Return whether the host of the chart loader answers within `timeout` seconds."""
    try:
        socket.create_connection((CHART_HOST, 443), timeout=timeout).close()
    except OSError:
        return False
    return True


class TraceView:
    """A running TensorBoard over one log folder; it ends with the process.

    Each folder in `logdir` with `NAME.pt.trace.json[.gz]` is a run. Port 0 is any that is free. `offline` does without
    the chart loader, and so without the charts of the plugin's other views. `opening` is where Trace View opens, None
    for the whole trace; `size`, in words, is shown while it loads.
    """

    def __init__(
        self,
        logdir: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        offline: bool = True,
        opening: Opening | None = None,
        size: str = "",
    ) -> None:
        from tensorboard import default, program
        from tensorboard.util import tb_logging

        _refuse_taken(host, port)
        tb_logging.get_logger().setLevel(logging.CRITICAL)
        logging.getLogger("pytorch_profiler").setLevel(logging.ERROR)
        self._gate = Gate(host)
        runs = Meanwhile(logdir)
        self._pages = partial(Pages, offline=offline, gate=self._gate, opening=opening, size=size, runs=runs)
        board = program.TensorBoard(plugins=default.get_plugins(), server_class=self._server)
        where = ("--host", host, "--port", str(port), f"--path_prefix={self._gate.prefix}")
        board.configure(["tensorboard", "--logdir", str(logdir), *where, "--load_fast=false"])
        try:
            self.url = f"{board.launch()}#pytorch_profiler"
        except program.TensorBoardServerException as e:
            raise UsageError(f"TensorBoard can't start: {e.msg}.", "Give another --port or --host.") from None

    def _server(self, app: WSGI, flags: Any) -> Any:
        from tensorboard import program

        return program.WerkzeugServer(self._pages(app), flags)


def _refuse_taken(host: str, port: int) -> None:
    """Say that a port is taken before TensorBoard's plugin has started processes of its own."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as e:
        why = f"{host}:{port} can't be used: {e.strerror}."
        raise UsageError(why, "Give another --port or --host.") from None


class Pages:
    """A WSGI app around TensorBoard's: who may not ask gets nothing, and some answers are rewritten on their way.

    `offline` also replaces the chart loader. `opening` is where Trace View opens, None for the whole trace; `size`, in
    words, is shown while it loads. `runs` makes the plugin's list of runs what the page is to see, and may answer for
    it; None to leave both.
    """

    def __init__(
        self,
        app: WSGI,
        offline: bool,
        gate: Gate,
        opening: Opening | None = None,
        size: str = "",
        runs: Meanwhile | None = None,
    ) -> None:
        self._app, self._gate, self._runs = app, gate, runs
        self._rewrites: dict[str, Rewrite] = {
            f"{PLUGIN}/views": trace_view_first,
            f"{PLUGIN}/trace_embedding.html": partial(with_viewer_inside, opening=opening),
        }
        self._rewrites[f"{PLUGIN}/index.html"] = partial(plugins_page, offline=offline, size=size)
        if runs:
            self._rewrites[f"{PLUGIN}/runs"] = runs.runs

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = self._gate.inside(environ.get("PATH_INFO", ""), environ.get("HTTP_HOST"))
        if path is None:
            start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")])
            return [b""]
        if self._runs and (answer := self._runs.answer(path, environ.get("QUERY_STRING", ""))):
            return answer(start_response)

        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("Referrer-Policy", "no-referrer")], *rest)

        rewrite = self._rewrites.get(path)
        if rewrite is None:
            return self._app(environ, started)
        return self._rewritten(environ, started, rewrite)

    def _rewritten(
        self, environ: dict[str, Any], start_response: Callable[..., Any], rewrite: Rewrite
    ) -> Iterator[bytes]:
        status, headers, body = self._answer(environ)
        body = rewrite(body) if status.startswith("200") else body
        passed_on = [(k, v) for k, v in headers if k.lower() != "content-length"]
        start_response(status, [*passed_on, ("Content-Length", str(len(body)))])
        yield body

    def _answer(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        answer: list[Any] = []
        unpacked = {k: v for k, v in environ.items() if k != "HTTP_ACCEPT_ENCODING"}
        body = b"".join(self._app(unpacked, lambda status, headers, *_: answer.extend((status, headers))))
        return answer[0], answer[1], body


class Meanwhile:
    """Answers for runs that the plugin hasn't read yet: each has Trace View, which needs nothing but the file.

    The plugin reads each run in a thread of its own, a large one in minutes; its page opens the first run that it is
    told of, and stays there.
    """

    def __init__(self, logdir: Path) -> None:
        self._files = {file.parent.name: file for file in sorted(logdir.glob("*/*.json.gz"))}
        self._ready: set[str] = set()

    def runs(self, theirs: bytes) -> bytes:
        """Return the plugin's list of runs, including expected ones."""
        known = json.loads(theirs)
        self._ready = set(known["runs"])
        return json.dumps({**known, "runs": sorted(self._ready | set(self._files))}).encode()

    def answer(self, path: str, query: str) -> Callable[[Callable[..., Any]], Iterable[bytes]] | None:
        """Return the answer to a request of Trace View; None to leave it to the plugin."""
        run = urllib.parse.parse_qs(query).get("run", [""])[0]
        if run in self._ready or run not in self._files:
            return None
        file = self._files[run]
        if path == f"{PLUGIN}/trace":
            return partial(_send, file.read_bytes(), ("Content-Encoding", "gzip"))
        worker = file.name.removesuffix(".pt.trace.json.gz")
        known = {"views": ["Trace"], "workers": [worker], "spans": ["default"]}
        name = path.removeprefix(f"{PLUGIN}/")
        return partial(_send, json.dumps(known[name]).encode()) if name in known else None


def _send(body: bytes, *rest: Any) -> Iterable[bytes]:
    *headers, start_response = rest
    kind = ("Content-Type", "application/json")
    start_response("200 OK", [kind, *headers, ("Content-Length", str(len(body))), ("Referrer-Policy", "no-referrer")])
    return [body]


def trace_view_first(views: bytes) -> bytes:
    """Return the plugin's list of views with Trace View in front: its page opens the first."""
    return json.dumps(sorted(json.loads(views), key=lambda name: name != "Trace")).encode()


def plugins_page(page: bytes, offline: bool, size: str = "") -> bytes:
    """Return the plugin's page, with a progress message; offline, with a stub for the chart loader."""
    if offline:
        page = _CHART_LOADER.sub(lambda _: _script("charts.js"), page)
    sentence = f"TensorBoard reads the trace{f', {size},' if size else ''} before showing it."
    return page + _script("waiting.js", waiting={"said": sentence, "until": "a view"})


def with_viewer_inside(page: bytes, opening: Opening | None = None) -> bytes:
    """Return the page around Trace View with the viewer inlined, and our scripts that wait and open it."""
    import torch_tb_profiler

    viewer = Path(torch_tb_profiler.__file__).with_name("static") / "trace_viewer_full.html"
    # The viewer has elements that only a body may hold; where it ends, the page's own head goes on as body.
    page = page.replace(b"</head>", b"").replace(b"<body>", b"")
    page = _POLYFILL.sub(lambda _: _script("elements.js"), page)
    page = _IMPORT.sub(lambda _: viewer.read_bytes(), page)
    page += _script("waiting.js", waiting={"said": "Trace View fetches the trace and draws it.", "until": "a trace"})
    return page + _script("opening.js", opening=_relative(opening)) if opening else page


def _relative(opening: Opening) -> dict[str, str | int | float]:
    """Return an opening for the viewer, whose clock begins with the trace, in ms from the sync on."""
    before, after = opening.sync.begin - opening.view.begin, opening.view.end - opening.sync.begin
    return {"id": opening.id, "number": opening.number, "before_ms": before / 1e6, "after_ms": after / 1e6}


def _script(name: str, **constants: Any) -> bytes:
    text = resources.files("syncscan.viewers").joinpath(f"pages/{name}").read_bytes()
    # Python's JSON may hold what ends a script in HTML.
    known = "".join(f"const {k} = {json.dumps(v)};\n" for k, v in constants.items()).replace("<", "\\u003c")
    return b"<script>\n" + known.encode() + text + b"</script>"
