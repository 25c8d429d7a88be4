"""Analyses for the renderers' tests, made by hand: a typical one, an empty one, and one whose every name is hostile."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan import api, report
from syncscan.model.analysis import Analysis
from syncscan.model.finding import (
    Cause,
    Confidence,
    Finding,
    Phase,
    Replacement,
    Severity,
    Source,
    SyncPoint,
    Use,
)
from syncscan.model.habit import Area, Basis, Habit, Split
from syncscan.model.host import CountedHost, DearOp, Host, HostNode, SampledHost
from syncscan.model.projection import Remedy
from syncscan.model.step import Bound, Outlook, ShareBasis, StepSummary
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
    reason="The device is busy 68% of the step in the trace, 76% without the profiler; without syncs, the step would "
    "be 34% shorter.",
    unprofiled_us=26_400.0,
    device_share=0.76,
    device_share_basis=ShareBasis.MEASURED,
    recoverable_us=9_000.0,
    recoverable_range_us=(8_100.0, 9_900.0),
    outlook=Outlook(
        gains=True,
        after=Bound.HOST,
    ),
)

NONZERO = dict(  # noqa: C408
    rule="nonzero",
    name="nonzero reads its output size back",
    cause=Cause.SHAPE,
    title="nonzero waits to learn how many elements there are",
    why="The size of the output depends on the data, so the host reads it back before it can go on.",
    fix="Use torch.where(mask, a, b), which keeps the shape.",
    when_fine="Where the selection saves more work than the wait costs.",
    do="Keep the shape: torch.where(mask, a, b).",
)
EXPLICIT = dict(  # noqa: C408
    rule="explicit-sync",
    name="Explicit synchronize",
    cause=Cause.EXPLICIT,
    title="torch.cuda.synchronize() in the step",
    why="The program asks to wait for the device.",
    fix="Time with events that are read after the loop.",
    when_fine="Around a measurement.",
    do="Read events after the loop.",
)

LAUNCHES = Habit(
    id="launch-bound-5a6b7c8d",
    rule="launch-bound",
    area=Area.DEVICE,
    title="The step is bound by its launches",
    why="Each launch takes the host longer than its kernel takes the device.",
    fix='torch.compile(mode="reduce-overhead") or a CUDA graph for the launches between syncs.',
    when_fine="Where the step is short beside what the program does around it.",
    do='torch.compile(model, mode="reduce-overhead").',
    confidence=Confidence.MEDIUM,
    scope=("train", "step"),
    op="",
    per_step=420.0,
    evidence=("420 launches per step", "the device is busy 76% of it"),
    cost_us=4_000.0,
    recoverable_us=3_000.0,
    recoverable_range_us=(2_000.0, 3_500.0),
    basis=Basis.REPLAY,
    severity=Severity.HIGH,
    splits=(
        Split(
            what="aten::nonzero in mask",
            source=Source("train/detect.py", 42, "select", exact=True),
            finding="nonzero-1f2e3d4c",
            per_step=1.0,
            us=8_210.5,
        ),
    ),
)
TIMED = replace(
    LAUNCHES,
    id="garbage-collection-9e8d7c6b",
    rule="garbage-collection",
    title="Garbage is collected in each step",
    evidence=("one synchronize a step",),
    cost_us=None,
    recoverable_us=None,
    recoverable_range_us=None,
    basis=None,
    severity=Severity.MEDIUM,
    scope=(),
    splits=(),
)


def remedy(**changes: object) -> Remedy:
    """The removal of the typical finding, with changes."""
    built = Remedy(
        findings=("nonzero-1f2e3d4c",),
        what=NONZERO["title"],
        alone_us=9_000.0,
        range_us=(8_100.0, 9_900.0),
        after_us=9_000.0,
        basis=Basis.REPLAY,
        confidence=Confidence.HIGH,
    )
    return replace(built, **changes)  # type: ignore[arg-type]


def of_habit(habit: Habit, after_us: float | None = 1_000.0) -> Remedy:
    """Giving up a habit that has a gain."""
    assert habit.recoverable_us is not None
    assert habit.recoverable_range_us is not None
    assert habit.basis is not None
    return remedy(
        findings=(),
        habit=habit.id,
        what=habit.title,
        alone_us=habit.recoverable_us,
        range_us=habit.recoverable_range_us,
        after_us=after_us,
        basis=habit.basis,
        confidence=habit.confidence,
    )


COUNTED = CountedHost(
    step_us=14_300.0,
    dispatch_us=6_400.0,
    launches_us=3_000.0,
    allocations_us=0.0,
    queries_us=300.0,
    other_calls_us=2.0,
    waits_us=498.0,
    input_us=0.0,
    python_us=4_100.0,
    ops_per_step=1_234.0,
    launches_per_step=420.0,
    kernels_per_launch=1.0,
    scaled=True,
    dearest=(
        DearOp(op="aten::mm", scope=("encoder", "attention"), per_step=48.0, us=1_500.0, self_us=1_200.0),
        DearOp(
            op="autograd::engine::evaluate_function: MmBackward0",
            scope=("encoder",),
            per_step=24.0,
            us=2_000.0,
            self_us=300.0,
        ),
    ),
)
"""Counts of a host-bound step's trace."""


def node(parent: int, function: str, file: str, line: int, owner: str, phase: Phase, us: float, own: float) -> HostNode:
    """A node of a sampled tree, on one line."""
    return HostNode(
        parent=parent, function=function, file=file, line=line, owner=owner, phase=phase, us=us, self_us=own
    )


TRAINER = "/env/lib/python3.12/site-packages/transformers/trainer.py"
SAMPLED = SampledHost(
    step_us=14_300.0,
    steps=50,
    samples=7_150,
    overhead=0.012,
    nodes=(
        node(-1, "main", "/home/me/train.py", 30, "user", Phase.OTHER, 14_300, 100),
        node(0, "_inner_training_loop", TRAINER, 2100, "transformers", Phase.OTHER, 14_200, 1_300),
        node(1, "forward", "/home/me/model.py", 12, "user", Phase.FORWARD, 5_900, 900),
        node(
            2, "linear", "/env/lib/python3.12/site-packages/torch/nn/functional.py", 7, "torch", Phase.FORWARD, 5e3, 5e3
        ),
        node(
            1,
            "backward",
            "/env/lib/python3.12/site-packages/torch/_tensor.py",
            9,
            "torch",
            Phase.BACKWARD,
            3_100,
            3_100,
        ),
        node(
            1,
            "step",
            "/env/lib/python3.12/site-packages/torch/optim/adamw.py",
            8,
            "torch",
            Phase.OPTIMIZER,
            2_200,
            2_200,
        ),
        node(
            1,
            "__next__",
            "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py",
            7,
            "torch",
            Phase.DATA,
            900,
            900,
        ),
        node(1, "log", TRAINER, 3000, "transformers", Phase.OTHER, 800, 700),
        node(7, "dumps", "<built-in>", 0, "python", Phase.OTHER, 100, 100),
    ),
)
"""The tree of a trainer's step, as capture might sample it."""


HOST = Host(sampled=SAMPLED, counted=COUNTED)


def host_bound(host: Host = HOST) -> Analysis:
    """An analysis of a step that its host bounds, and what is known of where the host's time goes."""
    step = replace(
        STEP, bound=Bound.HOST, reason="The device is busy 12% of the step and waits for the host's launches."
    )
    return replace(analysis(finding(), step=step), host_time=host)


def finding(id: str = "nonzero-1f2e3d4c", **changes: object) -> Finding:
    """The typical finding, with changes."""
    point = SyncPoint(
        (0,), "cudaStreamSynchronize", ("cudaStreamSynchronize",), 0, 8_000_000, 0, -1, 0, 7, True, None, "", -1
    )
    waits = (8_000_000, 8_200_000, 8_431_500)
    f = Finding(
        id=id,
        **NONZERO,  # type: ignore[arg-type]
        severity=Severity.HIGH,
        confidence=Confidence.HIGH,
        op="aten::index",
        op_stack=("aten::index", "aten::nonzero"),
        call="cudaStreamSynchronize",
        scope=("detect", "mask"),
        module=("Detector", "Detector.head"),
        source=Source("train/detect.py", 42, "select", exact=True),
        called_from=None,
        in_loop=False,
        owner="user",
        phase=Phase.FORWARD,
        thread="thread 100 (python)",
        count=3,
        per_step=1.0,
        wait_us=8_210.5,
        bubble_us=8_900.0,
        recoverable_us=9_000.0,
        recoverable_range_us=(8_100.0, 9_900.0),
        moved_us=0.0,
        once_compiled_us=None,
        untold="",
        replacement=Replacement.UNKNOWN,
        value=Use.UNKNOWN,
        occurrences=tuple(replace(point, wait_ns=wait, bubble_ns=8_900_000) for wait in waits),
    )
    return replace(f, **changes)  # type: ignore[arg-type]


UNPROJECTED = {"recoverable_us": None, "recoverable_range_us": None, "moved_us": None}
"""The changes that take a finding's gain away."""


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
    outcome = analysis(
        finding(),
        finding(
            "item-00aa11bb",
            severity=Severity.MEDIUM,
            source=inexact,
            called_from=framework,
            owner="framework",
            scope=(),
            per_step=14.0,
            count=42,
            wait_us=600.0,
            bubble_us=20.0,
            recoverable_us=310.0,
            recoverable_range_us=(0.0, 500.0),
            moved_us=290.0,
        ),
        finding(
            "mask-22cc33dd",
            severity=Severity.LOW,
            confidence=Confidence.MEDIUM,
            source=guess,
            phase=Phase.BACKWARD,
            op="IndexBackward0",
            thread="pt_autograd_0",
            wait_us=6.3,
            bubble_us=0.0,
            **UNPROJECTED,
        ),
        finding(
            "explicit-sync-44ee55ff",
            severity=Severity.INFO,
            **EXPLICIT,
            source=None,
            op="",
            op_stack=(),
            scope=(),
            module=(),
            owner="unknown",
            **UNPROJECTED,
        ),
        warnings=("Recorded without shapes.",),
    )
    together = remedy(
        findings=("item-00aa11bb", "mask-22cc33dd"), alone_us=320.0, range_us=(0.0, 500.0), after_us=0.0,
        confidence=Confidence.MEDIUM,
    )  # fmt: skip
    return replace(outcome, habits=(LAUNCHES, TIMED), remedies=(remedy(), of_habit(LAUNCHES), together))


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
    source = Source(text, 3, text, exact=False)
    everywhere = finding(
        title=text, why=text, fix=text, when_fine=text, name=text, call=text, op=text, op_stack=(text,),
        scope=(text,), module=(text,), source=source, called_from=source, thread=text,
    )  # fmt: skip
    outlook = Outlook(gains=True, first_use=text)
    step = replace(STEP, reason=text, outlook=outlook, bound=Bound.HOST)
    outcome = analysis(everywhere, step=step, warnings=(text,))
    habit = hostile_habit(text)
    listed = (replace(remedy(), what=text), replace(of_habit(habit), what=text))
    return replace(outcome, host_time=hostile_host(text), habits=(habit,), remedies=listed)


def hostile_habit(text: str) -> Habit:
    """A habit in which every name and every word is this one."""
    words = dict.fromkeys(("title", "why", "fix", "when_fine", "op"), text)
    splits = tuple(replace(s, what=text, source=Source(text, 3, text, exact=True)) for s in LAUNCHES.splits)
    return replace(LAUNCHES, scope=(text,), evidence=(text,), splits=splits, **words)


def hostile_host(text: str) -> Host:
    """Where the host's time goes, every name in it this one."""
    nodes = tuple(replace(n, function=text, file=text, owner=text) for n in SAMPLED.nodes)
    dearest = tuple(replace(dear, op=text, scope=(text, text)) for dear in COUNTED.dearest)
    return Host(sampled=replace(SAMPLED, nodes=nodes), counted=replace(COUNTED, dearest=dearest))


def scattered() -> Analysis:
    """Four steps with a nonzero and an item: the costliest nonzero in the last, the costliest item in the second."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(4, lasts=4000)):
        with t.scope("select", start + 10, start + 1900):
            t.launch("gemm", at=start + 20, lasts=900 if number == 3 else 600)
            t.sync("aten::nonzero", at=start + 100)
        with t.scope("log", start + 2000, start + 3900):
            t.launch("head", at=start + 2020, lasts=800 if number == 1 else 500)
            t.sync("aten::item > aten::_local_scalar_dense", at=start + 2100)
            t.launch("tail", at=start + 3500, lasts=50)
    return api.analyze_trace(t.trace())


def rendered(form: str, of: Analysis) -> str:
    """An analysis in a format."""
    return report.render(of, form)


def story() -> TraceBuilder:
    """Two steps; in each a nonzero waits for a kernel, and the next launch comes late."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=2000, start=1000):
        with t.scope("mask", start + 10, start + 900):
            t.launch("gemm", at=start + 20, lasts=500)
            t.sync("aten::nonzero", at=start + 30, wait=600)
            t.launch("late", at=start + 800, lasts=300)
    return t
