"""Say in a sentence, by the projection of a step without its syncs, what limits it then, or why that gains nothing."""

from __future__ import annotations

from syncscan.facts.device_share import device_works
from syncscan.model.duration import duration
from syncscan.model.projection import Projection
from syncscan.model.step import Bound, Outlook, StepSummary
from syncscan.whatif.shares import NOTABLE

NOTHING = 0.02
"""A gain below this part of the step is lost in the noise of measuring it."""


def outlook(any_syncs: bool, all_gone: Projection, step: StepSummary, first_use: str = "") -> Outlook:
    """Say what limits the step once its syncs are gone, or why that gains nothing.

    Args:
        any_syncs: whether there are any to remove.
        all_gone: the step without any sync.
        step: the step, as it is, with what bounds it.
        first_use: what the host does once for most of the step, with the advice; empty where it doesn't.
    """
    if _gains(all_gone):
        sentence, beside = _limit(all_gone, len(all_gone.removed))
    else:
        sentence, beside = _nothing_to_gain(any_syncs, all_gone, step, first_use)
    return Outlook(gains=_gains(all_gone), sentence=sentence, beside=beside)


def _gains(all_gone: Projection) -> bool:
    return all_gone.saving_us >= NOTHING * all_gone.baseline_us and bool(all_gone.baseline_us)


def _nothing_to_gain(any_syncs: bool, all_gone: Projection, step: StepSummary, first_use: str) -> tuple[str, str]:
    """Return the words for a step where nothing else is known to gain anything, and for one where something is."""
    aside = "Nothing to gain from removing syncs." if any_syncs else ""
    if step.bound is Bound.COMMUNICATION:
        sentence = (
            "Other ranks or the network are the limit, not this rank's syncs: compare the traces of all ranks to find "
            "the one that arrives last."
        )
        return sentence, sentence
    if Bound.INPUT in (step.bound, all_gone.bound_after):
        loads = f": it takes {duration(step.input_us)} of the step" if step.input_us else ""
        limit = Bound.INPUT.verdict.capitalize()
        return f"{limit}, not syncs{loads}. Give the DataLoader more workers, or make a batch cheaper.", aside
    if step.bound is Bound.DEVICE:
        works = f"the device is busy {device_works(step)}"
        if copies := _pageable(step):
            return f"Nothing to gain from removing syncs alone: {works}. {copies}", f"{aside} {copies}".strip()
        return f"Nothing to gain from removing syncs: {works}.", aside
    if first_use:
        return f"{Bound.HOST.verdict.capitalize()}: {first_use}.", aside
    problem = "the problem is launches, not syncs" if any_syncs else "it launches work too slowly for the device"
    return f"{Bound.HOST.verdict.capitalize()}: {problem} (CUDA graphs, torch.compile, a fused optimizer).", aside


def _pageable(step: StepSummary) -> str:
    """Say that a notable part of the step is copies of pageable memory; empty where it isn't, or a gain says it."""
    share = step.pageable_us / step.observed_us if step.observed_us else 0.0
    if share < NOTABLE:
        return ""
    return (
        f"But {share:.0%} of the step is copies of pageable memory: pinned memory is copied faster (by how much is "
        "unknown, since the trace doesn't record their size)."
    )


def _limit(all_gone: Projection, count: int) -> tuple[str, str]:
    """Return the words behind what to remove, and those for a list with habits, where "it" could be any of them."""
    syncs = "Without both syncs" if count == 2 else f"Without all {count} syncs"
    if all_gone.bound_after is Bound.DEVICE:
        limit = f"{Bound.DEVICE.verdict}: it would be busy {_share(all_gone)} of the step"
        next_ = ""
    else:
        limit = f"{Bound.HOST.verdict}: {duration(all_gone.host_limit_us)} of host work per step"
        next_ = "; then reduce launches"
    opening = "Without it" if count == 1 else syncs
    return f"{opening} {limit}{next_}.", f"{'Without its sync' if count == 1 else syncs} {limit}."


def _share(all_gone: Projection) -> str:
    """Return the fraction of the step in which the device is busy then; the host's time doesn't change it."""
    return f"{all_gone.device_share:.0%}" if all_gone.predicted_us else "all"
