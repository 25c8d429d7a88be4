"""A program's whole run, as far as it was watched: its steps, and the phases between and within them, by kind."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Sequence

import msgspec

from syncscan.model import capture
from syncscan.model.libraries import in_package


class PhaseKind(enum.Enum):
    """Purpose of a phase, judged by function names."""

    ROLLOUT = "rollout"
    GENERATION = "generation"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    LOGGING = "logging"
    LOADER = "starting the loader"
    OTHER = "other work"


LOADER = "torch/utils/data/dataloader.py"
_STARTS = frozenset({"__iter__", "_get_iterator", "_reset"})
_WORDS = (
    (PhaseKind.VALIDATION, "val valid validate validation eval evaluate evaluation test estimate_loss"),
    (PhaseKind.GENERATION, "generate generation sample_images sampling decode"),
    (PhaseKind.ROLLOUT, "rollout rollouts collect explore play make_experience"),
    (PhaseKind.CHECKPOINT, "save_checkpoint save_model save_state save_ckpt save_pretrained write_checkpoint"),
    (PhaseKind.LOGGING, "log log_metrics report_metrics add_scalar add_scalars add_histogram add_image add_images"),
)
"""Names of a phase's functions, or whole words in them; the outermost function that fits decides."""
_PACKAGES = (
    (PhaseKind.CHECKPOINT, "torch/serialization.py"),
    (PhaseKind.CHECKPOINT, "torch/distributed/checkpoint"),
    (PhaseKind.CHECKPOINT, "safetensors"),
    (PhaseKind.ROLLOUT, "gymnasium"),
    (PhaseKind.ROLLOUT, "gym"),
    (PhaseKind.LOGGING, "wandb"),
    (PhaseKind.LOGGING, "tensorboard"),
    (PhaseKind.LOGGING, "tensorboardX"),
    (PhaseKind.LOGGING, "torch/utils/tensorboard"),
    (PhaseKind.LOGGING, "mlflow"),
)
_ENVIRONMENT = re.compile(r"[Ee]nv(s|ironment)?\.(step|reset)$")
"""A method of what a rollout acts in, whichever library it is of."""
_LOGARITHM = re.compile(r"^(?!(wandb|mlflow|self|logger|run|accelerator|fabric)\.).*\blog$")
"""A call named `log` that isn't known to write a log."""


def written_kind(calls: Sequence[str]) -> PhaseKind:
    """Return the kind of phase that lines belong to by their calls (`envs.step`); the first in `PhaseKind`'s order."""
    if any(_ENVIRONMENT.search(call) for call in calls):
        return PhaseKind.ROLLOUT
    names = [call.rpartition(".")[2].lower() for call in calls if not _LOGARITHM.search(call)]
    words = ((kind, each.split()) for kind, each in _WORDS)
    return next((kind for kind, those in words if any(_holds(name, those) for name in names)), PhaseKind.OTHER)


@functools.lru_cache(1 << 14)
def kind_named(function: str, file: str) -> PhaseKind:
    """Return the kind of phase that a function is by its name (`Env.step`) and its package; OTHER for most."""
    name = function.rpartition(".")[2]
    if name in _STARTS and in_package(file, LOADER):
        return PhaseKind.LOADER
    for kind, package in _PACKAGES:
        if in_package(file, package):
            return kind
    if in_package(file, "torch"):
        return PhaseKind.OTHER
    if name in ("step", "reset") and _ENVIRONMENT.search(function):
        return PhaseKind.ROLLOUT
    return next((kind for kind, words in _WORDS if _holds(name.lower(), words.split())), PhaseKind.OTHER)


def _holds(name: str, words: Sequence[str]) -> bool:
    return any(f"_{word}_" in f"_{name}_" for word in words)


class RunPhase(msgspec.Struct, frozen=True, kw_only=True):
    """Work of the program between or within its steps, but not in each of them."""

    kind: str
    """A value of `PhaseKind`, or a newer version's name."""
    name: str
    file: str
    function: str
    first: int
    last: int
    """First and last line of the loop or statement within the function."""
    share: float | None
    """Fraction of the run's time, 0 to 1; None if nothing was timed."""
    every: float | None
    """Mean number of steps between occurrences; None if it occurred once."""
    seen_at: int | None = None
    """A step before which or in which it ran, late enough to be recorded; None if no step is known."""
    rounds: float | None = None
    """Mean rounds of its loop per occurrence; None if they weren't counted, or it is no loop."""


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run from a capture's first step to its last, or a dry run's, in which nothing is timed; times in µs."""

    steps: int
    """Number of steps seen."""
    watched_us: float | None
    """Their total time, including steps that the capture disturbed; None if nothing was timed."""
    counted: int
    """Number of undisturbed steps that the mean and the shares are based on."""
    mean_us: float | None
    """Mean time of those, including the phases between them; None if nothing was timed."""
    steps_share: float | None
    """The steps' fraction of the run's time, 0 to 1; None without samples."""
    phases: tuple[RunPhase, ...]
    """Phases that take the rest, longest first."""


SETTLED = 8
"""The step from which on a capture can have warmed up before a phase comes."""


def run_of(record: capture.RunRecord | None) -> ProgramRun | None:
    """Return the summary of a run; None if capture stored none, or disturbed all of its steps."""
    if record is None:
        return None
    disturbed = {k for first, end, _ in record.disturbed for k in range(first, min(end, len(record.steps_us)))}
    first, end = record.window
    counted = [us for k, us in enumerate(record.steps_us) if first <= k < end and k not in disturbed]
    if not counted:
        return None
    phases = sorted(record.phases, key=lambda phase: -phase.us)
    inside = sum(phase.us for phase in phases)
    return ProgramRun(
        steps=record.steps,
        watched_us=sum(record.steps_us),
        counted=len(counted),
        mean_us=max(0.0, sum(counted) - record.own_us) / len(counted),
        steps_share=max(0.0, 1 - inside / record.sampled_us) if record.sampled_us else None,
        phases=tuple(_phase(phase, record.sampled_us) for phase in phases),
    )


def _phase(phase: capture.CapturedPhase, sampled_us: float) -> RunPhase:
    return RunPhase(
        kind=phase.kind,
        name=phase.name,
        file=phase.file,
        function=phase.function,
        first=phase.first,
        last=phase.last,
        share=phase.us / sampled_us if sampled_us else 0.0,
        every=_every(phase.at),
        seen_at=next((step for step in phase.at if step >= SETTLED), phase.at[0] if phase.at else None),
    )


def _every(at: Sequence[int]) -> float | None:
    """Return the mean distance between steps in which a phase began, not counting steps that continue it."""
    begins = [k for k in at if k - 1 not in set(at)]
    return (begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None
