"""Write the failure text of a test that exceeds its limit of syncs; "" for one within the limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from syncscan.attribute import OWN
from syncscan.gate import Written
from syncscan.guarding.guarded_sync import WAITS, GuardedSync, rule_of
from syncscan.model.analysis import Analysis
from syncscan.model.duration import duration
from syncscan.model.finding import Finding
from syncscan.model.libraries import is_library
from syncscan.model.race import Race
from syncscan.report.printable import printable
from syncscan.testing.limit import SyncLimit

MOST = 5
"""Most places that are listed; further ones are counted."""


def of_guarded(limit: SyncLimit, syncs: Sequence[GuardedSync]) -> str:
    """Return the failure message if a guard saw more syncs than the limit, "" if not; allowed syncs don't count.

    Args:
        limit: its `wait_ms` is ignored, as a guard knows no times.
        syncs: all that it saw.
    """
    counted = [sync for sync in syncs if not sync.allowed and not limit.reason(sync.chain)]
    if limit.per_step:
        steps = Counter(sync.step for sync in counted)
        step, most = max(steps.items(), key=lambda item: item[1], default=(0, 0))
        shown, step_text = [sync for sync in counted if sync.step == step], f"in step {step + 1}"
    else:
        most, shown, step_text = len(counted), counted, "in the test"
    if limit.syncs is None or most <= limit.syncs:
        return ""
    places = Counter((sync.place, sync.kind) for sync in shown)
    firsts = {(sync.place, sync.kind): sync for sync in reversed(shown)}
    lines = [_guarded_text(firsts[place], times) for place, times in places.most_common()]
    return _text(f"{_syncs(most)} {step_text}; {limit}.", lines)


def of_races(races: Sequence[Race]) -> str:
    """Return the failure message if a dry run met races, "" if not."""
    if not races:
        return ""
    lines = [f"{race.lines}: {race.title}. {race.fix}" for race in races]
    return _text(f"{len(races)} race{'s' * (len(races) > 1)}; @pytest.mark.no_races allows none.", lines, foot="")


def of_analysis(limit: SyncLimit, analysis: Analysis, syncs: Sequence[GuardedSync] = ()) -> str:
    """Return the failure message if a recording exceeds the limit, "" if not.

    Args:
        limit: the limit of the test.
        analysis: of its recorded steps; what a mark or a comment allows is looked up by the lines of each finding.
        syncs: the syncs that a guard saw in the same steps, without lines whose syncs a block allows.
    """
    blocks = {(sync.file, sync.line) for sync in syncs if sync.allowed}
    written = Written(OWN.text_of)
    findings = [
        finding
        for finding in analysis.findings
        if not finding.intended
        and not limit.reason(lines := _lines(finding))
        and not blocks & {(file, line) for file, line, _ in lines}
        and not ((comment := written.on(finding)) and comment.allows(finding.rule))
    ]
    factor = 1.0 if limit.per_step else float(max(1, analysis.step.count))
    many = factor * sum(finding.per_step for finding in findings)
    wait_ms = factor * sum(finding.waited_us for finding in findings) / 1e3
    too_many = limit.syncs is not None and many > limit.syncs
    too_long = limit.wait_ms is not None and wait_ms > limit.wait_ms
    if not (too_many or too_long):
        return ""
    where = "per step" if limit.per_step else "in the test"
    return _text(
        f"{many:.4g} syncs {where}, {duration(wait_ms * 1e3)} of waiting; {limit}.", list(map(_finding_text, findings))
    )


def _syncs(count: int) -> str:
    return f"{count} sync{'' if count == 1 else 's'}"


_WHERE_MEANT = (
    'If it is intended: `with syncscan.allow("the reason"):` around it, `# syncscan: allow[RULE] the reason` on its'
    " line, or an entry of the mark's allow."
)


def _text(head: str, places: Sequence[str], foot: str = _WHERE_MEANT) -> str:
    more = [f"… and {len(places) - MOST} more places."] if len(places) > MOST else []
    return "\n\n".join([head, *places[:MOST], *more, *([foot] if foot else [])])


def _guarded_text(sync: GuardedSync, times: int) -> str:
    what = f"{sync.called} " if sync.called else ""
    head = f"{_shown_path(sync.file)}:{sync.line} in {sync.function}: {what}waits ({WAITS[sync.kind]}){_often(times)}"
    frames = [frame for frame in sync.chain if not is_library(frame[0])]
    callers = [
        f"    called from {_shown_path(file)}:{line} in {function}" for file, line, function in reversed(frames[:-1])
    ]
    inside = sync.chain[sync.chain.index(frames[-1]) + 1 :] if frames else sync.chain
    library = [frame for frame in inside[-MOST:] if is_library(frame[0])]
    through = [f"    through {_shown_path(file)}:{line} in {function}" for file, line, function in library]
    return "\n".join([printable(head), *map(printable, through + callers[:MOST]), *_indent(instead(rule_of(sync)))])


def _finding_text(finding: Finding) -> str:
    source = finding.in_library or finding.source
    place = f"{_shown_path(source.file)}:{source.line} in {source.function}" if source else " > ".join(finding.scope)
    head = f"{place}: {finding.title} ({finding.per_step:.4g} per step, {duration(finding.waited_us)})"
    user = finding.source
    called = (
        [f"    called from {_shown_path(user.file)}:{user.line} in {user.function}"] if user and user != source else []
    )
    ops = [f"    {' > '.join(finding.op_stack)}"] if finding.op_stack else []
    fix = [f"fix: {finding.fix}", f"(syncscan explain {finding.rule})"]
    return "\n".join(map(printable, [head, *called, *ops, *_indent("\n".join(fix))]))


def _lines(finding: Finding) -> list[tuple[str, int, str]]:
    sources = (finding.source, finding.called_from)
    return [(source.file, source.line, source.function) for source in sources if source is not None]


def _often(times: int) -> str:
    return "" if times == 1 else f", {times} times"


def _indent(text: str) -> list[str]:
    return ["    " + line for line in text.splitlines()]


def _shown_path(file: str) -> str:
    """Return the path relative to the working directory, if it is inside."""
    path = Path(file)
    return path.relative_to(Path.cwd()).as_posix() if path.is_absolute() and path.is_relative_to(Path.cwd()) else file


def instead(rule: str) -> str:
    """Return what a rule's documentation says to write instead: its sentence and its code; "" for no rule."""
    from syncscan import api

    document = next((document for document in api.rules() if document.id == rule), None)
    if document is None:
        return ""
    code = document.code("Use instead").rstrip()
    head = f"{document.summary} Instead (syncscan explain {rule}):"
    return "\n".join([head, *("    " + line for line in code.splitlines())])
