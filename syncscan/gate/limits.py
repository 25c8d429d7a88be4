"""Check an analysis against a project's rules: which limits are exceeded, and which findings are exempt."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from syncscan.attribute import SourceFiles, source_files
from syncscan.facts.allow_comments import Comment
from syncscan.gate.baseline import EMPTY, Baseline, Entry, known_by
from syncscan.gate.config import Placed, SourceText, Written, lines_of
from syncscan.gate.jobs import state_of
from syncscan.gate.races import is_of_races, races_within, too_many_races
from syncscan.gate.state import HAIR, State
from syncscan.gate.verdict import Allowance, CheckVerdict, Limit, Rules, Violation, sort_out
from syncscan.model.analysis import Analysis
from syncscan.model.duration import duration
from syncscan.model.finding import Finding, Source
from syncscan.model.fleet import Fleet

DEFAULT = Limit(syncs=0)
"""Limit if no other is given: no syncs."""


def check(
    checked: Analysis | Fleet,
    rules: Rules,
    baseline: Baseline = EMPTY,
    today: datetime.date | None = None,
    source_roots: Sequence[str] = (),
) -> CheckVerdict:
    """Check a recording or a job against its project's limits, with exceptions from rules, comments and a baseline.

    Args:
        checked: the analysis of the recording, or the job.
        rules: the rules, as `read_config` gives them.
        baseline: the known syncs.
        today: the day on which exceptions have to count; by default this one.
        source_roots: as `api.analyze` takes them: where comments are looked for, besides the working directory.

    Raises:
        UsageError: a source root is no folder; or a limit is by owner, which a job doesn't tell.
    """
    saved = checked.trace.info.stored if isinstance(checked, Analysis) else None
    files = SourceFiles(saved=saved.sources) if saved else source_files(source_roots)
    return judge(checked, rules, baseline, files.text_of, today or datetime.date.today())


def judge(
    checked: Analysis | Fleet, rules: Rules, baseline: Baseline, source_text: SourceText, today: datetime.date
) -> CheckVerdict:
    comments = Written(source_text)
    verdict = _check(state_of(checked), rules, baseline, comments, today)
    if isinstance(checked, Fleet):
        return verdict
    counted, exempt, notes, unused = races_within(checked, rules, baseline, comments, today)
    met, stale = ([*map(_stale, comments_of)] for comments_of in comments.met_and_not(checked.trace))
    return replace(
        verdict,
        violations=(*verdict.violations, *too_many_races(rules, counted)),
        notes=(*verdict.notes, *notes),
        unused=(*verdict.unused, *unused),
        stale=tuple(stale),
        met=tuple(met),
        races=counted,
        exempt_races=exempt,
        step=checked.step,
    )


def _check(state: State, rules: Rules, baseline: Baseline, comments: Written, today: datetime.date) -> CheckVerdict:
    reasons, unmatched = known_by(baseline, state)
    written = {f.id: comments.on(f) for f in state.findings}  # one on a wait that is meant isn't stale either
    checked = [f for f in state.findings if not f.intended]
    counted, exempt, used = sort_out(checked, lambda f: f.rule, _names, lambda f: written[f.id], reasons, rules, today)
    unused = (entry for n, entry in enumerate(rules.allowed) if n not in used and not is_of_races(entry))
    default = (DEFAULT,) if rules.races is None else ()
    why = state.unseen()
    unseen = (Violation(limit=DEFAULT, sentence=why),) if why else ()
    violations = (v for limit in rules.limits or default for v in _violations(limit, counted, state))
    return CheckVerdict(
        path=state.name,
        violations=(*unseen, *violations),
        counted=counted,
        exempt=exempt,
        notes=(
            *(note for f in counted for note in _why_not(f, written[f.id])),
            *map(_expired, (rules.allowed[n] for n in sorted(used) if rules.allowed[n].expired(today))),
            *state.doubts(rules),
        ),
        unused=(
            *(f"The allow-list's entry for {entry} matches no sync here: remove it." for entry in unused),
            *map(_still_known, unmatched),
        ),
    )


def _still_known(entry: Entry) -> str:
    return f"The baseline's {entry.rule} ({entry.op}) no longer occurs: --update-baseline removes it."


def _stale(placed: Placed) -> str:
    file, comment = placed
    return f"{file}:{comment.line}: stale comment {comment}: no such sync here. Remove it."


def _names(entry: Allowance, finding: Finding) -> bool:
    return (
        _any(entry.rule, (finding.rule,))
        and _any(entry.scope, (*finding.scope, "/".join(finding.scope)))
        and _any(entry.op, (finding.op, *finding.op_stack))
        and (not entry.line or any(names_line(entry.line, s) for s in (finding.source, finding.in_library) if s))
    )


def _any(glob: str, names: Sequence[str]) -> bool:
    return not glob or any(fnmatchcase(name, glob) for name in names)


def names_line(glob: str, source: Source) -> bool:
    """Return whether a glob `FILE:LINE` or `FILE` matches a source by its whole path or any end of it."""
    parts = source.file.replace("\\", "/").split("/")
    files = ["/".join(parts[n:]) for n in range(len(parts))]
    return any(fnmatchcase(name, glob) for file in files for name in (file, *(f"{file}:{n}" for n in lines_of(source))))


def _why_not(finding: Finding, comment: Comment | None) -> Iterator[str]:
    if comment is None or finding.source is None:
        return
    place = f"{finding.source.file}:{comment.line}"
    if not comment.reason:
        yield f"{place}: the comment has no effect without a reason. Write allow[{finding.rule}] REASON."
    elif not comment.rules:
        yield f"{place}: the comment has no effect without a rule. Write allow[{finding.rule}]."
    else:
        yield f"{place}: the comment allows {', '.join(comment.rules)}, but this is {finding.rule}."


def _expired(entry: Allowance) -> str:
    return f"The allow-list's entry for {entry} expired on {entry.expires} ({entry.reason})."


def _violations(limit: Limit, counted: Sequence[Finding], state: State) -> Iterator[Violation]:
    selected = tuple(f for f in counted if _within(limit, f))
    worst = tuple(f.id for f in sorted(selected, key=lambda f: (-(f.recoverable_us or 0.0), -f.waited_us)))
    for sentence in _exceeded(limit, selected, state) if selected else ():
        yield Violation(limit=limit, sentence=sentence, findings=worst)
    yield from state.delays(limit, selected)


def _within(limit: Limit, finding: Finding) -> bool:
    names = {
        "": ("",),
        "scope": (*finding.scope, "/".join(finding.scope)),
        "phase": (finding.phase.value,),
        "rule": (finding.rule,),
        "owner": (finding.owner,),
    }
    return not limit.by or _any(limit.glob, names[limit.by])


def _exceeded(limit: Limit, selected: Sequence[Finding], state: State) -> Iterator[str]:
    if limit.syncs is not None:
        syncs, rank = state.most(selected, "per_step")
        if syncs > limit.syncs + HAIR:
            has, many = f"{rank} has " if rank else "", "" if f"{syncs:.3g}" == "1" else "s"
            yield f"{limit}: {has}{syncs:.3g} sync{many} per step; the limit is {limit.syncs:g}"
    if limit.wait_ms is not None:
        wait, rank = state.most(selected, "wait_us")
        if state.waits_withheld:
            yield f"{limit}: how long it waits is unknown; the limit is {limit.wait_ms:g} ms"
        elif wait / 1e3 > limit.wait_ms + HAIR:
            whose = f"{rank} " if rank else ""
            yield f"{limit}: {whose}waits {duration(wait)} per step; the limit is {limit.wait_ms:g} ms"
    if limit.recoverable is not None:
        yield from _too_much_to_gain(limit, limit.recoverable, state.saved(selected), state)


def _too_much_to_gain(limit: Limit, allowed: float, saved: tuple[float, float] | None, state: State) -> Iterator[str]:
    """Yield a sentence if a joint gain, where it is only known to lie between two, may exceed the limit."""
    if saved is None:
        yield f"{limit}: the savings of removing its syncs are unknown"
        return
    (least, most), of = saved, "of the job's step" if state.size else "of the step"
    if most <= allowed + HAIR:
        return
    if least == most:
        share = f"{most:.2%} {of}"
    elif least > allowed + HAIR:
        share = f"{least:.2%} {of} or more"
    else:
        share = f"between {least:.2%} and {most:.2%} {of}"
    yield f"{limit}: removing its syncs would save {share}; the limit is {allowed:.2%}"
