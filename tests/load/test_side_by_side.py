"""Work on several arrays is done whole, by one thread or two."""

from __future__ import annotations

import os
import threading

import pytest

from syncscan.load import second_process
from syncscan.load.side_by_side import WORTHWHILE_ROWS, each


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors, whatever this machine has."""
    monkeypatch.delenv(second_process.ALONE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def threads(rows: int) -> int:
    """How many threads work on two items of so many rows, each of which waits a moment for the other."""
    both, seen = threading.Barrier(2), set()

    def work(item: str) -> None:
        seen.add((threading.get_ident(), item))
        if rows >= WORTHWHILE_ROWS and not alone:
            both.wait(10)

    alone = not second_process.spare_processor()
    each("ab", work, rows)
    assert {item for _, item in seen} == {"a", "b"}
    return len({thread for thread, _ in seen})


def test_two_threads_where_that_pays(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On many rows, and with a processor for each thread; none stays behind."""
    before = threading.active_count()
    assert (threads(WORTHWHILE_ROWS), threads(WORTHWHILE_ROWS - 1)) == (2, 1)
    monkeypatch.setenv(second_process.ALONE, "1")
    assert threads(WORTHWHILE_ROWS) == 1
    assert threading.active_count() == before


def test_where_no_thread_can_be_had(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One does it all."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    each(range(9), done.append, WORTHWHILE_ROWS)
    assert done == list(range(9))


@pytest.mark.parametrize("in_own_thread", [True, False])
def test_an_error_of_either_thread_is_raised(two: None, in_own_thread: bool) -> None:
    """Once both are done."""
    both, main, before = threading.Barrier(2), threading.current_thread(), threading.active_count()

    def work(_: str) -> None:
        both.wait(10)
        if (threading.current_thread() is main) == in_own_thread:
            raise MemoryError

    with pytest.raises(MemoryError):
        each("ab", work, WORTHWHILE_ROWS)
    assert threading.active_count() == before
