"""Render several analyses as one table: step, bound, syncs and first change of each trace."""

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

_SUFFIX = re.compile(r"(\.pt)?\.trace\.json(\.(gz|zst|xz|bz2))?$")
"""Common suffix of trace file names."""


class TraceRow(msgspec.Struct, frozen=True):
    """A trace of the table, in words."""

    trace: str
    step: str
    """Step time, without the profiler where known."""
    bound: str
    syncs: str
    """Syncs per step."""
    recoverable: str
    """Saving of all syncs together; a dash where unknown."""
    first: str
    """The first thing to change, or why the trace can't be read."""


def row(analysis: Analysis) -> TraceRow:
    """Return the table row of a trace, whatever its view hides."""
    step, entries = analysis.step, remedies.describe(analysis)
    often = sum(f.per_step for f in real(analysis.findings))
    us = step.recoverable_us
    part = f" ({percent(us, replayed(step))})" if us is not None and measurable(us, replayed(step)) else ""
    return TraceRow(
        trace=_name(analysis.trace.info.path),
        step=duration(replayed(step)),
        bound=step.bound.value,
        syncs=f"{often:.3g}",
        recoverable="–"
        if us is None or not often
        else f"{saving(us, replayed(step), step.recoverable_range_us)}{part}",
        first=f"{entries[0].saves}: {entries[0].what}" if entries else "nothing",
    )


def unread(path: str, why: str) -> TraceRow:
    """Return the table row of a trace that can't be read."""
    return TraceRow(_name(path), "–", "–", "–", "–", why)


def _name(path: str) -> str:
    return _SUFFIX.sub("", PurePath(path).name) or path


def render(rows: Sequence[TraceRow], width: int, color: bool) -> str:
    """Return the table as text, two lines per trace: its name, and what to change first.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("step", "bound by", "syncs per step", "recoverable"):
        table.add_column(name, justify="left" if name == "bound by" else "right", no_wrap=True)
    table.add_column("trace, and what to change first", overflow="ellipsis")
    for one in rows:
        below = Text(printable(one.first, 200), "dim")
        table.add_row(one.step, one.bound, one.syncs, one.recoverable, Group(Text(printable(one.trace)), below))
    return written([Text(f"{len(rows)} traces", "bold"), table], width, color)


def markdown(rows: Sequence[TraceRow]) -> str:
    """Return the table as Markdown."""
    head = ("trace", "step", "bound by", "syncs per step", "recoverable", "to change first")
    lines = [f"### {len(rows)} traces", "", f"| {' | '.join(head)} |", "|---|--:|---|--:|--:|---|"]
    for one in rows:
        cells = (cell(one.trace), one.step, one.bound, one.syncs, one.recoverable, escaped(one.first, 200))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
