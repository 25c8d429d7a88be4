"""Build the parts of JSON on findings, races and habits; times are µs per step."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Cause, Confidence, Finding, Phase, Severity, Source, Use
from syncscan.model.habit import Area, Basis, Habit, Split
from syncscan.model.likeness import Counterpart
from syncscan.model.race import Race
from syncscan.report.document import Range, about


class FindingDocument(Struct, frozen=True):
    """All sync points with one rule, scope, op and source; for a dry run, also the cost in its recording."""

    id: Annotated[str, about("stable across runs of the same code")]
    rule: Annotated[str, about("id of the rule")]
    name: Annotated[str, about("name of the rule")]
    cause: Cause
    severity: Severity
    confidence: Confidence
    op: Annotated[str, about("outermost op")]
    op_stack: Annotated[tuple[str, ...], about("outermost first")]
    call: Annotated[str, about("the runtime call that waits")]
    scope: Annotated[tuple[str, ...], about("outermost first, without step markers")]
    module: Annotated[tuple[str, ...], about("nn.Modules, outermost first")]
    source: Annotated[Source | None, about("line of user code")]
    called_from: Annotated[Source | None, about("library line inside it that waited")]
    in_loop: bool
    owner: Annotated[str, about("user, a framework, or unknown")]
    phase: Phase
    thread: str
    count: Annotated[int, about("sync points in the trace")]
    per_step: Annotated[float, about("sync points per step")]
    wait_us: Annotated[float | None, about("measured: how long the host was blocked")]
    bubble_us: Annotated[float | None, about("measured: how long the device was idle afterwards")]
    moved_us: Annotated[float | None, about("projected: wait that would move to the next sync")]
    recoverable_us: Annotated[float | None, about("projected: how much shorter the step would be")]
    recoverable_range_us: Range | None
    once_compiled_us: Annotated[
        float | None, about("projected: saving if the network is compiled and other syncs are removed")
    ]
    untold: Annotated[str, about("why the gain is uncertain or unknown; otherwise empty")]
    value: Annotated[Use, about("how the host uses the value; decides whether the sync is safe to remove")]
    title: str
    why: str
    fix: str
    when_fine: str
    like: Counterpart | UnsetType | None = UNSET


def finding_document(f: Finding, analysis: Analysis) -> FindingDocument:
    d, w, gain, withheld = f.diagnosis, f.where, f.gain, analysis.step.waits_withheld
    return FindingDocument(
        id=f.id,
        rule=d.rule,
        name=d.name,
        cause=d.cause,
        severity=f.severity,
        confidence=f.confidence,
        op=w.op,
        op_stack=w.op_stack,
        call=f.api,
        scope=w.scope,
        module=w.module,
        source=w.source,
        called_from=w.framework,
        in_loop=w.in_loop,
        owner=w.owner,
        phase=w.phase,
        thread=w.thread,
        count=f.count,
        per_step=f.per_step,
        wait_us=None if withheld else f.wait_us,
        bubble_us=None if withheld else f.bubble_us,
        moved_us=gain.moved_us if gain else None,
        recoverable_us=gain.recoverable_us if gain else None,
        recoverable_range_us=gain.range_us if gain else None,
        once_compiled_us=gain.once_compiled_us if gain else None,
        untold=gain.untold if gain else "",
        value=w.use,
        title=d.title,
        why=d.why,
        fix=d.fix,
        when_fine=d.when_fine,
        like=UNSET if analysis.likeness is None else analysis.likeness.counterparts.get(f.id),
    )


class RaceDocument(Race, frozen=True, kw_only=True):
    """Two unordered uses of the same memory, and the sentences on such a race."""

    title: str
    why: str
    fix: str


def race_document(race: Race) -> RaceDocument:
    return RaceDocument(**asdict(race), **asdict(race.text))


class HabitDocument(Struct, frozen=True):
    """A cause of a slow step that isn't a sync."""

    id: str
    rule: str
    area: Area
    severity: Severity
    confidence: Confidence
    scope: tuple[str, ...]
    op: str
    per_step: float
    evidence: Annotated[tuple[str, ...], about("numeric evidence")]
    splits: Annotated[tuple[Split, ...], about("what separates the graphs")]
    cost_us: Annotated[float | None, about("measured")]
    recoverable_us: float | None
    recoverable_range_us: Range | None
    basis: Annotated[Basis | None, about("basis of the gain")]
    title: str
    why: str
    fix: str
    when_fine: str


def habit_document(h: Habit) -> HabitDocument:
    a, gain = h.advice, h.gain
    return HabitDocument(
        id=h.id,
        rule=a.rule,
        area=a.area,
        severity=h.severity,
        confidence=h.confidence,
        scope=h.scope,
        op=h.op,
        per_step=h.per_step,
        evidence=h.evidence,
        splits=h.splits,
        cost_us=h.cost_us,
        recoverable_us=gain.recoverable_us if gain else None,
        recoverable_range_us=gain.range_us if gain else None,
        basis=gain.basis if gain else None,
        title=a.title,
        why=a.why,
        fix=a.fix,
        when_fine=a.when_fine,
    )
