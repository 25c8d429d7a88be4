"""Draw what a watch has written, like `top`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Group
from rich.table import Table
from rich.text import Text

from syncscan.model.duration import duration
from syncscan.report.printable import printable
from syncscan.watching.reading import WatchRecords
from syncscan.watching.record import Window

TREND = 24
"""Windows that a trend shows."""
_BARS = "▁▂▃▄▅▆▇█"


def screen(watched: WatchRecords, *, lines: int = 15) -> Group:
    """Return what is shown of a watch, for rich."""
    parts: list[Text | Table] = [Text(sentence) for sentence in heading(watched)]
    if windows := _whole_windows(watched):
        parts.append(_table(windows, lines))
        parts += [Text(sentence) for sentence in _threads(windows[-1])]
    parts += [Text(sentence) for sentence in tail(watched)]
    return Group(*parts)


def heading(watched: WatchRecords) -> list[str]:
    """Return the sentences above the table."""
    begin = watched.begin
    rows = []
    if begin is not None:
        rank = f", rank {begin.rank} of {begin.world}" if begin.world > 1 else ""
        name = printable(begin.program)
        rows.append(f"{name}{rank}, process {begin.pid} on {printable(begin.host)}, watched since {time_of(begin.at)}")
    windows = _whole_windows(watched)
    if not windows:
        return [*rows, "No window is complete yet."]
    last = windows[-1]
    step = last.step
    rows.append(
        f"step {duration(step.mean_us)} (99th percentile {duration(step.p99_us)}); {last.total_steps} steps so far"
        if step is not None
        else f"no step ended in the last {last.seconds:.0f} s; {last.total_steps} steps so far"
    )
    also = [(last.input, "for the data loader"), (last.peers, "for other ranks")]
    parts = [f"{last.waiting:.0%} for the device", *(f"{share:.0%} {what}" for share, what in also if share)]
    rows.append(f"waiting: {', '.join(parts)}  {trend([w.waiting for w in windows])}")
    return rows


def tail(watched: WatchRecords) -> list[str]:
    """Return the sentences below the table: alarms, captures, and that the watch has ended."""
    rows = [
        f"alarm at {time_of(alarm.at)}, step {alarm.total_steps}: {printable(str(alarm))}"
        for alarm in watched.alarms[-5:]
    ]
    for captured in watched.captures[-3:]:
        what = captured.failed or "captured " + ", ".join(printable(path) for path in captured.paths)
        rows.append(f"at {time_of(captured.at)}: {what}")
    if watched.end is not None:
        rows.append(f"ended at {time_of(watched.end.at)}, after {watched.end.total_steps} steps")
    return rows


def trend(shares: Sequence[float]) -> str:
    """Return the last shares as bars, the highest of the eight a whole."""
    return "".join(_BARS[min(7, int(share * 8))] for share in shares[-TREND:])


def _whole_windows(watched: WatchRecords) -> Sequence[Window]:
    """Return the windows without one that the watch's end cut short."""
    windows = watched.windows
    cut = watched.end is not None and len(windows) > 1 and windows[-1].seconds < windows[-2].seconds / 2
    return windows[:-1] if cut else windows


def _table(windows: Sequence[Window], most: int) -> Table:
    last = windows[-1]
    table = Table(
        "share", "waits", "ms/step", "line", "function", "rule", "trend of the wait", box=None, pad_edge=False
    )
    for line in last.lines[:most]:
        key = line.file, line.line
        past = [sum(row.waiting for row in w.lines if (row.file, row.line) == key) for w in windows[-TREND:]]
        table.add_row(
            f"{line.share:.1%}",
            f"{line.waiting:.1%}" if line.waiting else "",
            "" if line.us_per_step is None else f"{line.us_per_step / 1e3:.2f}",
            Text(f"{printable(PurePath(line.file).name)}:{line.line}"),
            Text(printable(line.function)),
            line.rule or (line.kind if line.kind != "host" else ""),
            trend(past) if any(past) else "",
        )
    return table


def _threads(window: Window) -> list[str]:
    busy = [thread for thread in window.threads if thread.share >= 0.01]
    return [
        f"thread {printable(t.name)}: in the program's code for {t.share:.0%} of the time, {t.waiting:.0%} waiting for"
        f" the device, mostly at {printable(PurePath(t.file).name)}:{t.line}"
        for t in busy[:3]
    ]


def time_of(at: float) -> str:
    """Return a time (seconds since 1970) as text, in the zone of this machine."""
    return datetime.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")
