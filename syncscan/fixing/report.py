"""Describe a patch: what changes, how it was verified, what it gains, and what is left."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from syncscan.model.finding import Severity
from syncscan.model.fix import Fix, Fixed, Safety
from syncscan.proof.outcome import Proof
from syncscan.report import markup
from syncscan.report.blocks import (
    Block,
    Code,
    Grid,
    GridColumn,
    Heading,
    Item,
    Items,
    Sentence,
    Words,
    code,
    command,
    place,
)  # fmt: skip
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.phrases import sentences
from syncscan.report.units import duration, percent, range_of, within

NOTHING_GAINED = "No gain, according to the recording:"
LEFT = "Left to you:"
NOT_APPLIED = "Not applied:"
MOST_NOISE = 6
"""Entries of the list of what wasn't compared."""
MOST_CODE = 120
"""Characters of the code that a fix which isn't applied is shown with."""


def blocks(fixed: Fixed, next_command: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the report of a patch, without the patch itself."""
    yield Heading(verdict(fixed), 1)
    for heading, fixes in groups(fixed):
        if heading:
            yield Heading(heading)
            yield Items(tuple(Item((place(where(f)), f" [{f.rule}]"), (f"{reason(f)}.",)) for f in fixes))
        else:
            yield _table(fixes)
    for sentence in (*notes(fixed), *([tolerance(fixed)] if fixed.applied else ())):
        yield Sentence(sentence, "dim")
    if fixed.applied and next_command:
        yield Sentence(("Next, on a GPU: ", command(next_command)))


def patch(fixed: Fixed) -> Iterator[Code]:
    if fixed.diff:
        yield Code(fixed.diff, "diff")


def _table(fixes: Sequence[Fix]) -> Grid:
    gains = any(fix.gain for fix in fixes)
    names = ("rule", "what changes", "safety", "verified", *(["gain"] if gains else []))
    return Grid((GridColumn("line", whole=True), *map(GridColumn, names)), tuple(_row(fix, gains) for fix in fixes))


def _row(fix: Fix, gains: bool) -> tuple[Words, ...]:
    also = f" ({fix.why})" if fix.why else ""
    verified = "dry run" if fix.verified else fix.how
    cells = (place(where(fix)), code(fix.rule), f"{fix.change}{also}", fix.safety.value, verified)
    return (*cells, gain(fix)) if gains else cells


def pull_request(fixed: Fixed, proof: Proof | None = None) -> str:
    """Return a pull request as Markdown: the title in the first line, the body after an empty line."""
    return f"{title(fixed, proof)}\n\n{markup.drawn(_body(fixed, proof))}"


def title(fixed: Fixed, proof: Proof | None = None) -> str:
    """Return the title: `Remove 3 host-device syncs from train.py: a step takes 12% less`."""
    count = len({(f.file, f.line) for f in fixed.applied})
    program = next((word for word in shlex.split(fixed.program) if word != "-m"), fixed.program)
    subject = f"Remove {count} host-device {'sync' if count == 1 else 'syncs'} from {program}"
    if proof is None or not proof.proven or proof.gain is None:
        return subject
    return f"{subject}: a step takes {proof.gain.share:.1%} less"


def _body(fixed: Fixed, proof: Proof | None) -> Iterator[Block]:
    yield Sentence("The host waits for the device in these lines:")
    columns = tuple(map(GridColumn, ("line", "rule", "what changes", "projected gain")))
    yield Grid(columns, tuple((place(where(f)), code(f.rule), f.change, gain(f)) for f in fixed.applied))
    rows = [("waits in the dry run", str(fixed.waits_before), str(fixed.waits_after))]
    if proof is not None and proof.gain is not None:
        rows.append((f"step time on {proof.device}", duration(proof.before_value), duration(proof.after_value)))
    yield Grid(tuple(map(GridColumn, ("", "before", "after"))), tuple(rows))
    yield Heading("Evidence")
    yield Items(tuple(map(Item, (tolerance(fixed), *([_measured_text(proof)] if proof is not None else [])))))
    yield Heading("How to reproduce")
    writes = (code(f"syncscan fix {fixed.program}"), " writes the patch and verifies it without a GPU")
    measures = (code(f"syncscan prove --rev main {fixed.program}"), " measures the gain on a GPU")
    yield Items((Item(writes), Item(measures)))


def _measured_text(proof: Proof) -> str:
    if proof.gain is None:
        return f"Not proven: {proof.stopped}."
    g, projected = proof.gain, proof.projected_gain
    beside = f" Projected: {projected.share:.1%} ({projected.low:.1%} to {projected.high:.1%})." if projected else ""
    return (
        f"{proof.verdict.value.capitalize()} on {proof.device}: a step takes {g.share:.1%} less ({g.low:.1%} to "
        f"{g.high:.1%}, 95% of {len(proof.pairs)} pairs of processes); results: {proof.result.same.value}.{beside}"
    )


def verdict(fixed: Fixed) -> str:
    """Return one sentence with the number of fixes, and the waits in steps before and after, apart from the others."""
    fixes, left = fixed.applied, [f for f in fixed.fixes if not f.applied]
    left_text = f" {_places(len(left))} left." if left else ""
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
    if not fixed.not_compared:
        return list(fixed.notes)
    noise = "; ".join(fixed.not_compared[:MOST_NOISE])
    more = len(fixed.not_compared) - MOST_NOISE
    rest = f"; and {more} more" if more > 0 else ""
    return [*fixed.notes, f"Not compared, since two unchanged runs differ: {noise}{rest}."]


def tolerance(fixed: Fixed) -> str:
    return (
        "Verified without a GPU: both versions ran dry with the same seed. Printed, written and computed numbers agree "
        f"to a relative {fixed.tolerance:g}, or to the last printed digit."
    )


def flagged_fixes(fixed: Fixed) -> Flagged:
    beside = (verdict(fixed), *((tolerance(fixed),) if fixed.applied else ()), *fixed.notes)
    notes = tuple(("note", sentence) for sentence in beside)
    return Flagged(tool="syncscan fix", lines=tuple(map(_flagged, fixed.fixes)), notifications=notes)


def _flagged(fix: Fix) -> FlaggedLine:
    manual = fix.safety is Safety.MANUAL
    title = f"{fix.title}: {fix.change}"
    return FlaggedLine(
        rule=fix.rule,
        severity=Severity.LOW if manual else Severity.MEDIUM,
        title=fix.title,
        message="",
        place=FilePosition(fix.file, fix.line, end_line=fix.end_line),
        summary=sentences(title, reason(fix), f"Projected gain: {gain(fix)}" if fix.gain else ""),
        figures={"safety": fix.safety.value, "verified": fix.verified, "applied": fix.applied, "waits": fix.waits},
        changes=((f"{fix.change} ({fix.safety.value}; {fix.how})", fix.changes),) if fix.changes else (),
    )
