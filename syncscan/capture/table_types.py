"""Types of a capture's data under its trace's key `syncscan`; source of syncscan/schemas/capture.json.

Nothing here runs in the program that is captured: `course` and `recorder` write plain dicts, and `model.capture` reads
each part by itself, whatever it holds.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from syncscan.model.capture import (
    CapturedPhase,
    Clocks,
    Collection,
    Disturbed,
    EventCall,
    Frame,
    HostFrame,
    HostSample,
    RunLoop,
    RunSpan,
    SampledThread,
    SampledThreadUse,
    SyncRecord,
    TimedCall,
    WarnedSync,
)
from syncscan.model.compiled import CompileRecord


class LinesDocument(Struct, frozen=True):
    """Where synchronizations were called: numbered frames and stacks, and records that refer to them."""

    source: str
    columns: tuple[str, ...]
    frames: tuple[Frame, ...]
    stacks: Annotated[tuple[tuple[int, ...], ...], Meta(description="places in `frames`, innermost first")]
    modules: tuple[str, ...]
    syncs: tuple[SyncRecord, ...]
    calls: tuple[TimedCall, ...] | UnsetType = UNSET
    """Calls that were timed by name."""
    warned: tuple[WarnedSync, ...] | UnsetType = UNSET
    """Warnings of the debug mode, where torch offers no callbacks."""
    looped: Annotated[
        tuple[int, ...] | UnsetType, Meta(description="frames in a network whose line is in a loop of their function")
    ] = UNSET


class ClocksDocument(Struct, frozen=True):
    """Clocks and power of the device."""

    calibrated: Clocks | UnsetType = UNSET
    recorded: Clocks | UnsetType = UNSET


class SampledHostDocument(Struct, frozen=True):
    """Samples of the host, without the profiler."""

    rate: float
    steps: int
    samples: int
    step_us: float
    frames: tuple[HostFrame, ...]
    nodes: tuple[HostSample, ...]
    used: SampledThreadUse | UnsetType = UNSET
    """Resources that the step's thread used meanwhile; since 0.2."""
    threads: tuple[SampledThread, ...] | UnsetType = UNSET


class CapturedRunDocument(Struct, frozen=True):
    """The run's steps from a capture's first to its last, and the phases between and within them."""

    steps: int
    steps_us: Annotated[tuple[float, ...], Meta(description="the time of each")]
    disturbed: Annotated[tuple[Disturbed, ...], Meta(description="steps whose times aren't the program's own")]
    recorded: Annotated[
        tuple[tuple[int, ...], ...], Meta(description="first recorded step, and the step after the last one")
    ]
    period: Annotated[int, Meta(description="period of the steps' times, in steps")]
    loop: Annotated[RunLoop | None, Meta(description="whose iterations are the steps")]
    window: Annotated[
        tuple[int, ...], Meta(description="first step that the shares are based on, and the step after the last one")
    ]
    sampled_us: Annotated[float, Meta(description="of those")]
    phases: tuple[CapturedPhase, ...]
    spans: Annotated[tuple[RunSpan, ...], Meta(description="what was sampled, in order")]
    own_us: Annotated[float | UnsetType, Meta(description="the capture's own work in those; since 0.2")] = UNSET


class CaptureDocument(Struct, frozen=True):
    """All data of a capture; keys with a default aren't in every capture."""

    schema: str
    syncscan: Annotated[str, Meta(description="the version that wrote this")]
    unprofiled_step_us: Annotated[float | None, Meta(description="median of the calibrated steps")]
    calibrated_steps: int
    device_drained: bool
    lines: LinesDocument | None
    events: Annotated[tuple[EventCall, ...], Meta(description="records and waits of events")]
    unfinished_step: Annotated[int | None, Meta(description="number of the step that was cut off by the program's end")]
    unprofiled_quartiles_us: tuple[float, ...] | UnsetType | None = UNSET
    unprofiled_mean_us: float | UnsetType | None = UNSET
    unprofiled_steps_us: tuple[float, ...] | UnsetType = UNSET
    unprofiled_clock: str | UnsetType | None = UNSET
    unprofiled_undisturbed: bool | UnsetType | None = UNSET
    first_step: int | UnsetType | None = UNSET
    notes: tuple[str, ...] | UnsetType = UNSET
    collections: tuple[Collection, ...] | UnsetType = UNSET
    clocks: ClocksDocument | UnsetType = UNSET
    host: SampledHostDocument | UnsetType = UNSET
    run: CapturedRunDocument | UnsetType | None = UNSET
    compiled: Annotated[CompileRecord | UnsetType, Meta(description="dynamo's explanations, if requested")] = UNSET
    unprofiled_period: Annotated[int | UnsetType, Meta(description="period of the timed steps, in steps")] = UNSET
