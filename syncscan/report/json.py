"""From an Analysis to the JSON that other programs rely on (schema `syncscan.analysis/1`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.facts.period import earlier_work, later_work
from syncscan.facts.phases import PhaseSummary, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.json_text import indented
from syncscan.model.projection import Group
from syncscan.model.saved import Saved
from syncscan.model.step import Bound, DeviceTime, ProcessSteps
from syncscan.model.steps_found import FoundBy
from syncscan.model.trace import Category, Trace, Vendor
from syncscan.report import phrases
from syncscan.report.document import Document, OverlapDocument, Range, about
from syncscan.report.dry_json import DryRunDocument, dry_document
from syncscan.report.finding_json import FindingDocument, finding_document
from syncscan.report.habits_json import HabitDocument, habit_document
from syncscan.report.host_json import HostDocument, host_document
from syncscan.report.program_run_json import RunDocument, run_document
from syncscan.report.races_json import RaceDocument, race_document
from syncscan.report.remedies_json import RemedyDocument, remedy_document
from syncscan.report.story import Conclusion, conclusion_of
from syncscan.version import __version__

SCHEMA = "syncscan.analysis/1"


class Has(Struct, frozen=True):
    """What of a trace's kinds of events it has."""

    steps: Annotated[bool, about("marks, or ranges that count as steps")]
    stacks: Annotated[bool, about("Python frames")]
    shapes: Annotated[bool, about("shapes of ops' arguments")]
    sync_events: Annotated[bool, about("CUPTI's synchronisation rows")]
    exact_lines: Annotated[bool, about("lines that capture stored at the syncs")]


class StepsFound(Struct, frozen=True):
    """How the steps were found."""

    by: FoundBy
    name: Annotated[str | None, about("of the ranges that are steps")]
    calls: Annotated[int | None, about("launches and synchronises of the sequence that repeats")]
    sentence: Annotated[str, about("the same as every report says it")]
    earlier_work_us: Annotated[float, about("how long the device works on what was launched before the first step")]
    later_work_us: Annotated[float, about("how long it goes on when the host is done")]


class TraceDocument(Struct, frozen=True):
    """What was read, what it has, what it lacks."""

    path: Annotated[str, about("as it was given")]
    size_bytes: int
    events: int
    vendor: Vendor
    devices: tuple[str, ...]
    rank: Annotated[int | None, about("of a distributed job")]
    world_size: int | None
    has: Has
    integrity: Annotated[tuple[str, ...], about("what the trace lacks, and which numbers are withheld for it")]
    steps_found: StepsFound
    phases: Annotated[tuple[PhaseSummary, ...], about("of served steps")]
    warnings: tuple[str, ...]


class StepDocument(Struct, frozen=True):
    """A step: measured, what its syncs' removal gains, and what is said of it."""

    count: Annotated[int, about("steps analysed")]
    observed_us: Annotated[float | None, about("throughput: host and device both done")]
    host_us: Annotated[float | None, about("how long a step lasts on its thread")]
    wait_us: Annotated[float | None, about("how long its host is held by syncs")]
    device_busy_us: Annotated[float | None, about("of the busiest device, exposed collectives left out")]
    device_idle_us: Annotated[float | None, about("when it neither works nor communicates")]
    bubble_us: Annotated[float | None, about("idle behind syncs")]
    input_us: Annotated[float | None, about("in a loader")]
    communication_us: float | None
    devices: tuple[DeviceTime, ...]
    processes: Annotated[tuple[ProcessSteps, ...], about("of a file of several; the first is analysed")]
    device_share: Annotated[float | None, about("the part of the unprofiled step that the device works")]
    communication_share: float | None
    guessed_overhead: Annotated[float | None, about("the part of the host that is guessed to be the profiler's")]
    unprofiled_us: Annotated[float | None, about("the step's time without the profiler")]
    bound: Bound
    reason: Annotated[str, about("the numbers that the verdict rests on, in a sentence")]
    recoverable_us: Annotated[float | None, about("projected: how much shorter without all syncs")]
    recoverable_range_us: Range | None
    verdict: str
    summary: str
    advice: tuple[str, ...]


class HiddenDocument(Struct, frozen=True):
    """What an option leaves out."""

    by: Annotated[str, about("the option")]
    findings: int
    habits: int


class AnalysisDocument(Document, frozen=True):
    """All that was found out about one trace."""

    trace: TraceDocument
    step: StepDocument
    dry_run: Annotated[DryRunDocument | None, about("None of a recording")]
    findings: Annotated[tuple[FindingDocument, ...], about("sorted by what they save, then by wait")]
    races: Annotated[tuple[RaceDocument, ...], about("uses of one memory that nothing orders, of a dry run")]
    groups: tuple[Group, ...]
    habits: tuple[HabitDocument, ...]
    host: HostDocument | None
    run: Annotated[RunDocument | None, about("None if capture didn't watch it")]
    remedies: Annotated[tuple[RemedyDocument, ...], about("what to change, in order")]
    hidden: tuple[HiddenDocument, ...]
    overlaps: tuple[OverlapDocument, ...]


class SavedDocument(AnalysisDocument, frozen=True):
    """An analysis with all that it takes to ask further; `report.saved` writes its last key."""

    saved: Saved


def render(analysis: Analysis) -> str:
    """The analysis as indented JSON; all times in µs, means per step unless the name says otherwise."""
    return indented(document(analysis))


def document(analysis: Analysis) -> AnalysisDocument:
    """Return the analysis as its JSON has it."""
    shown = analysis.shown
    conclusion = conclusion_of(analysis, shown)
    remedies = ((analysis.remedies[told.number - 1], told) for told in conclusion.remedies if analysis.remedies)
    return AnalysisDocument(
        schema=SCHEMA,
        syncscan=__version__,
        trace=_trace(analysis),
        step=_step(analysis, conclusion),
        dry_run=dry_document(analysis),
        findings=tuple(finding_document(f, analysis) for f in shown.findings),
        races=tuple(map(race_document, analysis.races)),
        groups=analysis.groups,
        habits=tuple(habit_document(h) for h in shown.habits),
        host=host_document(analysis.host_time),
        run=run_document(analysis),
        remedies=tuple(remedy_document(remedy, told) for remedy, told in remedies),
        hidden=tuple(HiddenDocument(h.option, h.findings, h.habits) for h in shown.hidden),
        overlaps=tuple(OverlapDocument(o.device, o.streams, o.work_us, o.shared_us) for o in analysis.overlaps),
    )


def _trace(analysis: Analysis) -> TraceDocument:
    t, info = analysis.trace, analysis.trace.info
    return TraceDocument(
        path=info.path,
        size_bytes=info.size_bytes,
        events=info.events,
        vendor=info.vendor,
        devices=info.devices,
        rank=info.rank,
        world_size=info.world_size,
        has=_has(t),
        integrity=analysis.integrity.sentences(),
        steps_found=_steps_found(analysis),
        phases=phases_of(t),
        warnings=analysis.warnings,
    )


def _steps_found(analysis: Analysis) -> StepsFound:
    found, earlier, later = analysis.trace.steps_found, earlier_work(analysis.trace), later_work(analysis.trace)
    return StepsFound(
        by=found.by,
        name=found.name or None,
        calls=found.calls or None,
        sentence=phrases.steps_found(analysis),
        earlier_work_us=earlier.length / 1e3 if earlier else 0.0,
        later_work_us=later.length / 1e3 if later else 0.0,
    )


def _has(t: Trace) -> Has:
    return Has(
        steps=bool(t.steps),
        stacks=bool(len(t.frames)) or t.info.with_stack,
        shapes=t.info.record_shapes,
        sync_events=bool((t.slices.category == Category.SYNC).any()),
        exact_lines=bool(t.info.capture.lines.syncs),
    )


def _step(analysis: Analysis, conclusion: Conclusion) -> StepDocument:
    s, untimed = analysis.step, analysis.trace.info.capture.pretended
    return StepDocument(
        count=s.count,
        observed_us=None if untimed else s.observed_us,
        host_us=None if untimed else s.host_us,
        wait_us=None if untimed else s.wait_us,
        device_busy_us=None if untimed else s.device_busy_us,
        device_idle_us=None if untimed else s.device_idle_us,
        bubble_us=None if untimed else s.bubble_us,
        input_us=None if untimed else s.input_us,
        communication_us=None if untimed else s.communication_us,
        devices=s.devices,
        processes=s.processes,
        device_share=s.device_share,
        communication_share=s.communication_share,
        guessed_overhead=s.guessed_overhead,
        unprofiled_us=s.unprofiled_us,
        bound=s.bound,
        reason=s.reason,
        recoverable_us=s.recoverable_us,
        recoverable_range_us=s.recoverable_range_us or None,
        verdict=conclusion.verdict,
        summary=conclusion.summary,
        advice=conclusion.advice,
    )
