"""Build flat rows of a job, one per rank, step and finding, for data frames and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from syncscan.model.fleet import Fleet, JobFinding, Lateness
from syncscan.model.rank import RankStep
from syncscan.report import finding_table
from syncscan.report.column import Column, frame_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "rank": Column("int64", "rank in the job"),
    "step": Column("int64", "the step's number"),
    "step_us": Column("float64", "duration of this rank's step as recorded, µs"),
    "late_us": Column(
        "float64", "how much later than the other ranks it reached the step's collectives, µs; 0 if it didn't"
    ),
    "late_by": Column("string", "cause: sync, kernels, input or host; empty if it wasn't late"),
    "late_finding": Column("string", "id of the sync that made it late"),
    **finding_table.COLUMNS,
    "job_gain_us": Column("float64", "projected: gain of the whole job if it is removed on all its ranks, µs per step"),
    "job_gain_low_us": Column("float64", "projected: lower end of that range, µs"),
    "job_gain_high_us": Column("float64", "projected: upper end of that range, µs"),
}
"""Columns in order, with pandas dtype and meaning; documents `Fleet.to_frame()`, and CSV of a job."""


def fleet_rows(fleet: Fleet) -> Iterator[dict[str, Any]]:
    """Yield a flat row per rank, step and finding (one per step without findings), with the keys of `COLUMNS`."""
    wanted = frozenset(fleet.steps)
    late = {(x.rank, x.step): x for x in fleet.lateness}
    of_job = {f.id: f for f in fleet.findings}
    for rank in fleet.ranks:
        findings = [{**finding_table.finding_row(f), **_of_job(of_job.get(f.id))} for f in rank.of.findings] or [{}]
        for step in rank.of.steps:
            if step.number in wanted:
                head = _step(rank.number, step, late.get((rank.number, step.number)))
                yield from ({**head, **row, "trace": rank.of.path} for row in findings)


def fleet_frame(fleet: Fleet) -> pd.DataFrame:
    return frame_of(fleet_rows(fleet), COLUMNS)


def _step(rank: int, step: RankStep, late: Lateness | None) -> dict[str, Any]:
    return {
        "rank": rank,
        "step": step.number,
        "step_us": (step.end - step.begin) / 1e3,
        "late_us": late.late_us if late else 0.0,
        "late_by": late.cause.value if late else None,
        "late_finding": (late.finding or None) if late else None,
    }


def _of_job(f: JobFinding | None) -> dict[str, Any]:
    low, high = (f.range_us if f else None) or (None, None)
    return {"job_gain_us": f.gain_us if f else None, "job_gain_low_us": low, "job_gain_high_us": high}
