"""Render the join of a watched job's ranks as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.live.ranks import Ranks, Waited
from syncscan.live.screen import time_of, trend
from syncscan.report.printable import printable


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


__all__ = ["ranks_text", "sentences"]
