"""A progress bar on stderr while a big trace is read, a copy of it written, or many are, if stderr is a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BIG = 30_000_000
"""Size in bytes from which reading takes long enough to be watched."""

Progress = Callable[[int, int], None]
Counted = Callable[[int, int, int, str], None]
"""How many are done, how many of these failed, how many there are, the last one's name: as `analyze_fleet` tells it."""
EVERY = 60.0
"""Seconds between two lines where stderr is no terminal: a job may take hours, and its log tells whether it goes on."""


@contextmanager
def reading(path: str, activity: str = "reading") -> Iterator[Progress | None]:
    """Give a callback `(bytes read, bytes in all)` that draws a bar beside the activity; None where none is wanted."""
    # Path.is_file raises for names that are too long.
    if not sys.stderr.isatty() or not os.path.isfile(path) or Path(path).stat().st_size < BIG:  # noqa: PTH113
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(
        TextColumn(activity), BarColumn(), DownloadColumn(), console=console, transient=True, auto_refresh=False
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total, refresh=True)


@contextmanager
def counting(doing: str, things: str) -> Iterator[Counted]:
    """Give a callback that draws how many things are done, at what rate, and what time is left."""
    if not sys.stderr.isatty():
        yield _lines(doing, things)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    began = time.monotonic()
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=None)

        def counted(done: int, failed: int, total: int, name: str) -> None:
            description = _speed_text(done, failed, time.monotonic() - began, things)
            bar.update(task, completed=done, total=total, description=description, refresh=True)

        yield counted


def _speed_text(done: int, failed: int, seconds: float, things: str) -> str:
    """Return the speed as `2.4 traces/s, 1 not read`."""
    rate = done / seconds if seconds else 0.0
    pace = f"{rate:.1f} {things}/s" if rate >= 1 else f"{60 * rate:.1f} {things}/min"
    return f"{pace}, {failed} not read" if failed else pace


def _lines(doing: str, things: str) -> Counted:
    """Print a line now and then, but none for short work."""
    began = last = time.monotonic()

    def counted(done: int, failed: int, total: int, name: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY or done == total:
            return
        last = now
        left = (now - began) / done * (total - done)
        pace = _speed_text(done, failed, now - began, things)
        print(f"{doing}: {done} of {total} {things}, {pace}, {left / 60:.0f} min left", file=sys.stderr, flush=True)

    return counted
