"""Build flat rows of the host's time, one per line of a function, for data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncscan.model.host import Host, SampledHost
from syncscan.report.column import Column, frame_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "phase": Column("string", "forward, backward, optimizer, data or other"),
    "owner": Column("string", "user, or the package whose function it is; python for its standard library"),
    "function": Column("string", "qualified from Python 3.11 on"),
    "file": Column("string", "as Python named it"),
    "line": Column("int64", "the line that ran, or the line of the call"),
    "depth": Column("int64", "how many callers it has"),
    "us": Column("float64", "total time per step, including callees, µs"),
    "self_us": Column("float64", "self time per step, including non-Python callees, µs"),
    "share": Column("float64", "`us` as a part of the step, 0 to 1"),
}
"""Columns in order, with pandas dtype and meaning; documents `Analysis.host`."""


def host_rows(sampled: SampledHost) -> list[dict[str, Any]]:
    depths: list[int] = []
    rows = []
    for node in sampled.nodes:
        depths.append(depths[node.parent] + 1 if node.parent >= 0 else 0)
        rows.append(
            {
                "phase": node.phase.value,
                "owner": node.owner,
                "function": node.function,
                "file": node.file,
                "line": node.line,
                "depth": depths[-1],
                "us": node.us,
                "self_us": node.self_us,
                "share": node.us / sampled.step_us,
            }
        )
    return rows


def host_frame(host: Host) -> pd.DataFrame:
    return frame_of(host_rows(host.sampled) if host.sampled else [], COLUMNS)
