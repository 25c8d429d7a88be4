"""Decide once what bounds a calibrated step, and say what limits it without its syncs, or why that gains nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscan.facts.device_work import device_works, shares
from syncscan.model.duration import duration
from syncscan.model.projection import Projection
from syncscan.model.step import BOUND_FROM, Bound, Outlook, ShareBasis, StepSummary
from syncscan.whatif.calibrate import REFUSED
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.surroundings import MOSTLY, NOTABLE, in_percent

EXPLAINED = 0.1
"""A replay whose step differs from the measured one by more than this part explains nothing. Of 45 measured cases, the
worst is off by 0.02."""

_OTHERS = (
    "So the timed steps aren't like the recorded ones, for example because a loop in the step takes more rounds: "
    "record more steps (--active) and time more (--calibrate), so that both hold all kinds."
)


def decided(
    step: CalibratedStep, ends: Sequence[CalibratedStep], measured: StepSummary, removable: frozenset[int]
) -> StepSummary:
    """Return the measured step with its bound, and the sentences that give the reason.

    `ends` is the step with the least and the most profiler time, empty if that is known; `removable` are the program's
    own findings.
    """
    bound = bound_of(step, removable)
    measured = replace(
        measured,
        device_share=step.shares.device,
        device_share_basis=ShareBasis.MEASURED if step.calibration.known else ShareBasis.ESTIMATED,
    )
    sentences = [_reason(step, measured, bound, removable), *_estimate(step, bound, ends, removable)]
    return replace(
        measured,
        bound=bound,
        reason=" ".join(sentences),
        communication_share=step.shares.communication,
        input_share=step.shares.input,
        guessed_overhead=None if step.calibration.known else _overhead(step),
        host_scale=step.replay.scale if step.calibration.known else None,
    )


def unsettled(step: CalibratedStep) -> str:
    """Return why this replay supports no verdict; empty if it explains the step.

    A device that fills the step in the replay bounds it however long the recorded step was, which was longer because of
    the device's backlog.
    """
    calibration = step.calibration
    if not step.before.period or not calibration.observed_ns:
        return "The steps take no time, so their bound can't be determined."
    replayed = step.before.period * calibration.unit
    if step.shares.device >= BOUND_FROM or abs(replayed / calibration.observed_ns - 1.0) <= EXPLAINED:
        return ""
    how = " without the profiler" if calibration.known else ""
    took = f"the step took {duration(calibration.observed_ns / 1e3)}{how}"
    reason = f"The replay accounts for {duration(replayed / 1e3)}, but {took}, so its bound can't be determined."
    apart = max(replayed, calibration.observed_ns) >= REFUSED * min(replayed, calibration.observed_ns)
    return f"{reason} {_OTHERS}" if calibration.known and apart else reason


def without_replay(measured: StepSummary, unsettled: str, sampled_input: float = 0.0) -> StepSummary:
    """Return the measured step with the verdict without a replay: none, unless one thing was seen to fill it.

    The profiler slows the host, not the device, so without it the device is busy no smaller part of the step. Samples
    without the profiler may tell that most steps wait for their input (`sampled_input` is the part) though the recorded
    ones had it in time.
    """
    share = measured.device_busy_us / measured.observed_us if measured.observed_us else 0.0
    if share < BOUND_FROM:
        if sampled_input < MOSTLY:
            return replace(measured, reason=unsettled)
        waits = f"By samples without the profiler, the host waits for the DataLoader for {sampled_input:.0%} of a step."
        return replace(measured, bound=Bound.INPUT, reason=f"{waits} {unsettled}", input_share=sampled_input)
    share = min(1.0, share)
    reason = (
        f"The device is busy {share:.0%} of the step, so syncs can't save more than the rest; no gain is projected."
    )
    return replace(
        measured, bound=Bound.DEVICE, reason=reason, device_share=share, device_share_basis=ShareBasis.RECORDED
    )


def bound_of(step: CalibratedStep, removable: frozenset[int]) -> Bound:
    """Return what limits the step, that is, what must change first for it to become shorter.

    Syncs limit it if they cost a notable part of it, or half of what the device's work leaves, since launches then
    aren't what it waits for. Input does if it takes at least as much as such syncs, or half of that: if the host's own
    work takes more, faster input would leave most of the step.
    """
    shares, syncs = step.shares, _gain(step, removable)
    if shares.device >= BOUND_FROM:
        return Bound.DEVICE
    if shares.waits_for_ranks:
        return Bound.COMMUNICATION
    by_syncs = syncs >= min(NOTABLE, (1.0 - shares.device) / 2)
    most = shares.input >= (1.0 - shares.device - shares.communication) / 2
    if shares.input >= max(NOTABLE, syncs) and (most or by_syncs):
        return Bound.INPUT
    return Bound.SYNC if by_syncs else Bound.HOST


def _gain(step: CalibratedStep, removable: frozenset[int]) -> float:
    return max(0.0, 1.0 - step.after(removable).period / step.before.period) if step.before.period else 0.0


def _overhead(step: CalibratedStep) -> float:
    """Return the part of the host's time in the trace that this calibration attributes to the profiler."""
    return max(0.0, 1.0 - step.replay.scale)


def _reason(step: CalibratedStep, measured: StepSummary, bound: Bound, removable: frozenset[int]) -> str:
    of_step = step.shares
    who = f"The busiest of {len(measured.devices)} devices" if len(measured.devices) > 1 else "The device"
    works = f"{who} is busy {device_works(measured)}"
    pause = "," if " in the trace, " in works else ""
    communicates = bound is not Bound.DEVICE and of_step.communication >= NOTABLE
    in_collectives = _beside(measured, measured.communication_us, measured.observed_us, of_step.communication)
    ranks = f"waits for other ranks or the network for {in_collectives}"
    if bound is Bound.HOST:
        in_loader = _beside(measured, measured.input_us, measured.observed_us, of_step.input)
        loads = f", the host is in the DataLoader for {in_loader}" if of_step.input >= NOTABLE else ""
        waits = f"{loads}, and the device waits" if loads else f"{pause} and waits"
        others = f", {ranks} and" if communicates else waits
        return f"{works}{others} for the host to launch work."
    if communicates:
        works = f"{works}{pause} and {ranks}"
    if bound is Bound.INPUT:
        in_loader = _beside(measured, measured.input_us, measured.observed_us, of_step.input)
        return f"{works}; the host spends {in_loader} waiting for the DataLoader."
    if bound is Bound.SYNC:
        return f"{works}; without syncs, the step would be {_gain(step, removable):.0%} shorter."
    return f"{works}."


def _beside(measured: StepSummary, us: float, whole: float, unprofiled: float) -> str:
    """Return a time's share of the recorded step, and of the unprofiled one where it differs."""
    recorded = min(1.0, us / whole) if whole else 0.0
    return shares(recorded, unprofiled, measured.device_share_basis)


def _estimate(
    step: CalibratedStep, bound: Bound, ends: Sequence[CalibratedStep], removable: frozenset[int]
) -> Iterator[str]:
    """Yield the verdict's assumptions if the step wasn't timed without the profiler, and what else it could be."""
    if step.calibration.known:
        return
    yield f"Estimate: {in_percent(_overhead(step))} of host time is profiler overhead (--step-ms replaces it)."
    alternatives: dict[Bound, list[str]] = {}
    for end in ends:
        if (other := bound_of(end, removable)) is not bound:
            alternatives.setdefault(other, []).append(f"{_overhead(end):.0%}")
    for other, parts in alternatives.items():
        yield f"At {' or '.join(parts)} overhead, {other.limit} would be the limit."


NOTHING = 0.02
"""A gain below this part of the step is lost in the noise of measuring it."""


def outlook(all_gone: Projection, first_use: str = "") -> Outlook:
    """Say what limits the step once its syncs are gone, if that gains anything.

    `first_use` says what the host does once for most of the step, with the advice; empty where it doesn't.
    """
    gains = all_gone.saving_us >= NOTHING * all_gone.baseline_us and bool(all_gone.baseline_us)
    return Outlook(
        gains=gains,
        after=all_gone.bound_after if gains else None,
        device_share=all_gone.device_share,
        first_use="" if gains else first_use,
    )
