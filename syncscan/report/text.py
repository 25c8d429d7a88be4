"""From an Analysis to a terminal report: a first screen of ten lines, the findings' table, and the rest on demand."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from syncscan.model.analysis import Analysis


def render(analysis: Analysis, verbose: int = 0, width: int = 120, color: bool = False) -> str:
    """The report as text."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=color, highlight=False)
    s = analysis.step
    console.print(Text(f"{s.bound.value}: {s.reason} observed {s.observed_us / 1e3:.2f} ms"))
    table = Table()
    for c in ("severity", "wait ms", "bubble ms", "op", "scope", "source"):
        table.add_column(c)
    for f in analysis.findings:
        src = f.where.source
        table.add_row(
            f.severity.value,
            f"{f.wait_us / 1e3:.3f}",
            f"{f.bubble_us / 1e3:.3f}",
            Text(f.where.op),
            Text(" > ".join(f.where.scope)),
            Text(f"{src.file}:{src.line}" if src else ""),
        )
    console.print(table)
    return out.getvalue()
