"""A capture stores the collections of Python's garbage collector that took notable time in recorded steps."""

from __future__ import annotations

import gc
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.capture.cycle_recorder import SHORT_NS, Garbage
from syncscan.capture.session import Session, profile
from syncscan.model.capture import capture_table


@pytest.fixture
def watch() -> Iterator[Garbage]:
    gc.disable()  # no collection but those that a test asks for
    watch = Garbage()
    yield watch
    watch.close()
    gc.enable()


def test_a_collection_is_kept_with_its_time_thread_and_generation(watch: Garbage) -> None:
    """A full one of the objects that torch's and pytest's modules hold takes some ms."""
    watch.open()
    before = time.time_ns()
    gc.collect()
    after = time.time_ns()
    ((begin, end, tid, generation),) = watch.collections
    assert before <= begin < end <= after
    assert end - begin >= SHORT_NS
    assert (tid, generation) == (threading.get_native_id(), 2)


def test_a_short_one_is_not_kept(watch: Garbage, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 µs aren't worth a word."""
    clock = iter([1_000_000, 1_000_000 + SHORT_NS - 1, 2_000_000, 2_000_000 + SHORT_NS])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    for _ in range(2):
        watch._call("start", {"generation": 0})
        watch._call("stop", {"generation": 0})
    assert [(begin, end) for begin, end, _, _ in watch.collections] == [(2_000_000, 2_000_000 + SHORT_NS)]


def test_one_whose_begin_was_not_seen_is_not_kept(watch: Garbage) -> None:
    """Another of the program's callbacks may begin a recording."""
    watch._call("stop", {"generation": 2})
    assert watch.collections == []


def test_it_can_be_closed_twice_and_behind_a_program_that_emptied_the_list(watch: Garbage) -> None:
    """Whatever is left behind is not ours."""
    before = list(gc.callbacks)
    watch.open()
    watch.open()
    assert len(gc.callbacks) == len(before) + 1
    gc.callbacks.remove(watch._call)
    watch.close()
    watch.close()
    assert gc.callbacks == before


def recorded(folder: Path, step: Callable[[int], None]) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    plan: dict[str, Any] = {"settle": 0, "calibrate": 1, "wait": 1, "warmup": 1, "active": 2, "notify": lambda s: None}
    with profile(folder, "t", **plan) as session:
        for k in range(5):
            torch.ones(2).add(1)
            step(k)
            session.step()
    Session.running = None
    own: dict[str, Any] = json.loads(gzip.decompress(session.paths[0].read_bytes()))["syncscan"]
    return own


def test_a_trace_holds_the_collections_of_its_recorded_steps(tmp_path: Path) -> None:
    """One timed, one waited for, one to warm up, two recorded."""
    calls: list[list[Any]] = []

    def step(k: int) -> None:
        calls.append(list(gc.callbacks))
        gc.collect()

    before = list(gc.callbacks)
    collections = recorded(tmp_path, step)
    full = [c for c in collections["collections"] if c[3] == 2]
    assert len(full) == 2
    assert [len(on) - len(before) for on in calls] == [0, 0, 0, 1, 1]
    assert gc.callbacks == before
    table, refused = capture_table(collections)
    assert refused == ()
    assert [c.end_ns - c.begin_ns for c in table.collections if c.generation == 2] == [e - b for b, e, _, _ in full]
