"""Render the comparison of two watches, and the join of a job's ranks, as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.live.compare import LineChange, WatchDiff, WatchSide
from syncscan.live.ranks import Ranks, Waited
from syncscan.live.screen import time_of, trend
from syncscan.report.printable import printable


def diff_text(diff: WatchDiff, width: int, color: bool) -> str:
    """Return what two hours or runs differ in.

    Args:
        diff: it.
        width: columns.
        color: with colors.
    """
    table = Table(
        "before", "after", "ms/step before", "after", "line", "function", "rule", "", box=None, pad_edge=False
    )
    for line in diff.lines[:20]:
        table.add_row(
            f"{line.waiting_before:.1%}",
            f"{line.waiting_after:.1%}",
            _ms(line.us_before),
            _ms(line.us_after),
            Text(f"{printable(PurePath(line.file).name)}:{line.line}"),
            Text(printable(line.function)),
            line.rule,
            _verdict(line),
        )
    rows: list[RenderableType] = [Text(_side("before", diff.before)), Text(_side("after", diff.after))]
    rows.append(Text(_step(diff)))
    rows.append(table if diff.lines else Text("No line waits for the device in either."))
    return _printed(rows, width, color)


def ranks_text(ranks: Ranks, width: int, color: bool) -> str:
    """Return a job's ranks, and which of them the others wait for.

    Args:
        ranks: them.
        width: columns.
        color: with colors.
    """
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


def _side(name: str, side: WatchSide) -> str:
    hour = f", hour {side.hour}" if side.hour is not None else ""
    step = "" if side.step_us is None else f": step {_ms(side.step_us)} ms"
    margin = "" if side.step_error_us is None else f" ± {_ms(side.step_error_us)}"
    path = printable(PurePath(side.path).name)
    return f"{name}: {path}{hour}{step}{margin}, waiting {side.waiting:.1%} ({side.steps} steps)"


def _step(diff: WatchDiff) -> str:
    before, after = diff.before.step_us, diff.after.step_us
    if before is None or after is None:
        return "No step ended in one of the two."
    if not diff.step_changed:
        return "The step's time hasn't changed beyond its noise."
    return f"The step takes {_ms(abs(after - before))} ms {'more' if after > before else 'less'}."


def _verdict(line: LineChange) -> str:
    if not line.changed:
        return ""
    return "waits more" if line.waiting_after > line.waiting_before else "waits less"


def _ms(us: float | None) -> str:
    return "" if us is None else f"{us / 1e3:.2f}"


def _printed(rows: Sequence[RenderableType], width: int, color: bool) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=not color, force_terminal=color, highlight=False)
    with console.capture() as captured:
        for row in rows:
            console.print(row)
    return captured.get()


__all__ = ["diff_text", "ranks_text", "sentences"]
