"""Analyses for the renderers' tests, made by hand: a typical one, an empty one, and one whose every name is hostile."""

from __future__ import annotations

from dataclasses import replace

from syncscan.model.analysis import Analysis
from syncscan.model.finding import (
    Attribution,
    Cause,
    Confidence,
    Cost,
    Diagnosis,
    Finding,
    Gain,
    Occurrence,
    Phase,
    Severity,
    Source,
    SyncPoint,
)
from syncscan.model.step import Bound, StepSummary
from tests.builder import TraceBuilder

STEP = StepSummary(
    count=3,
    observed_us=29_300.0,
    host_us=29_100.0,
    wait_us=8_210.5,
    device_busy_us=20_050.0,
    device_idle_us=9_250.0,
    bubble_us=8_900.0,
    input_us=0.0,
    bound=Bound.SYNC,
    reason="The device works 76% of the step as it is without the profiler; without its syncs it would be 34% shorter.",
    unprofiled_us=26_400.0,
    device_share=0.76,
    recoverable_us=9_000.0,
    recoverable_range_us=(8_100.0, 9_900.0),
    advice=("Remove the sync of nonzero: it alone saves 9.00 ms a step.",),
)

NONZERO = Diagnosis(
    rule="nonzero",
    name="nonzero reads its output size back",
    cause=Cause.SHAPE,
    title="nonzero waits to learn how many elements there are",
    why="The size of the output depends on the data, so the host reads it back before it can go on.",
    fix="Use torch.where(mask, a, b), which keeps the shape.",
    when_fine="Where the selection saves more work than the wait costs.",
)
EXPLICIT = Diagnosis(
    rule="explicit-sync",
    name="Explicit synchronise",
    cause=Cause.EXPLICIT,
    title="torch.cuda.synchronize() in the step",
    why="The program asks to wait for the device.",
    fix="Time with events that are read after the loop.",
    when_fine="Around a measurement.",
    intended=True,
)


def attribution(**changes: object) -> Attribution:
    """Where the typical finding is, with changes."""
    where = Attribution(
        op="aten::index",
        op_stack=("aten::index", "aten::nonzero"),
        scope=("detect", "mask"),
        module=("Detector", "Detector.head"),
        source=Source("train/detect.py", 42, "select", exact=True),
        framework=None,
        owner="user",
        phase=Phase.FORWARD,
        thread="thread 100 (python)",
        step=2,
    )
    return replace(where, **changes)  # type: ignore[arg-type]


def finding(id: str = "nonzero-1f2e3d4c", **changes: object) -> Finding:
    """The typical finding, with changes."""
    where = changes.pop("where", attribution())
    diagnosis = changes.pop("diagnosis", NONZERO)
    assert isinstance(where, Attribution)
    assert isinstance(diagnosis, Diagnosis)
    point = SyncPoint((0,), "cudaStreamSynchronize", (), 0, 0, 8_000_000, 0, 7, diagnosis)
    waits = (8_000_000, 8_200_000, 8_431_500)
    f = Finding(
        id=id,
        diagnosis=diagnosis,
        where=where,
        severity=Severity.HIGH,
        confidence=Confidence.HIGH,
        api="cudaStreamSynchronize",
        count=3,
        per_step=1.0,
        wait_us=8_210.5,
        bubble_us=8_900.0,
        occurrences=tuple(Occurrence(point, where, Cost(w, 8_900_000)) for w in waits),
        gain=Gain(9_000.0, (8_100.0, 9_900.0), 0.0),
    )
    return replace(f, **changes)  # type: ignore[arg-type]


def analysis(*findings: Finding, step: StepSummary = STEP, warnings: tuple[str, ...] = ()) -> Analysis:
    """An analysis with these findings."""
    t = TraceBuilder()
    t.launch(at=0, lasts=5)
    return Analysis(trace=t.trace(), step=step, findings=findings, warnings=warnings)


def typical() -> Analysis:
    """One of each kind: exact line, a function only, a guess, backward, nowhere; with a gain and without; info."""
    inexact = Source("train/loss.py", 10, "loss", exact=False)
    guess = Source("train/loss.py", 10, "loss", exact=False, candidates=(14, 17))
    framework = Source("torch/functional.py", 786, "_unique_impl", exact=True)
    return analysis(
        finding(),
        finding(
            "item-00aa11bb",
            severity=Severity.MEDIUM,
            where=attribution(source=inexact, framework=framework, owner="framework", scope=()),
            per_step=14.0,
            count=42,
            wait_us=600.0,
            bubble_us=20.0,
            gain=Gain(310.0, (0.0, 500.0), 290.0),
        ),
        finding(
            "mask-22cc33dd",
            severity=Severity.LOW,
            confidence=Confidence.MEDIUM,
            where=attribution(source=guess, phase=Phase.BACKWARD, op="IndexBackward0", thread="pt_autograd_0"),
            wait_us=6.3,
            bubble_us=0.0,
            gain=None,
        ),
        finding(
            "explicit-sync-44ee55ff",
            severity=Severity.INFO,
            diagnosis=EXPLICIT,
            where=attribution(source=None, op="", op_stack=(), scope=(), module=(), owner="unknown"),
            gain=None,
        ),
        warnings=("Recorded without shapes.",),
    )


HOSTILE = (
    "=cmd|' /C calc'!A1",
    "@SUM(1+1)",
    "a,b\nc\r\nd",
    "::error file=x::owned",
    "%0A::warning::owned",
    "| cell | `code` ``` |",
    "<script>alert(1)</script>",
    "</details><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![i](http://x.example/p.png)",
    "@everyone see #1 and www.x.example",
    "\x1b[31mred\x07\x00\x0b",
    "\u202eevil\u2066",
    "lone \ud800 surrogate \ufffe \uffff",
    "]]> <!-- & \" '",
    "😀🏳️‍🌈 中文 \U000e0041",
    "x" * 10_000,
    "",
)
"""Names as a trace may hold them."""


def hostile(text: str) -> Analysis:
    """An analysis in which every text that a trace can put there is this one."""
    diagnosis = replace(NONZERO, title=text, why=text, fix=text, when_fine=text, name=text)
    source = Source(text, 3, text, exact=False)
    where = attribution(
        op=text, op_stack=(text,), scope=(text,), module=(text,), source=source, framework=source, thread=text
    )
    step = replace(STEP, reason=text, advice=(text,))
    return analysis(finding(diagnosis=diagnosis, where=where, api=text), step=step, warnings=(text,))
