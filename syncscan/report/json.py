"""Render an Analysis as the JSON that other programs rely on (schema `syncscan.analysis/2`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, convert
from msgspec.structs import asdict

from syncscan.facts.kernel_shares import KernelShare
from syncscan.facts.period import earlier_work, later_work
from syncscan.facts.phases import PhaseSummary, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.host import UNKNOWN_HOST, CountedHost, Host, HostShare, SampledHost
from syncscan.model.json_text import indented
from syncscan.model.obstacles import ObstacleKind
from syncscan.model.projection import Overlap, RemovalGroup
from syncscan.model.saved import Saved
from syncscan.model.states import States
from syncscan.model.step import Bound, DeviceTime, ProcessSteps, ShareBasis
from syncscan.model.steps_found import FoundBy
from syncscan.model.trace import Category, Trace, Vendor
from syncscan.model.view import Hidden
from syncscan.report import kernels, phrases
from syncscan.report.compile_breaks import CompileDocument, compile_document
from syncscan.report.document import Document, Range, about
from syncscan.report.dry_json import DryRunDocument, dry_document
from syncscan.report.finding_json import FindingDocument, finding_document
from syncscan.report.habits_json import HabitDocument, habit_document
from syncscan.report.program_run_json import RunDocument, run_document
from syncscan.report.races_json import RaceDocument, race_document
from syncscan.report.remedies_json import RemedyDocument, remedy_document
from syncscan.report.story import Conclusion, conclusion_of
from syncscan.version import __version__

SCHEMA = "syncscan.analysis/2"


class SampledDocument(SampledHost, frozen=True, kw_only=True):
    """Host time by function, without the profiler; summed up by phase and by owner."""

    phases: tuple[HostShare, ...]
    owners: tuple[HostShare, ...]


class HostDocument(Struct, frozen=True):
    """Where the host's time goes."""

    sampled: SampledDocument | None
    counted: CountedHost | None


class Has(Struct, frozen=True):
    """Kinds of events that a trace contains."""

    steps: Annotated[bool, about("step markers, or ranges that count as steps")]
    stacks: Annotated[bool, about("Python frames")]
    shapes: Annotated[bool, about("shapes of ops' arguments")]
    sync_events: Annotated[bool, about("CUPTI's synchronization rows")]
    exact_lines: Annotated[bool, about("source lines recorded by capture at the syncs")]


class StepsFoundDocument(Struct, frozen=True):
    """How the steps were found."""

    by: FoundBy
    name: Annotated[str | None, about("name of the ranges that are steps")]
    calls: Annotated[int | None, about("launches and synchronizations of the sequence that repeats")]
    sentence: Annotated[str, about("the sentence shown in every report")]
    earlier_work_us: Annotated[float, about("the device's backlog when the first step begins")]
    later_work_us: Annotated[float, about("how long the device is busy after the host is done")]


class TraceDocument(Struct, frozen=True):
    """The trace that was read, and the data it is missing."""

    path: Annotated[str, about("as given")]
    size_bytes: int
    events: int
    vendor: Vendor
    devices: tuple[str, ...]
    rank: Annotated[int | None, about("of a distributed job")]
    world_size: int | None
    has: Has
    integrity: Annotated[tuple[str, ...], about("missing data, and the numbers withheld because of it")]
    steps_found: StepsFoundDocument
    phases: Annotated[tuple[PhaseSummary, ...], about("of served steps")]
    warnings: tuple[str, ...]


class StepDocument(Struct, frozen=True):
    """A step: measurements, the gain without its syncs, and the report's sentences."""

    count: Annotated[int, about("steps analyzed")]
    observed_us: Annotated[float | None, about("steady-state time between steps completed on host and device")]
    host_us: Annotated[float | None, about("duration of a step on its thread")]
    wait_us: Annotated[float | None, about("how long syncs block the host")]
    device_busy_us: Annotated[float | None, about("busiest device, without exposed collectives")]
    device_idle_us: Annotated[float | None, about("neither busy nor communicating")]
    bubble_us: Annotated[float | None, about("idle after syncs")]
    input_us: Annotated[float | None, about("in a loader")]
    communication_us: float | None
    devices: tuple[DeviceTime, ...]
    processes: Annotated[tuple[ProcessSteps, ...], about("processes of a file that has several; the first is analyzed")]
    device_share: Annotated[float | None, about("fraction of the unprofiled step in which the device is busy")]
    device_share_basis: Annotated[
        ShareBasis | None, about("basis of device_share; recorded: from the trace, with the profiler")
    ]
    recorded_device_share: Annotated[
        float | None, about("fraction of the step in the trace in which the device is busy")
    ]
    communication_share: float | None
    guessed_overhead: Annotated[float | None, about("estimated fraction of host time that is profiler overhead")]
    unprofiled_us: Annotated[float | None, about("the step's time without the profiler")]
    bound: Bound
    reason: Annotated[str, about("the numbers behind the verdict, as a sentence")]
    recoverable_us: Annotated[float | None, about("projected: how much shorter without all syncs")]
    recoverable_range_us: Range | None
    verdict: str
    summary: str
    advice: tuple[str, ...]


class ObstacleDocument(Struct, frozen=True):
    """Something that keeps the network from being compiled, or from being held by CUDA graphs."""

    kind: ObstacleKind
    prevents: Annotated[tuple[str, ...], about("ways to launch; empty if that depends on unrecorded facts")]
    seen: Annotated[int, about("ops, kernels, syncs or backward passes per step that show it")]
    of: Annotated[int, about("out of so many; 0 if meaningless")]
    clause: str


class AnalysisDocument(Document, frozen=True):
    """The whole analysis of one trace."""

    trace: TraceDocument
    step: StepDocument
    dry_run: Annotated[DryRunDocument | None, about("None for a recording")]
    compiled: Annotated[CompileDocument | None, about("None without --explain-compile")]
    findings: Annotated[tuple[FindingDocument, ...], about("sorted by saving, then by wait")]
    races: Annotated[tuple[RaceDocument, ...], about("races found by a dry run: unordered uses of the same memory")]
    groups: tuple[RemovalGroup, ...]
    habits: tuple[HabitDocument, ...]
    host: HostDocument | None
    run: Annotated[RunDocument | None, about("None unless capture watched the run")]
    kernels: Annotated[tuple[KernelShare, ...], about("at most five, the longest first")]
    remedies: Annotated[tuple[RemedyDocument, ...], about("changes to make, in order")]
    obstacles: Annotated[tuple[ObstacleDocument, ...], about("in the way of a compile or CUDA graphs")]
    states: Annotated[States | None, about("None if launches don't limit the step")]
    hidden: tuple[Hidden, ...]
    overlaps: tuple[Overlap, ...]


class SavedDocument(AnalysisDocument, frozen=True):
    """An analysis with the data to query it further; `report.saved` writes its last key."""

    saved: Saved


def render(analysis: Analysis) -> str:
    """Return the analysis as indented JSON; all times in µs, means per step unless the name says otherwise."""
    return indented(document(analysis))


def document(analysis: Analysis) -> AnalysisDocument:
    """Return the analysis as its JSON document."""
    shown = analysis.shown
    conclusion = conclusion_of(analysis, shown)
    remedies = ((analysis.remedies[entry.number - 1], entry) for entry in conclusion.remedies if analysis.remedies)
    return AnalysisDocument(
        schema=SCHEMA,
        syncscan=__version__,
        trace=_trace(analysis),
        step=_step(analysis, conclusion),
        dry_run=dry_document(analysis),
        compiled=compile_document(analysis),
        findings=tuple(finding_document(f, analysis) for f in shown.findings),
        races=tuple(map(race_document, analysis.races)),
        groups=analysis.groups,
        habits=tuple(habit_document(h) for h in shown.habits),
        host=_host(analysis.host_time),
        run=run_document(analysis),
        kernels=kernels.shares(analysis),
        remedies=tuple(remedy_document(remedy, entry) for remedy, entry in remedies),
        obstacles=convert(analysis.obstacles, tuple[ObstacleDocument, ...], from_attributes=True),
        states=analysis.states,
        hidden=shown.hidden,
        overlaps=analysis.overlaps,
    )


def _host(host: Host) -> HostDocument | None:
    if host == UNKNOWN_HOST:
        return None
    return HostDocument(_sampled(host.sampled) if host.sampled else None, host.counted)


def _sampled(sampled: SampledHost) -> SampledDocument:
    return SampledDocument(**asdict(sampled), phases=sampled.by_phase(), owners=sampled.by_owner())


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


def _steps_found(analysis: Analysis) -> StepsFoundDocument:
    steps, earlier, later = analysis.trace.steps_found, earlier_work(analysis.trace), later_work(analysis.trace)
    return StepsFoundDocument(
        by=steps.by,
        name=steps.name or None,
        calls=steps.calls or None,
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
        device_share_basis=s.device_share_basis,
        recorded_device_share=None if untimed else s.recorded_device_share,
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
