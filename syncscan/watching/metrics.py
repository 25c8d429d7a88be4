"""Hand a watch's windows to other programs: Prometheus, TensorBoard."""

from __future__ import annotations

import contextlib
import http.server
import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from syncscan.errors import MissingExtra, UsageError, installing
from syncscan.watching.watch_file import ENCODER, RECORDS, Alarm, Begin, Record, Window

Sink = Callable[[Record], None]

GAUGES = {
    "step_seconds": "Mean step time in the last window.",
    "step_p99_seconds": "99th percentile of the step time in the last window.",
    "waiting_share": "Share of the last window in which the step's thread waited for the device.",
    "input_share": "Share of the last window in which the step's thread waited for a data loader.",
    "peers_share": "Share of the last window in which the step's thread waited for other ranks.",
}
"""Gauges of a window, with what they mean."""
MOST_RECORDS = 200
"""Records that are served: an hour of windows, and its alarms."""
TEXT, JSON_LINES = "text/plain; version=0.0.4; charset=utf-8", "application/jsonl; charset=utf-8"
LINE = "line_waiting_share"
LINE_HELP = "Share of the last window in which the step's thread waited for the device at this line."


def sinks_of(exports: Iterable[str | Sink]) -> list[Sink]:
    """Return a function for each export that takes a watch's records.

    Args:
        exports: `prometheus:PORT`, `prometheus:HOST:PORT`, `prometheus:FILE`, `tensorboard:FOLDER`,
            or such a function. Of several ranks on a machine each serves at the port after the one before.

    Raises:
        UsageError: another word, or a port that is taken.
        MissingExtra: its package isn't installed.
    """
    return [export if callable(export) else _sink(export) for export in exports]


def _sink(export: str) -> Sink:
    kind, _, target = export.partition(":")
    host, _, port = target.rpartition(":")
    if kind == "prometheus" and port.isdigit() and int(port) < 1 << 16:
        local = os.environ.get("LOCAL_RANK", "0")
        number = int(port) + (int(local) if local.isdigit() and int(port) else 0)
        return PrometheusPort(number, host.strip("[]") or "127.0.0.1")
    if kind == "prometheus" and target:
        return PrometheusFile(Path(target))
    if kind == "tensorboard" and target:
        return TensorBoard(target)
    raise UsageError(
        f"A watch can't export to '{export}'.",
        "Use prometheus:PORT, prometheus:HOST:PORT, prometheus:FILE or tensorboard:FOLDER.",
    )


def values(window: Window) -> dict[str, float]:
    """Return the value of each gauge of a window that has one."""
    shares = {"waiting_share": window.waiting, "input_share": window.input, "peers_share": window.peers}
    if window.step is None:
        return shares
    return {"step_seconds": window.step.mean_us / 1e6, "step_p99_seconds": window.step.p99_us / 1e6, **shares}


class Prometheus:
    """Text of the last window (text format 0.0.4)."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._alarms = 0
        self._window: Window | None = None

    def __call__(self, record: Record) -> None:
        if isinstance(record, Begin):
            self._labels = {"program": record.program, "rank": str(record.rank)}
        elif isinstance(record, Alarm):
            self._alarms += 1
        elif isinstance(record, Window):
            self._window = record

    def text(self) -> str:
        """Return the metrics; only the count of alarms before the first window has ended."""
        labels, window = self._labels, self._window
        rows: list[tuple[str, str, str, list[Any]]]
        rows = [("alarms_total", "counter", "Alarms since the watch started.", [(labels, self._alarms)])]
        if window is not None:
            steps = [(labels, window.total_steps)]
            rows.append(("steps_total", "counter", "Steps since the watch started.", steps))
            rows += [(name, "gauge", GAUGES[name], [(labels, value)]) for name, value in values(window).items()]
            lines = [
                ({**labels, "place": f"{line.file}:{line.line}", "rule": line.rule}, line.waiting)
                for line in window.lines
                if line.waiting
            ]
            rows.append((LINE, "gauge", LINE_HELP, lines))
        return "".join(
            f"{line}\n"
            for name, kind, words, samples in rows
            for line in _metric(f"syncscan_watch_{name}", kind, words, samples)
        )


def _metric(name: str, kind: str, words: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield the lines of one metric, with the labels and the value of each sample."""
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        yield f"{name}{{{inside}}} {value}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class PrometheusFile(Prometheus):
    """Writes the text to a file for node_exporter's textfile collector, whole or not at all."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path.absolute()

    def __call__(self, record: Record) -> None:
        super().__call__(record)
        if isinstance(record, Window):
            draft = self._path.with_name(f".{self._path.name}.draft")
            draft.write_text(self.text(), encoding="utf-8")
            draft.replace(self._path)


class PrometheusPort(Prometheus):
    """Serves the text at `http://127.0.0.1:PORT/metrics` from a thread, and the last records as lines at `/records`.

    Raises:
        UsageError: the port is taken.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__()
        of = self
        self._begin: Begin | None = None
        self._records: deque[Record] = deque(maxlen=MOST_RECORDS)

        class MetricsHandler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                records = self.path == RECORDS
                body = (of.records() if records else of.text()).encode()
                self.send_response(200 if records or self.path in ("/", "/metrics") else 404)
                self.send_header("Content-Type", JSON_LINES if records else TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing on the program's stderr."""

        try:
            self._server = http.server.ThreadingHTTPServer((host, port), MetricsHandler)
        except OSError as error:
            raise UsageError(f"Can't listen on port {port}: {error.strerror}.", "Choose another.") from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="syncscan-metrics", daemon=True).start()

    def __call__(self, record: Record) -> None:
        super().__call__(record)
        if isinstance(record, Begin):
            self._begin = record
        else:
            self._records.append(record)

    def records(self) -> str:
        """Return the first record and the last ones as JSON lines."""
        rows = [self._begin] if self._begin is not None else []
        return "".join(ENCODER.encode(record).decode() + "\n" for record in (*rows, *tuple(self._records)))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class TensorBoard:
    """Writes scalars of each window, by the step's number.

    Raises:
        MissingExtra: tensorboard isn't installed.
    """

    def __init__(self, folder: str) -> None:
        try:
            writers = importlib.import_module("torch.utils.tensorboard")
        except ImportError:
            raise MissingExtra("tensorboard isn't installed.", installing("tensorboard")) from None
        self._writer = writers.SummaryWriter(folder)

    def __call__(self, record: Record) -> None:
        if isinstance(record, Window):
            for name, value in values(record).items():
                self._writer.add_scalar(f"syncscan/{name}", value, record.total_steps)
            for line in record.lines:
                if line.waiting:
                    tag = f"syncscan/waiting/{Path(line.file).name}:{line.line}"
                    self._writer.add_scalar(tag, line.waiting, record.total_steps)
            self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def close(sinks: Iterable[Any]) -> None:
    for sink in sinks:
        with contextlib.suppress(Exception):
            getattr(sink, "close", lambda: None)()
