"""From work on several large arrays to the same work done by two threads, where there is a processor for each.

Numpy lets another thread run while it works on an array, which makes little of two threads where Python runs too. So
this is for few calls on many rows; what is smaller is done by the thread that asks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from syncscan.load.second_process import spare_processor

WORTHWHILE_ROWS = 100_000
"""From so many on a second thread saves more than the 0.1 ms that it takes to start."""

Item = TypeVar("Item")
_END: Any = object()
"""Stands behind the items once for each thread."""


def each(items: Iterable[Item], work: Callable[[Item], object], rows: int) -> None:
    """Do some work on each item, in any order.

    Args:
        items: whoever is done with one takes the next.
        work: changes nothing that it needs of another item.
        rows: of an item, about.

    Raises:
        What `work` raises, of two errors the first; some items are then not worked on.
    """
    todo, errors = deque((*items, _END, _END)), list[BaseException]()

    def work_on() -> None:
        try:
            for item in iter(todo.popleft, _END):
                work(item)
        except BaseException as error:  # of either thread; told by the one that asked
            errors.append(error)

    other = _started(work_on) if rows >= WORTHWHILE_ROWS and spare_processor() else None
    work_on()
    if other:
        other.join()
    if errors:
        raise errors[0]


def _started(work: Callable[[], None]) -> threading.Thread | None:
    thread = threading.Thread(target=work)
    try:
        thread.start()
    except RuntimeError:  # the system gives no more threads
        return None
    return thread
