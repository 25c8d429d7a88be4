"""Describe a dry run: where it would wait, how much of it was recognized, and what a recording says it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Counterpart, Finding
from syncscan.model.habit import Basis
from syncscan.model.likeness import Likeness
from syncscan.report.phrases import figure, measurable, real, saving, spread, whereabouts
from syncscan.report.units import duration, percent, times, within

UNSEEN = 5
"""Findings only in the recording that are named; JSON has them all."""
NOT_TIMED = "not timed"
NO_COUNTERPART = "not in the recording"


def is_dry(analysis: Analysis) -> bool:
    """Return whether an analysis is of a dry run, in which nothing was timed."""
    return analysis.trace.info.capture.pretended


def ran_nothing(analysis: Analysis) -> bool:
    """Return whether a dry run's program put nothing on the device."""
    coverage = analysis.trace.info.capture.coverage
    return not _outside_steps(analysis) and (coverage is None or not coverage.ops)


def _outside_steps(analysis: Analysis) -> bool:
    return bool(analysis.findings) or any(real(of.findings) for of in analysis.phases if of)


def verdict(analysis: Analysis) -> str:
    """Return how many places would wait; never "none" where ops weren't recognized or nothing ran."""
    waits, coverage = real(analysis.findings), analysis.trace.info.capture.coverage
    if waits:
        places = "1 place" if len(waits) == 1 else f"{len(waits)} places"
        return f"{places} would block the host, {_often(sum(f.per_step for f in waits), analysis)}"
    if ran_nothing(analysis):
        return "Nothing ran on the simulated device"
    outside = _outside_steps(analysis)
    if coverage is not None and coverage.gaps:
        return f"No wait found{' in the steps' * outside} among the recognized ops"
    return "Nothing in the steps would block the host" if outside else "Nothing that ran would block the host"


def reason(analysis: Analysis) -> str:
    """Return that nothing was timed, and how much was recognized."""
    return " ".join(lack.sentence for lack in analysis.integrity.lacks)


def summary(analysis: Analysis) -> str:
    """Return what the waits cost in a recording, and whether its sizes match this run's."""
    like = analysis.likeness
    if like is None:
        return "For costs, add a recording: --like TRACE." if real(analysis.findings) else ""
    waits = real(analysis.findings)
    seen = sum(f.id in like.counterparts for f in waits)
    step = f"a step of {duration(like.step_us)}" if like.step_us else "a step that wasn't timed"
    device = f" on {like.device}" if like.device else ""
    places = f"{seen} of {len(waits)} place{'s' * (len(waits) != 1)}"
    costs = f"Costs are from {_name(like)} ({step}{device}), which has {places}."
    return " ".join(part for part in (costs, _without_all(like), sizes(like)) if part)


def _without_all(like: Likeness) -> str:
    if like.recoverable_us is None:
        return ""
    doubt = f"; {spread(like.range_us, like.step_us)}" if like.range_us else ""
    if not measurable(like.recoverable_us, like.step_us):
        return f"Without its syncs, that step is {saving(like.recoverable_us, like.step_us)} shorter."
    part = f"{within(like.recoverable_us, like.range_us)} shorter ({percent(like.recoverable_us, like.step_us)}{doubt})"
    return f"Without its syncs, that step is {part}."


def ranking(analysis: Analysis) -> str:
    if analysis.likeness is None:
        return "Sorted by frequency, since nothing was timed; findings outside of the steps come last."
    return f"Sorted by individual savings in {_name(analysis.likeness)}; findings that aren't in it come last."


def steps(analysis: Analysis) -> str:
    """Return what counts as a step, and what only the recording has."""
    count = len(analysis.trace.steps)
    counted = [
        f"{count} step{'s' * (count != 1)} found by the dry run."
        if count
        else "The dry run found no steps, so counts are for the whole run."
    ]
    return " ".join([*counted, *_unseen(analysis.likeness)])


def costs(finding: Finding, analysis: Analysis) -> tuple[str, str, str, str, str]:
    """Return what a finding saves in the recording, as a time, as a share and as a range, how long it waits, and idles.

    Dashes where that is unknown.
    """
    like = analysis.likeness
    theirs = like.counterparts.get(finding.id) if like else None
    if like is None or theirs is None:
        return "–", "", "", "–", "–"
    gain, limits, step_us = theirs.recoverable_us, theirs.recoverable_range_us, like.step_us
    is_measurable = gain is not None and measurable(gain, step_us)
    return (
        "–" if gain is None else saving(gain, step_us, limits),
        percent(gain, step_us) if gain is not None and is_measurable else "",
        spread(limits, step_us) if is_measurable and limits else "",
        "–" if theirs.wait_us is None else duration(theirs.wait_us),
        "–" if theirs.bubble_us is None else duration(theirs.bubble_us),
    )


def to_change(finding: Finding, analysis: Analysis) -> tuple[str, str]:
    """Return, for an entry of the list of changes, what it saves or how often it waits, and how certain that is."""
    like = analysis.likeness
    theirs = like.counterparts.get(finding.id) if like else None
    if like is None or theirs is None:
        return _often(finding.per_step, analysis), NO_COUNTERPART if like else NOT_TIMED
    if theirs.recoverable_us is None:
        waits = "" if theirs.wait_us is None else f"waits {duration(theirs.wait_us)} there"
        return waits or _often(finding.per_step, analysis), "its gain wasn't projected"
    limits = theirs.recoverable_range_us
    doubt = [spread(limits, like.step_us)] if limits else []
    doubt += [f"together with {len(theirs.shared_with)} more"] if theirs.shared_with else []
    return f"{figure(theirs.recoverable_us, Basis.REPLAY, like.step_us, limits)} there", "; ".join(doubt)


def circumstances(finding: Finding, analysis: Analysis) -> Iterator[str]:
    """Yield how often a finding waits, or that it lies outside of the steps."""
    if finding.intended and all(o.where.step is None for o in finding.occurrences):
        yield f"{finding.count} time{'s' * (finding.count != 1)} outside of the steps"
    else:
        yield _often(finding.per_step, analysis)


def _often(per_step: float, analysis: Analysis) -> str:
    """Return how often per step; in total for a run without steps, such as one that fails before its first."""
    if analysis.trace.main_steps:
        return times(per_step)
    return "once" if per_step == 1 else f"{per_step:.0f} times"


def sizes(like: Likeness) -> str:
    """Return whether both runs have the same sizes, judged by their copies; nothing is scaled."""
    other = next((c for _, c in like.compared if c.other_size), None)
    if other is not None:
        return f"Its sizes differ ({_copies(other)}); costs weren't scaled."
    if like.compared:
        return f"Its copies have the same sizes as this run's ({len(like.compared)} compared)."
    return "Whether the sizes match is unknown: both runs copy only single numbers."


def _copies(other: Counterpart) -> str:
    size = other.copied_bytes
    return f"a copy of {_bytes(size.there)} is {_bytes(size.here)} here" if size else ""


def _bytes(size: float) -> str:
    for unit, many in (("MB", 1e6), ("kB", 1e3)):
        if size >= many:
            return f"{size / many:.3g} {unit}"
    return f"{size:.0f} bytes"


def _unseen(like: Likeness | None) -> Iterator[str]:
    if like is None or not like.unseen:
        return
    count = len(like.unseen)
    named = "; ".join(f"{f.title} ({whereabouts(f)})" for f in like.unseen[:UNSEEN])
    more = f"; and {count - UNSEEN} more" if count > UNSEEN else ""
    it = "1 finding that isn't here" if count == 1 else f"{count} findings that aren't here"
    yield f"{_name(like)} has {it}: {named}{more}."


def _name(like: Likeness) -> str:
    return PurePath(like.path).name or like.path
