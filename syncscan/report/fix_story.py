"""Sentences about a patch that all reports of `syncscan fix` share."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.model.fix import Fix, Fixed, Safety
from syncscan.report.units import percent, range_of, within

NOTHING_GAINED = "No gain, according to the recording:"
LEFT = "Left to you:"
NOT_APPLIED = "Not applied:"
MOST_NOISE = 6
"""Entries of the list of what wasn't compared."""
MOST_CODE = 120
"""Characters of the code that a fix which isn't applied is shown with."""


def verdict(fixed: Fixed) -> str:
    """Return one sentence with the number of fixes, and the waits in steps before and after, apart from the others."""
    fixes, left = fixed.applied, [f for f in fixed.fixes if not f.applied]
    left_text = f" {_places(len(left))} left." if left else ""
    if not fixed.ran:
        if not fixed.fixes:
            return f"{fixed.program}: the source alone shows nothing to fix."
        can = f"{len(fixed.fixes)} {'place' if len(fixed.fixes) == 1 else 'places'}"
        return f"{fixed.program}: the source shows {can} to fix. Nothing ran, so nothing is verified."
    apart = f", apart from {fixed.waits_apart} in set-up and checkpoints" if fixed.waits_apart else ""
    before, after = (_times(max(0, n - fixed.waits_apart)) for n in (fixed.waits_before, fixed.waits_after))
    waits = f"The host waits {before} in the dry run{apart}."
    if not fixes and fixed.unjudged:
        return f"{fixed.program}: could not be judged, since {fixed.unjudged}. {waits}{left_text}"
    if not fixes:
        return f"{fixed.program}: nothing to fix. {waits}{left_text}"
    waits = f"The host waits {after} instead of {before} in the dry run{apart}."
    return f"{fixed.program}: {_places(len(fixes))} fixed. {waits}{left_text}"


def _places(count: int) -> str:
    return "1 place is" if count == 1 else f"{count} places are"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def where(fix: Fix) -> str:
    """Return `train.py:12`, which editors can open."""
    return f"{fix.file}:{fix.line}"


def gain(fix: Fix) -> str:
    """Return `1.2 ms per step (7%; 0.9 to 1.4 ms)`; a dash without a recording."""
    g = fix.gain
    if g is None:
        return "–"
    limits, share = (g.low_us, g.high_us), f"{percent(g.share, 1.0)}; " if g.share is not None else ""
    return f"{within(g.us, limits)} per step ({share}{range_of(limits)})"


def groups(fixed: Fixed) -> list[tuple[str, Sequence[Fix]]]:
    """Return the fixes by heading: in the patch, without gain, not applied, left to the author."""
    applied = [f for f in fixed.applied if not f.gains_nothing]
    nothing = [f for f in fixed.fixes if f.gains_nothing and f.safety is not Safety.MANUAL and f not in applied]
    others = [f for f in fixed.fixes if not f.applied and f.safety is not Safety.MANUAL and f not in nothing]
    manual = [f for f in fixed.fixes if f.safety is Safety.MANUAL]
    named = [("", applied), (NOTHING_GAINED, nothing), (NOT_APPLIED, others), (LEFT, manual)]
    return [(heading, fixes) for heading, fixes in named if fixes]


def reason(fix: Fix) -> str:
    """Return why a fix isn't part of the patch, with the change that it would be, or what else it changes."""
    if fix.safety is Safety.MANUAL or fix.applied:
        return fix.why
    return f"{fix.change}{_code(fix)}: {fix.how}"


def _code(fix: Fix) -> str:
    """Return what a fix would write, in parentheses; empty where that is long."""
    texts = [text for edit in fix.changes if (text := edit.text.strip())]
    code = ", ".join(f"`{text}`" for text in texts)
    return f" ({code})" if texts and len(code) <= MOST_CODE and "\n" not in code else ""


def notes(fixed: Fixed) -> list[str]:
    """Return what the dry run couldn't see, and what wasn't compared."""
    if not fixed.not_compared:
        return list(fixed.notes)
    noise = "; ".join(fixed.not_compared[:MOST_NOISE])
    more = len(fixed.not_compared) - MOST_NOISE
    rest = f"; and {more} more" if more > 0 else ""
    return [*fixed.notes, f"Not compared, since two unchanged runs differ: {noise}{rest}."]


def tolerance(fixed: Fixed) -> str:
    """Return the sentence that says how the patch was verified."""
    if not fixed.ran:
        return "Not verified: run the program with the patch before you keep it."
    return (
        "Verified without a GPU: both versions ran dry with the same seed. Printed, written and computed numbers agree "
        f"to a relative {fixed.tolerance:g}, or to the last printed digit."
    )


__all__ = ["gain", "groups", "notes", "reason", "tolerance", "verdict", "where"]
