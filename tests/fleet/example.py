"""Jobs for the tests of their reports, made by hand: one rank of some delays the others, or none does."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from syncscan.model.finding import Cause, Confidence, Finding, Phase, Replacement, Severity, Source, Use
from syncscan.model.fleet import Fleet, JobRank, LateCause, Lateness, PathSegment, RankFrom, Unread
from syncscan.model.rank import RankAnalysis, RankStep

STEP_US = 10_000.0
"""Time of a step of the job."""


def rank_finding(line: int = 52, **changes: Any) -> Finding:
    """A sync of one rank, once per step."""
    built: dict[str, Any] = {
        "id": "item-01c248f7", "rule": "item", "name": "item()", "cause": Cause.READBACK, "severity": Severity.LOW,
        "confidence": Confidence.HIGH, "op": "aten::item", "op_stack": ("aten::item",), "call": "cudaStreamSynchronize",
        "scope": ("train", "log"), "module": (), "source": Source("train.py", line, "step", exact=True),
        "called_from": None, "in_loop": False, "owner": "user", "phase": Phase.FORWARD, "thread": "thread 1",
        "count": 3, "per_step": 1.0, "wait_us": 3_000.0, "bubble_us": 900.0, "moved_us": None,
        "recoverable_us": 800.0, "recoverable_range_us": (700.0, 900.0), "once_compiled_us": None, "untold": "",
        "value": Use.SHOWN, "replacement": Replacement.UNKNOWN,
        "title": ".item() waits for a number", "why": "The number is on the device.",
        "fix": "Keep the number on the device. Log it later.", "when_fine": "Once per epoch.",
    }  # fmt: skip
    return Finding(**{**built, **changes})


def of_job(finding: Finding, ranks: tuple[int, ...], gain_us: float, range_us: tuple[float, float]) -> Finding:
    """A finding of these ranks, with the gain of the job."""
    return replace(finding, ranks=ranks, alone_us=finding.recoverable_us).gaining(gain_us, range_us, STEP_US)


def rank(number: int, findings: tuple[Finding, ...] = (), steps: int = 3, **changes: Any) -> RankAnalysis:
    """One rank's trace: steps of 10 ms."""
    built: dict[str, Any] = {
        "syncscan": "0", "path": f"job/rank{number}.json.gz", "size_bytes": 1000, "rank": number,
        "world_size": None, "base_ns": 0, "groups": (),
        "steps": tuple(RankStep(k, int(k * STEP_US * 1e3), int((k + 1) * STEP_US * 1e3)) for k in range(steps)),
        "numbered": True, "observed_us": STEP_US, "unprofiled_us": None, "wait_us": 3_000.0, "bubble_us": 900.0,
        "busy_us": 8_000.0, "communication_us": 1_000.0 + number, "input_us": 0.0, "host_us": 9_000.0,
        "recoverable_us": 800.0 if findings else 0.0, "bound": "device", "reason": "The device is busy 80%.",
        "findings": findings, "collectives": (), "graph": None,
    }  # fmt: skip
    return RankAnalysis(**{**built, **changes})


def job(count: int = 4, steps: int = 3, late: int = 0, **changes: Any) -> Fleet:
    """A job whose rank `late` waits for a number that no other does, which delays the others in every step.

    Another sync is on all ranks, and gains the job nothing though each trace alone says otherwise.
    """
    everywhere = rank_finding(
        id="nonzero-aa00bb11", rule="nonzero", cause=Cause.SHAPE, title="nonzero waits to learn a size",
        op="aten::nonzero", line=60, recoverable_us=1_200.0, fix="Use torch.where.",
    )  # fmt: skip
    finding = rank_finding()
    ranks = tuple(
        JobRank(
            number=k,
            of=rank(k, (finding, everywhere) if k == late else (everywhere,), steps, world_size=count),
            numbered_from=RankFrom.TRACE,
            clock_ns=0,
            holds_us=700.0 if k == late else 0.0,
            waits_us=0.0 if k == late else 700.0,
        )
        for k in range(count)
    )
    built: dict[str, Any] = {
        "ranks": ranks,
        "world_size": count,
        "missing": (),
        "unread": (),
        "steps": tuple(range(steps)),
        "observed_us": STEP_US,
        "unprofiled_us": None,
        "lateness": tuple(_late(step, late) for step in range(steps)),
        "path": tuple(s for step in range(steps) for s in _path(step, late, (late + 1) % count)),
        "findings": (
            of_job(finding, (late,), 700.0, (600.0, 800.0)),
            of_job(everywhere, tuple(range(count)), 0.0, (0.0, 40.0)),
        ),
        "baseline_us": STEP_US,
        "recoverable_us": 720.0,
        "recoverable_range_us": (620.0, 850.0),
        "matched": 12 * steps,
        "unmatched": 0,
        "notes": (),
    }
    return Fleet(**{**built, **changes})


def damaged(count: int = 4) -> Fleet:
    """One without its last rank, whose trace can't be read."""
    fleet = job(count)
    unread = (Unread(f"job/rank{count}.json.gz", "is cut off in its first event"),)
    note = f"Rank {count} has no trace: what it does to the others isn't known."
    return replace(fleet, world_size=count + 1, missing=(count,), unread=unread, notes=(note,))


def even(count: int = 4) -> Fleet:
    """One in which no rank delays the others, and no sync gains anything."""
    fleet = job(count)
    ranks = tuple(replace(r, of=rank(r.number), holds_us=0.0, waits_us=0.0) for r in fleet.ranks)
    return replace(fleet, ranks=ranks, lateness=(), path=(), findings=(), recoverable_us=0.0,
                   recoverable_range_us=(0.0, 0.0))  # fmt: skip


def hostile(text: str) -> Fleet:
    """One in which every name is this text."""
    source = Source(text, 52, text, exact=True)
    named = rank_finding(id=text, rule=text, title=text, fix=text, op=text, scope=(text,), source=source, thread=text)
    fleet = job(2)
    ranks = tuple(replace(r, of=rank(r.number, (named,), path=text, bound=text, reason=text)) for r in fleet.ranks)
    path = tuple(replace(s, collective=text) for s in fleet.path)
    late = tuple(replace(x, finding=text) for x in fleet.lateness)
    result = (of_job(replace(named, recoverable_us=500.0), (0, 1), 900.0, (800.0, 1_000.0)),)
    return replace(fleet, ranks=ranks, path=path, lateness=late, findings=result, unread=(Unread(text, text),),
                   notes=(text,))  # fmt: skip


def _late(step: int, rank: int) -> Lateness:
    parts = ((LateCause.SYNC, 650.0), (LateCause.HOST, 50.0))
    return Lateness(step, rank, 700.0, LateCause.SYNC, "item-01c248f7", parts)


def _path(step: int, late: int, other: int) -> tuple[PathSegment, ...]:
    begin = step * STEP_US
    return (
        PathSegment(step, late, begin, begin + 6_000.0, "AllReduce"),
        PathSegment(step, other, begin + 6_000.0, begin + STEP_US, ""),
    )
