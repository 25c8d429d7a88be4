"""A watch's windows reach Prometheus and TensorBoard."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import TraceNotFound, UsageError
from syncscan.watching.metrics import MOST_RECORDS, Prometheus, PrometheusPort, TensorBoard, sinks_of
from syncscan.watching.watch_file import fetch
from tests.watching.example import ALARM, begin, window


def test_prometheus_text_has_the_last_window() -> None:
    """Each family with its help and type; a line by its place and rule."""
    metrics = Prometheus()
    for record in (begin(), window(1, 0.1), ALARM, window(2, 0.25)):
        metrics(record)
    text = metrics.text()
    assert 'syncscan_watch_waiting_share{program="train",rank="0"} 0.25' in text
    assert (
        'syncscan_watch_line_waiting_share{program="train",rank="0",place="/job/train.py:41",rule="item"} 0.25' in text
    )
    assert 'syncscan_watch_alarms_total{program="train",rank="0"} 1' in text
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families)) == 8


def test_a_file_is_replaced_with_each_window(tmp_path: Path) -> None:
    (sink,) = sinks_of([f"prometheus:{tmp_path / 'watch.prom'}"])
    for record in (begin(), window(1), window(2, 0.5)):
        sink(record)
    assert "waiting_share" in (tmp_path / "watch.prom").read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["watch.prom"]


def test_a_port_serves_the_last_records_to_the_screen() -> None:
    """`syncscan watch URL` reads them; an address where nobody answers, or answers something else, is refused."""
    port = PrometheusPort(0)
    for record in (begin(), window(1, 0.1), window(2, 0.25), ALARM):
        port(record)
    address = f"http://127.0.0.1:{port.port}"
    watched = fetch(address)
    assert (watched.begin, watched.windows, watched.alarms) == (begin(), (window(1, 0.1), window(2, 0.25)), (ALARM,))
    shown = CliRunner().invoke(group, ["watch", "--once", f"{address}/metrics"], catch_exceptions=False).stdout
    assert "waiting: 25% for the device" in shown
    with pytest.raises(TraceNotFound, match=r"nowhere\.jsonl doesn't answer: .*Not Found"):
        fetch(f"{address}/nowhere.jsonl")
    port.close()
    with pytest.raises(TraceNotFound, match="doesn't answer"):
        fetch(address)


def test_only_the_last_records_are_stored() -> None:
    port = PrometheusPort(0)
    for number in range(1, 1000):
        port(window(number))
    assert len(port.records().splitlines()) == MOST_RECORDS
    port.close()


def test_each_rank_of_a_machine_serves_at_its_own_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host may be named too."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    free = PrometheusPort(0)
    free.close()
    (sink,) = sinks_of([f"prometheus:127.0.0.1:{free.port - 1}"])
    assert isinstance(sink, PrometheusPort)
    assert sink.port == free.port
    sink.close()


def test_a_port_serves_the_text() -> None:
    """To this machine alone; a port that is taken is refused."""
    port = PrometheusPort(0)
    port(begin())
    port(window(1))
    with urllib.request.urlopen(f"http://127.0.0.1:{port.port}/metrics") as answer:
        assert answer.read().decode() == port.text()
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    with pytest.raises(UsageError, match="Can't listen on port"):
        PrometheusPort(port.port)
    port.close()


def test_tensorboard_has_scalars_by_step(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sink = TensorBoard(str(tmp_path))
    for record in (begin(), window(1, 0.25), window(2, 0.5)):
        sink(record)
    sink.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("syncscan/waiting_share")] == [(200, 0.25), (400, 0.5)]
    assert "syncscan/waiting/train.py:41" in events.Tags()["scalars"]
