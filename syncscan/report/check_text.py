"""Render verdicts for a terminal: exceeded limits, the lines responsible, and what to do."""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from syncscan.model.check import CheckVerdict
from syncscan.model.finding import Finding
from syncscan.model.race import Race
from syncscan.report.phrases import chain, line, places, waiting_time, what, worth_more_compiled
from syncscan.report.printable import printable
from syncscan.report.races import lines
from syncscan.report.terminal import written
from syncscan.report.units import duration, times

SHOWN = 10
"""Findings shown per violation; JSON has them all."""


def render(verdicts: Sequence[CheckVerdict], rules_from: str, width: int = 100, color: bool = False) -> str:
    """Return the verdicts as text.

    Args:
        rules_from: where the limits stand.
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written((part for v in verdicts for part in _parts(v, rules_from)), width, color)


def _parts(verdict: CheckVerdict, rules_from: str) -> Iterator[RenderableType]:
    state = ("passed", "bold green") if verdict.passed else ("failed", "bold red")
    name = PurePath(verdict.path).name or verdict.path
    yield Text.assemble(state, f": {printable(name)}, {printable(summary(verdict, rules_from))}")
    for number, violation in enumerate(verdict.violations):
        yield Text.assemble(("✗ ", "bold red"), printable(violation.sentence, 300))
        listed = [v.findings for v in verdict.violations[:number]]
        yield from _findings(() if violation.findings in listed else violation.findings, verdict.waits_withheld)
        yield from _races(violation.races)
    yield from (_guilty(finding) for finding in verdict.guilty[:SHOWN])
    for exempt in verdict.exempt[:SHOWN]:
        exemption = f"{_line(exempt.finding, verdict.waits_withheld)} ({exempt.by.value}: {exempt.reason})"
        yield Text(printable(f"allowed: {exemption}", 300), "dim")
    for known in verdict.exempt_races[:SHOWN]:
        yield Text(printable(f"allowed: {lines(known.race)} ({known.by.value}: {known.reason})", 300), "dim")
    for note in verdict.all_notes:
        yield Text(f"note: {printable(note, 300)}", "yellow")


def _findings(findings: Sequence[Finding], withheld: bool) -> Iterator[RenderableType]:
    for finding in findings[:SHOWN]:
        yield Padding(Text(printable(_line(finding, withheld), 300)), (0, 0, 0, 3))
    if len(findings) > SHOWN:
        yield Padding(Text(f"… and {len(findings) - SHOWN} more"), (0, 0, 0, 3))


def _races(races: Sequence[Race]) -> Iterator[RenderableType]:
    for race in races[:SHOWN]:
        allowed = f"or allow it: # syncscan: allow[{race.kind.value}] why it may stay, in {race.second}"
        text = f"{lines(race)}: {race.text.title}\ninstead: {race.text.fix}\n{allowed}"
        yield Padding(Text(printable(text, 1200, lines=True)), (0, 0, 0, 3))
    if len(races) > SHOWN:
        yield Padding(Text(f"… and {len(races) - SHOWN} more"), (0, 0, 0, 3))


def summary(verdict: CheckVerdict, rules_from: str) -> str:
    """Return how many syncs were checked against which limits, and how many are exempt."""
    kinds = Counter([e.by.value for e in verdict.exempt] + [e.by.value for e in verdict.exempt_races])
    exempt = ", ".join(f"{count} by {kind}" for kind, count in kinds.items())
    beside = f"; exempt {exempt}" if exempt else ""
    races = f" and {len(verdict.races)} race{'s' * (len(verdict.races) != 1)}" if verdict.races else ""
    syncs = f"{len(verdict.counted)} sync{'s' * (len(verdict.counted) != 1)}"
    return f"{syncs}{races} checked against {rules_from}{beside}"


def _line(finding: Finding, withheld: bool) -> str:
    where = places(finding.where) or " › ".join(finding.where.scope)
    sync = f"{what(finding)}, {times(finding.per_step)}, {waiting_time(finding, withheld)}"
    return f"{where or 'unknown line'}: {sync}{_once_compiled(finding)}"


def _once_compiled(finding: Finding) -> str:
    later = finding.gain.once_compiled_us if finding.gain else None
    if finding.gain is None or not worth_more_compiled(later, finding.gain.recoverable_us):
        return ""
    return f", saves {duration(later)} once the network is compiled"


def _guilty(finding: Finding) -> RenderableType:
    """Return a finding's op chain and fix, and how to allow it."""
    text = "\n".join(
        (
            f"{finding.diagnosis.title}",
            f"chain: {' > '.join(chain(finding))}",
            f"instead: {finding.diagnosis.fix}",
            f"or allow it: {_allowed(finding)}",
        )
    )
    return Padding(Text(printable(text, 1200, lines=True)), (0, 0, 0, 3))


def _allowed(finding: Finding) -> str:
    """Return how to allow a finding: a comment on its line where one line is known, else an allow-list entry."""
    source, scope = finding.where.source, finding.where.scope
    if source and (source.exact or len(source.candidates) == 1):
        at = line(source) if source.exact else source.candidates[0]
        return f"# syncscan: allow[{finding.rule}] REASON, in {source.file}:{at}"
    key, name = ("scope", scope[-1]) if scope else ("op", finding.where.op)
    entry = {"rule": finding.rule, key: glob.escape(name)}
    if source:
        entry["line"] = glob.escape(source.file)
    entry["reason"] = "why it may stay"
    lines = "\n".join(f"  {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
    return f"in pyproject.toml:\n  [[tool.syncscan.allow]]\n{lines}"
