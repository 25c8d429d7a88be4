"""Describe what a watch has written in blocks: its step's time, what waits, by line, and what was alarmed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.model.duration import duration
from syncscan.report.blocks import Block, Grid, GridColumn, Heading, Sentence, Words, code
from syncscan.watching.watch_file import WatchedLine, WatchRecords, Window

LINES = 15
"""Lines of the program that are listed."""
THREADS, ALARMS, CAPTURES = 3, 5, 3
"""Other threads, and last alarms and captures, that are told of."""
TREND = 24
"""Windows that a trend shows."""
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = (
    *(GridColumn(name, right=True) for name in ("share", "waits", "ms/step")),
    *(GridColumn(name) for name in ("line", "function", "rule", "trend of the wait")),
)


def blocks(watched: WatchRecords) -> Iterator[Block]:
    """Yield the last whole window: its step, its waits and its lines; then alarms, captures, and the watch's end."""
    windows = _whole_windows(watched)
    if begin := watched.begin:
        rank = f", rank {begin.rank} of {begin.world}" if begin.world > 1 else ""
        yield Sentence(
            f"{begin.program}{rank}, process {begin.pid} on {begin.host}, watched since {_time(begin.at)}", "dim"
        )
    if windows:
        yield from _window(windows)
    else:
        yield Sentence("No window is complete yet.")
    for alarm in watched.alarms[-ALARMS:]:
        yield Sentence(f"alarm at {_time(alarm.at)}, step {alarm.total_steps}: {alarm}", "warn")
    for captured in watched.captures[-CAPTURES:]:
        outcome = captured.failed or f"captured {', '.join(captured.paths)}"
        yield Sentence(f"at {_time(captured.at)}: {outcome}")
    if watched.end is not None:
        yield Sentence(f"ended at {_time(watched.end.at)}, after {watched.end.total_steps} steps")


def _whole_windows(watched: WatchRecords) -> Sequence[Window]:
    """Return the windows without one that the watch's end cut short."""
    windows = watched.windows
    cut = watched.end is not None and len(windows) > 1 and windows[-1].seconds < windows[-2].seconds / 2
    return windows[:-1] if cut else windows


def _window(windows: Sequence[Window]) -> Iterator[Block]:
    last, step = windows[-1], windows[-1].step
    took = (
        f"step {duration(step.mean_us)} (99th percentile {duration(step.p99_us)})"
        if step
        else f"no step ended in the last {last.seconds:.0f} s"
    )
    yield Heading(f"{took}; {last.total_steps} steps so far", 1)
    also = [(last.input, "for the data loader"), (last.peers, "for other ranks")]
    parts = [f"{last.waiting:.0%} for the device", *(f"{share:.0%} {what}" for share, what in also if share)]
    yield Sentence(f"waiting: {', '.join(parts)}  {trend([window.waiting for window in windows])}")
    yield Grid(_COLUMNS, tuple(_row(line, windows) for line in last.lines), LINES)
    for thread in [thread for thread in last.threads if thread.share >= 0.01][:THREADS]:
        yield Sentence(
            f"thread {thread.name}: in the program's code for {thread.share:.0%} of the time, {thread.waiting:.0%}"
            f" waiting for the device, mostly at {PurePath(thread.file).name}:{thread.line}"
        )


def _row(line: WatchedLine, windows: Sequence[Window]) -> tuple[Words, ...]:
    key = line.file, line.line
    past = [sum(row.waiting for row in w.lines if (row.file, row.line) == key) for w in windows[-TREND:]]
    return (
        f"{line.share:.1%}",
        f"{line.waiting:.1%}" if line.waiting else "",
        "" if line.us_per_step is None else f"{line.us_per_step / 1e3:.2f}",
        code(f"{PurePath(line.file).name}:{line.line}"),
        code(line.function),
        line.rule or (line.kind if line.kind != "host" else ""),
        trend(past) if any(past) else "",
    )


def trend(shares: Sequence[float]) -> str:
    """Return the last shares as bars, the highest of the eight a whole."""
    return "".join(_BARS[min(7, int(share * 8))] for share in shares[-TREND:])


def _time(at: float) -> str:
    """Return a time (seconds since 1970) as text, in the zone of this machine."""
    return datetime.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")
