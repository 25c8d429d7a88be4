"""From the ranks of a job to flat rows, one a rank, step and finding: what a data frame, CSV and Parquet hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from syncscan.model.finding_table import Column
from syncscan.model.rank import RankAnalysis, RankFinding, RankStep

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "rank": Column("int64", "the rank's number in the job"),
    "step": Column("int64", "the step's number"),
    "step_us": Column("float64", "what this rank's step took as recorded, µs"),
    "late_us": Column(
        "float64", "how much later than the others it came to the step's collectives, µs; 0 where it didn't"
    ),
    "late_by": Column("string", "sync, kernels, input or host: why; empty where it wasn't late"),
    "late_finding": Column("string", "the id of the sync that it was late for"),
    "id": Column("string", "the finding's, the same on all ranks; empty in the one row of a rank without any"),
    "rule": Column("string", "the rule's id"),
    "cause": Column("string", "class of the cause"),
    "op": Column("string", "outermost op"),
    "scope": Column("string", "record_function scopes, outermost first, joined by ' > '"),
    "file": Column("string", "source file of the user's line"),
    "line": Column("Int64", "line in it"),
    "function": Column("string", "function in it"),
    "phase": Column("string", "forward, backward, optimizer, data or other"),
    "intended": Column("boolean", "whether the wait is meant"),
    "per_step": Column("float64", "sync points a step, mean of this rank's steps"),
    "wait_us": Column("float64", "measured: host blocked on the device, µs a step, mean of this rank's steps"),
    "bubble_us": Column("float64", "measured: device idle behind it, µs a step, mean of this rank's steps"),
    "alone_us": Column("float64", "projected: what removing it would gain if this rank were alone, µs a step"),
    "job_gain_us": Column("float64", "projected: what removing it on all its ranks would gain the job, µs a step"),
    "job_gain_low_us": Column("float64", "projected: lower end of that range, µs"),
    "job_gain_high_us": Column("float64", "projected: upper end of that range, µs"),
    "title": Column("string", "what it is, in a sentence"),
    "trace": Column("string", "path of the rank's trace"),
}
"""Column → its pandas dtype and what it holds, in order; documents `Fleet.to_frame()`, and CSV and Parquet of a job."""


class Late(NamedTuple):
    """How late a rank came in a step, and why."""

    us: float
    cause: str
    finding: str


Gain = tuple[float | None, float | None, float | None]
"""What removing a finding gains the job, and its range, µs a step."""
_NOT_LATE = Late(0.0, "", "")


def fleet_rows(
    ranks: Sequence[tuple[int, RankAnalysis]],
    steps: Sequence[int],
    late: Mapping[tuple[int, int], Late],
    gains: Mapping[str, Gain],
) -> Iterator[dict[str, Any]]:
    """One flat row a rank, step and finding, with the keys of `COLUMNS`; one a step of a rank without findings.

    Args:
        ranks: with their numbers.
        steps: numbers of the steps that count.
        late: rank and step → how late it came there.
        gains: finding's id → what the job gains without it.
    """
    wanted = frozenset(steps)
    for number, rank in ranks:
        found = [_finding(f, rank, gains.get(f.id, (None, None, None))) for f in rank.findings] or [{}]
        for step in rank.steps:
            if step.number in wanted:
                told = _step(number, step, late.get((number, step.number), _NOT_LATE))
                yield from ({**told, **row, "trace": rank.path} for row in found)


def fleet_frame(rows: Iterator[dict[str, Any]]) -> pd.DataFrame:
    """The same as a pandas frame with the dtypes of `COLUMNS`, also without any row."""
    import pandas as pd

    frame = pd.DataFrame(list(rows), columns=list(COLUMNS))
    return frame.astype({name: column.dtype for name, column in COLUMNS.items()})


def _step(rank: int, step: RankStep, late: Late) -> dict[str, Any]:
    return {
        "rank": rank,
        "step": step.number,
        "step_us": (step.end - step.begin) / 1e3,
        "late_us": late.us,
        "late_by": late.cause or None,
        "late_finding": late.finding or None,
    }


def _finding(f: RankFinding, rank: RankAnalysis, gain: Gain) -> dict[str, Any]:
    untold = rank.wait_us is None
    return {
        "id": f.id,
        "rule": f.rule,
        "cause": f.cause,
        "op": f.op,
        "scope": " > ".join(f.scope),
        "file": f.file or None,
        "line": f.line or None,
        "function": f.function or None,
        "phase": f.phase,
        "intended": f.intended,
        "per_step": f.per_step,
        "wait_us": None if untold else f.wait_us,
        "bubble_us": None if untold else f.bubble_us,
        "alone_us": f.alone_us,
        "job_gain_us": gain[0],
        "job_gain_low_us": gain[1],
        "job_gain_high_us": gain[2],
        "title": f.title,
    }
