"""From several analyses to one table: per trace its step, what bounds it, its syncs, and what to change first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from syncscan.model.analysis import Analysis
from syncscan.report import remedies
from syncscan.report.markup import cell, escaped
from syncscan.report.phrases import measurable, real, replayed, saving
from syncscan.report.printable import printable
from syncscan.report.terminal import written
from syncscan.report.units import duration, percent

_SUFFIX = re.compile(r"(\.pt)?\.trace\.json(\.gz|\.zst)?$")
"""What the names of most traces end in."""


class TraceRow(msgspec.Struct, frozen=True):
    """One trace of the table, in words."""

    trace: str
    step: str
    """Without the profiler where that is known."""
    bound: str
    syncs: str
    """How many a step."""
    recoverable: str
    """What all its syncs together would save; a dash where nobody can tell."""
    first: str
    """The first thing to change; or why the trace can't be read."""


def row(analysis: Analysis) -> TraceRow:
    """What the table says of a trace: of all of it, whatever its view lets through."""
    step, told = analysis.step, remedies.told(analysis)
    often = sum(f.per_step for f in real(analysis.findings))
    us = step.recoverable_us
    part = f" ({percent(us, replayed(step))})" if us is not None and measurable(us, replayed(step)) else ""
    return TraceRow(
        trace=_name(analysis.trace.info.path),
        step=duration(replayed(step)),
        bound=step.bound.value,
        syncs=f"{often:.3g}",
        recoverable="–" if us is None or not often else f"{saving(us, replayed(step))}{part}",
        first=f"{told[0].saves}: {told[0].what}" if told else "nothing",
    )


def unread(path: str, why: str) -> TraceRow:
    """What it says of one that can't be read."""
    return TraceRow(_name(path), "–", "–", "–", "–", why)


def _name(path: str) -> str:
    return _SUFFIX.sub("", PurePath(path).name) or path


def render(rows: Sequence[TraceRow], width: int, color: bool) -> str:
    """The table as text, two lines a trace: its name, and below what to change first.

    Args:
        rows: one a trace.
        width: of the terminal, in characters.
        color: whether to write colours.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("step", "bound by", "syncs a step", "recoverable"):
        table.add_column(name, justify="left" if name == "bound by" else "right", no_wrap=True)
    table.add_column("trace, and what to change first", overflow="ellipsis")
    for one in rows:
        below = Text(printable(one.first, 200), "dim")
        table.add_row(one.step, one.bound, one.syncs, one.recoverable, Group(Text(printable(one.trace)), below))
    return written([Text(f"{len(rows)} traces", "bold"), table], width, color)


def markdown(rows: Sequence[TraceRow]) -> str:
    """The table as Markdown."""
    head = ("trace", "step", "bound by", "syncs a step", "recoverable", "to change first")
    lines = [f"### {len(rows)} traces", "", f"| {' | '.join(head)} |", "|---|--:|---|--:|--:|---|"]
    for one in rows:
        cells = (cell(one.trace), one.step, one.bound, one.syncs, one.recoverable, escaped(one.first, 200))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
