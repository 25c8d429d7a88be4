"""Two processes read a trace as one does."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscan.load import load, second_process
from syncscan.load.reader import read_share
from syncscan.model.trace import Trace
from tests.load import reference
from tests.load.test_oracle import assert_equal, metadata, odd, written
from tests.load.test_oracle import events as any_events

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")


def events(count: int = 400) -> list[dict[str, object]]:
    """Ops, launches, kernels, frames and arrows, so that every kind of column has rows in every piece."""
    built: list[dict[str, object]] = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}]
    for i in range(count):
        place = {"pid": 1, "tid": i % 3, "ts": 10 * i, "dur": 9 - i % 4, "name": f"name{i % 7}"}
        ids = {"correlation": i, "External id": i + 1}
        built += [
            {"ph": "X", "cat": cat, **place, "args": ids}
            for cat in ("cpu_op", "cuda_runtime", "kernel", "python_function", "new")
        ]
        built.append({"ph": "sf"[i % 2], "cat": "fwdbwd", "id": i // 2, **place})
    return built


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes small traces worth a second process, whatever runs the tests; gives what each child was started with."""
    started: list[int] = []
    make = second_process.second_process

    def counted(work: Callable[[], Any]) -> AbstractContextManager[Callable[[], Any]]:
        started.append(1)
        return make(work)

    monkeypatch.setattr(second_process, "WORTHWHILE_BYTES", 0)
    monkeypatch.setattr(second_process, "possible", lambda: True)
    monkeypatch.setattr(second_process, "second_process", counted)
    return started


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("piece", [500, 10_000, 1 << 20])
def test_the_same_trace(tmp_path: Path, forked: list[int], packed: bool, piece: int) -> None:
    """Plain or packed, however many pieces."""
    text = json.dumps({"with_stack": 1, "traceEvents": events(), "traceName": "t"}).encode()
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    together = load(path, piece=piece)
    assert forked == [1]
    assert_equal(together, alone(path))


def alone(path: Path) -> Trace:
    """Read with one process."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(second_process, "possible", lambda: False)
        return load(path)


def test_damage_is_counted_once(tmp_path: Path, forked: list[int]) -> None:
    """The child's repairs are reported as if the parent had made them."""
    text = json.dumps(events(), indent=1).replace('"name3"', '"a "quoted" name"').encode()
    path = tmp_path / "t.json"
    path.write_bytes(text[:-500])
    together = load(path, piece=3000)
    assert forked == [1]
    assert_equal(together, alone(path))
    assert "repaired" in " ".join(together.info.warnings)


def test_damage_across_pieces(tmp_path: Path, forked: list[int]) -> None:
    """An event that a wrong cut goes through is read by one process after all."""
    nested = [{"ph": "X", "cat": "cpu_op", "name": f"in {i}", "ts": i, "dur": 1, "args": {}} for i in range(50)]
    built = [*events(50), {**nested[0], "args": {"list": nested}}, *events(50)]
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(built).encode())
    for piece in (200, 1000, 3000):
        assert_equal(load(path, piece=piece), alone(path))


def test_a_child_that_dies(tmp_path: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and no process stays behind."""
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(events()).encode())
    expected, fork = alone(path), os.fork
    children: list[int] = []

    def fork_and_note() -> int:
        pid = fork()
        children.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork_and_note)
    monkeypatch.setattr("syncscan.load.reader.read_share", lambda *args: os._exit(3))
    assert_equal(load(path, piece=1000), expected)
    assert forked == [1]
    (child,) = children  # of this process there may be others, of earlier tests
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


@pytest.mark.parametrize(
    ("call", "number", "left"), [("pipe", errno.EMFILE, 0), ("fork", errno.EAGAIN, 4), ("fork", errno.ENOMEM, 4)]
)
def test_where_no_process_can_be_had(
    tmp_path: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch, call: str, number: int, left: int
) -> None:
    """One reads it all, as if there were one processor; `multiprocessing` leaves two pipes open where it can't fork."""
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(events()).encode())
    expected, opened = alone(path), len(list(Path("/proc/self/fd").iterdir()))

    def refuse() -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    assert_equal(load(path, piece=1000), expected)
    assert forked == [1]
    assert len(list(Path("/proc/self/fd").iterdir())) <= opened + left


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """One process reads it anew, with what was added."""
    path = tmp_path / "t.json"
    text = json.dumps(events()).encode()
    path.write_bytes(text)
    expected = alone(path)
    path.write_bytes(text[: len(text) // 2])

    def grow_and_read(*args: Any) -> object:
        with path.open("ab") as f:
            f.write(text[len(text) // 2 :])
        return read_share(*args)

    monkeypatch.setattr("syncscan.load.reader.read_share", grow_and_read)
    assert_equal(load(path, piece=10_000), expected)
    assert forked == [1]


def test_a_file_that_is_replaced_while_it_is_read(
    tmp_path: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the two saw different texts, even of one length, one process reads it anew."""
    path = tmp_path / "t.json"
    path.write_bytes(json.dumps(events()).encode())
    expected = alone(path)
    others = [{"name": "other"}, *({**event, "name": "other"} for event in events())]
    other = json.dumps(others).encode()[: path.stat().st_size]
    monkeypatch.setattr("syncscan.load.reader.read_share", lambda _, *args: read_share(io.BytesIO(other), *args))
    assert_equal(load(path, piece=10_000), expected)
    assert forked == [1]


def test_forks_only_where_nothing_speaks_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not beside other threads, not beside torch."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert second_process.possible()
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not second_process.possible()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert not second_process.possible()
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not second_process.possible()


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(any_events | odd, min_size=4, max_size=40),
    metadata,
    metadata,
    st.sampled_from([None, 1]),
    st.sampled_from([60, 200, 500]),
    st.booleans(),
)
def test_any_valid_trace_in_two_processes(
    some: list[Any], before: dict[str, Any], after: dict[str, Any], indent: int | None, piece: int, packed: bool
) -> None:
    """Two processes read what the obvious reader reads, warnings included, whatever the events and the pieces."""
    content = written(some, before, after, indent, True)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as m:
        m.setattr(second_process, "WORTHWHILE_BYTES", 0)
        m.setattr(second_process, "possible", lambda: True)
        path = Path(folder, "t.json")
        path.write_bytes(gzip.compress(content) if packed else content)
        assert_equal(load(path, piece=piece), reference.parse(content, str(path)))
