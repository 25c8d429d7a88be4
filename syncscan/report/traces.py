"""Render several analyses as one table: step, bound, syncs and first change of each trace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.report import remedies
from syncscan.report.blocks import Block, Grid, GridColumn, Heading, Span, Stacked, Words, code
from syncscan.report.phrases import measurable, real, replayed, saving
from syncscan.report.units import duration, percent

_SUFFIX = re.compile(r"(\.pt)?\.trace\.json(\.(gz|zst|xz|bz2))?$")
"""Common suffix of trace file names."""


class TraceRow(msgspec.Struct, frozen=True):
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
    return TraceRow(_name(path), "–", "–", "–", "–", why)


def _name(path: str) -> str:
    return _SUFFIX.sub("", PurePath(path).name) or path


def blocks(rows: Sequence[TraceRow]) -> Iterator[Block]:
    """Yield the table, two lines per trace: its name, and what to change first."""
    yield Heading(f"{len(rows)} traces", 1)
    columns = (
        GridColumn("step", right=True),
        GridColumn("bound by"),
        GridColumn("syncs per step", right=True),
        GridColumn("recoverable", right=True),
        GridColumn("trace, and what to change first"),
    )
    yield Grid(columns, tuple(map(_cells, rows)), len(rows))


def _cells(one: TraceRow) -> tuple[Words | Stacked, ...]:
    named = Stacked((code(one.trace), Span(one.first, "dim")))
    return one.step, one.bound, one.syncs, one.recoverable, named
