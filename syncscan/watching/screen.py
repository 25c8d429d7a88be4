"""Draw what a watch has written, like `top`, and the join of a watched job's ranks."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.duration import duration
from syncscan.report.printable import printable
from syncscan.watching.ranks import Ranks, Waited
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


def ranks_text(ranks: Ranks, width: int, color: bool) -> str:
    """Return a job's ranks, and which of them the others wait for."""
    rows: list[RenderableType] = [Text(sentence) for sentence in sentences(ranks)]
    table = Table("rank", "step", "for the device", "in collectives", "for data", "trend of waits", "process", box=None)
    for k, row in enumerate(ranks.rows):
        waits = [share for slot in ranks.slots if (share := slot.waits[k]) is not None]
        table.add_row(
            str(row.rank),
            f"{_ms(row.step_us)} ms" if row.step_us is not None else "",
            f"{row.waiting:.0%}",
            f"{row.peers:.0%}",
            f"{row.input:.0%}",
            trend(waits),
            Text(
                f"{row.pid} on {printable(row.host)}" + (f", silent since {time_of(row.last_at)}" if row.silent else "")
            ),
        )
    return _printed([*rows, table], width, color)


def sentences(ranks: Ranks) -> list[str]:
    """Return who waits for whom, in sentences."""
    rows = [f"{printable(ranks.program)}: {len(ranks.rows)} of {ranks.world} ranks are watched"]
    if ranks.missing:
        rows[0] += f"; no file of rank {', '.join(map(str, ranks.missing[:20]))}"
    if ranks.waited is None:
        rows.append("No rank is waited for by the others now.")
    else:
        rows.append(_waited(ranks.waited, "wait", "are"))
    rows += [_waited(waited, "waited", "were") for waited in ranks.earlier[-3:]]
    return rows


def _waited(waited: Waited, verb: str, be: str) -> str:
    minutes = f"{waited.seconds / 60:.0f} min" if waited.seconds >= 120 else f"{waited.seconds:.0f} s"
    now = verb == "wait"
    working = ""
    if waited.file:
        place = f"{printable(PurePath(waited.file).name)}:{waited.line} ({printable(waited.function)})"
        working = f"; it {'spends' if now else 'spent'} {waited.more:.0%} more of its time at {place}"
    span = f"since {time_of(waited.since)}, for {minutes}" if now else f"at {time_of(waited.since)}, for {minutes}"
    return (
        f"The other ranks {verb} for rank {waited.rank} {span}: they {be} waiting {waited.others_wait:.0%} of the time,"
        f" and it {waited.waits:.0%}{working}."
    )


def _ms(us: float | None) -> str:
    return "" if us is None else f"{us / 1e3:.2f}"


def _printed(rows: Sequence[RenderableType], width: int, color: bool) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=not color, force_terminal=color, highlight=False)
    with console.capture() as captured:
        for row in rows:
            console.print(row)
    return captured.get()
