"""Render several analyses as one table: step, bound, syncs and first change of each trace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.report import remedies
from syncscan.report.blocks import Block, Grid, GridColumn, Heading, Span, Stacked, Words, code
from syncscan.report.phrases import measurable, real, replayed, saving
from syncscan.report.units import duration, percent

_SUFFIX = re.compile(r"(\.pt)?\.trace\.json(\.(gz|zst|xz|bz2))?$")
"""Common suffix of trace file names."""


Row = tuple[Words | Stacked, ...]
"""Cells of a trace: step, bound, syncs per step, saving of all syncs together, and below its name what to change."""


def row(analysis: Analysis) -> Row:
    """Return the table row of a trace, whatever its view hides; its step is without the profiler where known."""
    step, entries = analysis.step, remedies.describe(analysis)
    often = sum(f.per_step for f in real(analysis.findings))
    step_us, us = replayed(step), step.recoverable_us
    part = f" ({percent(us, step_us)})" if us is not None and measurable(us, step_us) else ""
    gain = "–" if us is None or not often else f"{saving(us, step_us, step.recoverable_range_us)}{part}"
    first = f"{entries[0].saves}: {entries[0].what}" if entries else "nothing"
    return duration(step_us), step.bound.value, f"{often:.3g}", gain, _named(analysis.trace.info.path, first)


def unread(path: str, why: str) -> Row:
    """Return the row of a trace that can't be read, and why."""
    return "–", "–", "–", "–", _named(path, why)


def _named(path: str, below: str) -> Stacked:
    return Stacked((code(_name(path)), Span(below, "dim")))


def _name(path: str) -> str:
    return _SUFFIX.sub("", PurePath(path).name) or path


def blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield the table, two lines per trace: its name, and what to change first."""
    yield Heading(f"{len(rows)} traces", 1)
    columns = (
        GridColumn("step", right=True),
        GridColumn("bound by"),
        GridColumn("syncs per step", right=True),
        GridColumn("recoverable", right=True),
        GridColumn("trace, and what to change first"),
    )
    yield Grid(columns, tuple(rows), len(rows))
