"""Build flat rows of findings, races, jobs and host time, and pandas frames with documented dtypes from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from syncscan.errors import MissingExtra, installing
from syncscan.model.finding import Confidence, Finding, Severity
from syncscan.model.libraries import path_in_package

if TYPE_CHECKING:
    import pandas as pd

    from syncscan.model.analysis import Analysis
    from syncscan.model.fleet import Fleet, Lateness
    from syncscan.model.host import Host, SampledHost
    from syncscan.model.race import Race
    from syncscan.model.rank import RankStep


Columns = Mapping[str, tuple[str, str]]
"""Name of each column, in order → its pandas dtype, and what it holds."""


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Columns) -> pd.DataFrame:
    """Return the rows as a pandas frame with these columns and dtypes, also where there are none."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("A frame needs pandas.", f"Run: {installing('pandas')}.") from None
    frame = pd.DataFrame(list(rows), columns=list(columns))
    typed: pd.DataFrame = frame.astype({name: dtype for name, (dtype, _) in columns.items()})
    return typed


FINDING_COLUMNS: Columns = {
    "id": ("string", "stable across runs of the same code"),
    "rule": ("string", "the rule's id"),
    "cause": ("string", "class of the cause"),
    "severity": ("string", "high, medium, low or info, by what the step would gain"),
    "confidence": ("string", "high, medium or low: how sure the attribution is"),
    "op": ("string", "outermost op"),
    "scope": ("string", "record_function scopes, outermost first, joined by ' > '"),
    "module": ("string", "nn.Module path, outermost first, joined by ' > '"),
    "file": ("string", "source file of the user's line"),
    "line": ("Int64", "line in it"),
    "function": ("string", "function in it"),
    "exact": ("boolean", "whether `line` is the line that waited"),
    "library_file": ("string", "the library's file inside it that waited, from its package's root on"),
    "library_line": ("Int64", "line in it"),
    "library_function": ("string", "function in it"),
    "owner": ("string", "user, framework or unknown"),
    "phase": ("string", "forward, backward, optimizer, data or other"),
    "thread": ("string", "host thread"),
    "call": ("string", "runtime call that waits"),
    "count": ("Int64", "sync points in the trace"),
    "per_step": ("float64", "sync points per step"),
    "wait_us": ("float64", "measured: host blocked on the device, µs per step"),
    "bubble_us": ("float64", "measured: device idle after it until its next work, µs per step"),
    "moved_us": ("float64", "projected: part of the wait that would move to the next sync, µs per step"),
    "recoverable_us": ("float64", "projected: how much shorter the step would be, µs"),
    "recoverable_low_us": ("float64", "projected: lower end of the range, µs"),
    "recoverable_high_us": ("float64", "projected: upper end of the range, µs"),
    "once_compiled_us": ("float64", "projected: saving if the network is compiled and other syncs are removed, µs"),
    "value": ("string", "steers, shown, nothing or unknown: how the host uses the value that it waited for"),
    "title": ("string", "one-sentence description"),
    "fix": ("string", "what to do instead"),
    "trace": ("string", "path of the trace"),
}
"""Columns in order, with pandas dtype and meaning; documents `Analysis.to_frame()` and `--format csv`."""


def finding_rows(findings: Sequence[Finding], path: str) -> list[dict[str, Any]]:
    """Return one flat row per finding, with the keys of `FINDING_COLUMNS`."""
    return [{**finding_row(f), "trace": path} for f in findings]


def race_row(race: Race, path: str) -> dict[str, Any]:
    """Return the flat row of a race at its later line; columns that only a sync has are absent."""
    return {
        "id": race.id,
        "rule": race.kind.value,
        "severity": Severity.HIGH.value,
        "confidence": Confidence.HIGH.value,
        "file": race.second.file or None,
        "line": race.second.line or None,
        "function": race.second.function,
        "count": race.count,
        "title": race.title,
        "fix": race.fix,
        "trace": path,
    }


def finding_frame(analysis: Analysis) -> pd.DataFrame:
    return frame_of(finding_rows(analysis.findings, analysis.trace.info.path), FINDING_COLUMNS)


_AS_THEY_ARE = (
    "id rule op owner thread call count per_step wait_us bubble_us moved_us recoverable_us once_compiled_us title fix"
).split()
"""Attributes of a finding that are columns; those of `_CODED` are enums."""
_CODED = "cause severity confidence phase value".split()


def finding_row(f: Finding) -> dict[str, Any]:
    library, limits = f.in_library, f.recoverable_range_us or (None, None)
    return {
        **{name: getattr(f, name) for name in _AS_THEY_ARE},
        **{name: getattr(f, name).value for name in _CODED},
        **{name: getattr(f.source, name, None) for name in ("file", "line", "function", "exact")},
        "scope": " > ".join(f.scope),
        "module": " > ".join(f.module),
        "library_file": path_in_package(library.file) if library else None,
        "library_line": library.line if library else None,
        "library_function": library.function if library else None,
        "recoverable_low_us": limits[0],
        "recoverable_high_us": limits[1],
    }


JOB_COLUMNS: Columns = {
    "rank": ("int64", "rank in the job"),
    "step": ("int64", "the step's number"),
    "step_us": ("float64", "duration of this rank's step as recorded, µs"),
    "late_us": ("float64", "how much later than the other ranks it reached the step's collectives, µs; 0 if it didn't"),
    "late_by": ("string", "cause: sync, kernels, input or host; empty if it wasn't late"),
    "late_finding": ("string", "id of the sync that made it late"),
    **FINDING_COLUMNS,
    "job_gain_us": ("float64", "projected: gain of the whole job if it is removed on all its ranks, µs per step"),
    "job_gain_low_us": ("float64", "projected: lower end of that range, µs"),
    "job_gain_high_us": ("float64", "projected: upper end of that range, µs"),
}
"""Columns in order, with pandas dtype and meaning; documents `Fleet.to_frame()`, and CSV of a job."""


def fleet_rows(fleet: Fleet) -> Iterator[dict[str, Any]]:
    """Yield a flat row per rank, step and finding (one per step without findings), with the keys of `JOB_COLUMNS`."""
    wanted = frozenset(fleet.steps)
    late = {(x.rank, x.step): x for x in fleet.lateness}
    of_job = {f.id: f for f in fleet.findings}
    for rank in fleet.ranks:
        findings = [{**finding_row(f), **_of_job(of_job.get(f.id))} for f in rank.of.findings] or [{}]
        for step in rank.of.steps:
            if step.number in wanted:
                head = _step(rank.number, step, late.get((rank.number, step.number)))
                yield from ({**head, **row, "trace": rank.of.path} for row in findings)


def fleet_frame(fleet: Fleet) -> pd.DataFrame:
    return frame_of(fleet_rows(fleet), JOB_COLUMNS)


def _step(rank: int, step: RankStep, late: Lateness | None) -> dict[str, Any]:
    return {
        "rank": rank,
        "step": step.number,
        "step_us": (step.end - step.begin) / 1e3,
        "late_us": late.late_us if late else 0.0,
        "late_by": late.cause.value if late else None,
        "late_finding": (late.finding or None) if late else None,
    }


def _of_job(f: Finding | None) -> dict[str, Any]:
    low, high = (f.recoverable_range_us if f else None) or (None, None)
    return {"job_gain_us": f.recoverable_us if f else None, "job_gain_low_us": low, "job_gain_high_us": high}


HOST_COLUMNS: Columns = {
    "phase": ("string", "forward, backward, optimizer, data or other"),
    "owner": ("string", "user, or the package whose function it is; python for its standard library"),
    "function": ("string", "qualified from Python 3.11 on"),
    "file": ("string", "as Python named it"),
    "line": ("int64", "the line that ran, or the line of the call"),
    "depth": ("int64", "how many callers it has"),
    "us": ("float64", "total time per step, including callees, µs"),
    "self_us": ("float64", "self time per step, including non-Python callees, µs"),
    "share": ("float64", "`us` as a part of the step, 0 to 1"),
}
"""Columns in order, with pandas dtype and meaning; documents `Analysis.host`."""


def host_rows(sampled: SampledHost) -> list[dict[str, Any]]:
    depths: list[int] = []
    rows = []
    for node in sampled.nodes:
        depths.append(depths[node.parent] + 1 if node.parent >= 0 else 0)
        rows.append(
            {
                **{name: getattr(node, name) for name in ("owner", "function", "file", "line", "us", "self_us")},
                "phase": node.phase.value,
                "depth": depths[-1],
                "share": node.us / sampled.step_us,
            }
        )
    return rows


def host_frame(host: Host) -> pd.DataFrame:
    return frame_of(host_rows(host.sampled) if host.sampled else [], HOST_COLUMNS)
