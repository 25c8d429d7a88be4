"""Work on several large arrays with two threads, if there is a processor for each.

Numpy releases the lock while it works on an array, but two threads hardly help where Python runs too. So this is for
few calls on many rows; smaller work is done by the calling thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from syncscan.load.second_process import spare_processor

WORTHWHILE_ROWS = 100_000
"""Rows from which a second thread saves more than the 0.1 ms that it takes to start."""

Item = TypeVar("Item")
_END: Any = object()
"""Follows the items once per thread."""


def each(items: Iterable[Item], work: Callable[[Item], object], rows: int) -> None:
    """Do some work on each item, in any order.

    Args:
        items: items; a thread that is done with one takes the next.
        rows: approximate rows of an item.

    Raises:
        The first error of `work`; some items are then not processed.
    """
    todo, errors = deque((*items, _END, _END)), list[BaseException]()

    def work_on() -> None:
        try:
            for item in iter(todo.popleft, _END):
                work(item)
        except BaseException as error:  # of either thread; raised by the calling one
            errors.append(error)

    other = _start(work_on) if rows >= WORTHWHILE_ROWS and spare_processor() else None
    work_on()
    if other:
        other.join()
    if errors:
        raise errors[0]


def _start(work: Callable[[], None]) -> threading.Thread | None:
    thread = threading.Thread(target=work)
    try:
        thread.start()
    except RuntimeError:  # the system refuses another thread
        return None
    return thread
