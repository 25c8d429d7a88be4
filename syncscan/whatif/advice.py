"""From a step's projections to sentences: what to do, or that there is nothing to gain, where the replay says so."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.model.finding import Cause, Finding
from syncscan.model.projection import Group, Projection
from syncscan.model.step import Bound, Outlook, StepSummary

NOTHING = 0.02
"""A gain below this part of the step is lost in the noise of measuring it."""
DEFER = (Cause.READBACK, Cause.LOG, Cause.CHECK)
"""Causes whose value can be read later: the device's answer is needed, but not now."""


def removals(findings: Sequence[Finding], groups: Sequence[Group], all_gone: Projection) -> tuple[str, ...]:
    """What to remove, a sentence for each of the first sets worth it; none where all together gain too little.

    Args:
        findings: with their gains.
        groups: sets worth removing.
        all_gone: the step without any sync.
    """
    if not _gains(all_gone):
        return ()
    members = {f.id: f for f in findings}
    return tuple(_remove([members[i] for i in g.ids if i in members], g, all_gone) for g in groups[:2])


def outlook(any_syncs: bool, all_gone: Projection, step: StepSummary) -> Outlook:
    """What limits the step once its syncs are gone, or why that gains nothing.

    Args:
        any_syncs: whether there are any to remove.
        all_gone: the step without any sync.
        step: as it is, with what bounds it.
    """
    if _gains(all_gone):
        said, beside = _limit(all_gone, len(all_gone.removed))
    else:
        said, beside = _nothing_to_gain(any_syncs, all_gone, step)
    return Outlook(gains=_gains(all_gone), said=said, beside=beside)


def _gains(all_gone: Projection) -> bool:
    return all_gone.saving_us >= NOTHING * all_gone.baseline_us and bool(all_gone.baseline_us)


def _nothing_to_gain(any_syncs: bool, all_gone: Projection, step: StepSummary) -> tuple[str, str]:
    """Where nothing else is known to gain anything, and where something is."""
    aside = "Nothing to gain from removing syncs." if any_syncs else ""
    if step.bound is Bound.COMMUNICATION:
        said = (
            "Other ranks or the network are the limit, not this rank's syncs: look at the traces of all ranks together "
            "for the one that comes last."
        )
        return said, said
    if Bound.INPUT in (step.bound, all_gone.bound_after):
        return "The input is the limit, not syncs: give the DataLoader more workers, or make a batch cheaper.", aside
    if step.bound is Bound.DEVICE:
        return (
            f"Nothing to gain from removing syncs: the device works {step.device_share or 0.0:.0%} of the step.",
            aside,
        )
    problem = "syncs are not your problem, launches are" if any_syncs else "it launches too slowly for the device"
    return f"The host is the limit: {problem} (CUDA graphs, torch.compile, a fused optimizer).", aside


def _remove(findings: Sequence[Finding], group: Group, all_gone: Projection) -> str:
    saves = f"{_ms(group.saving_us)} ({group.saving_us / all_gone.observed_us:.0%} of the step)"
    places = _list([_place(f) for f in findings])
    if len(findings) == 1:
        if findings[0].diagnosis.cause in DEFER:
            return f"Move the read-back in {places} after the launches of the next step: that saves about {saves}."
        return f"Remove the sync in {places}: that saves about {saves}."
    alone = "nothing" if group.alone_us < NOTHING * all_gone.baseline_us else f"at most {_ms(group.alone_us)}"
    return f"Remove {places} together: that saves about {saves}; any one of them alone saves {alone}."


def _limit(all_gone: Projection, count: int) -> tuple[str, str]:
    """Behind what to remove, and in a list with habits, where "it" could be any of them."""
    syncs = f"Without all {count} syncs"
    if all_gone.bound_after is Bound.DEVICE:
        limit = f"the device is the limit: it works {_share(all_gone)} of the step then"
        next_ = ""
    else:
        limit = f"the host is the limit: {_ms(all_gone.host_limit_us)} of its own work a step"
        next_ = "; launch less next"
    said = "Without it" if count == 1 else syncs
    return f"{said} {limit}{next_}.", f"{'Without its sync' if count == 1 else syncs} {limit}."


def _share(all_gone: Projection) -> str:
    """How much of the step the device works then: device time itself isn't what a guess of the host's is part of."""
    return f"{min(1.0, all_gone.device_limit_us / all_gone.predicted_us):.0%}" if all_gone.predicted_us else "all"


def _place(finding: Finding) -> str:
    where = finding.where
    name = where.op or finding.api
    return f"`{where.scope[-1]}` ({name})" if where.scope else name


def _list(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _ms(us: float) -> str:
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.0f} µs"
