"""Group the findings of one state into sites: those at one place, over rules, steps and recordings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from syncscan.gate.differences import Site
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.libraries import path_in_package
from syncscan.model.step_marks import step_mark

_STEP = re.compile(
    r"(?i)(?<![a-z])(global[_ ]?step|step|iter|iteration|batch|epoch|it|micro[_ ]?batch)([\s_#:=/.\[(-]*)\d+"
)
"""Range names in which programs put a step number."""
_DIGITS = re.compile(r"\d+")
_VENDOR = re.compile(r"^(cuda|hip|cu|xpu|mtia)(?=[A-Z])")

Place = tuple[str, int, str]
"""File, line, function; empty, 0, empty where unknown."""
Seen = Mapping[int, tuple[float, float]]
"""Count and duration of a site's waits, by index of the step."""
NOWHERE: Place = ("", 0, "")


class Key(msgspec.Struct, frozen=True):
    """Identity of a site within its state."""

    scope: tuple[str, ...]
    """Scopes, without step numbers."""
    op: str
    """The op, or the call where no op is around it."""
    phase: str
    intended: bool
    user: Place
    in_library: Place
    exact: bool
    """Whether the user's line is the one that waits, not only its function's."""

    @property
    def placed(self) -> bool:
        return self.user != NOWHERE or self.in_library != NOWHERE


def sites_of(analysis: Analysis) -> dict[Key, Site]:
    groups: defaultdict[Key, list[Finding]] = defaultdict(list)
    scopes = _without_step_numbers(analysis)
    for finding in analysis.findings:
        groups[key_of(finding, scopes[finding.id])].append(finding)
    return {key: _site(findings, analysis) for key, findings in groups.items()}


def joined(sites: Sequence[Site]) -> Site:
    """Merge sites of one recording: another recording may know only their common function."""
    if len(sites) == 1:
        return sites[0]
    gains = [s.recoverable_us for s in sites if s.recoverable_us is not None]
    compiled = [s.once_compiled_us for s in sites if s.once_compiled_us is not None]
    findings = sorted((f for s in sites for f in s.findings), key=lambda f: -f.wait_us)
    return Site(
        findings=tuple(findings),
        steps=sites[0].steps,
        seen=_add(s.seen for s in sites),
        bubble_us=sum(s.bubble_us for s in sites),
        recoverable_us=sum(gains) if gains else None,
        once_compiled_us=sum(compiled) if compiled else None,
        always=any(s.always for s in sites),
        ranks=tuple(sorted({rank for s in sites for rank in s.ranks})),
    )


def key_of(finding: Finding, scope: tuple[str, ...] | None = None) -> Key:
    """Return the site of a finding; `scope` has no step numbers, where it is given."""
    return Key(
        scope=tuple(map(unnumbered, finding.scope)) if scope is None else scope,
        op=without_vendor(finding.op or finding.call),
        phase=finding.phase.value,
        intended=finding.intended,
        user=_place(finding.source, finding.path),
        in_library=_place(finding.in_library, path_in_package(finding.in_library.file) if finding.in_library else ""),
        exact=finding.source is None or finding.source.exact,
    )


def without_vendor(call: str) -> str:
    """Return a runtime call's name as each vendor has it: `DeviceSynchronize` of `cudaDeviceSynchronize`, `hip…`."""
    return _VENDOR.sub("", call)


def _place(source: Source | None, path: str) -> Place:
    return (path or source.file, source.line, source.function) if source else NOWHERE


def _without_step_numbers(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return each finding's scopes without numbers that differ from step to step, such as `step 17`."""
    named = {f.id: tuple(map(unnumbered, f.scope)) for f in analysis.findings}
    if analysis.step.count < 2:
        return named
    steps: defaultdict[tuple[str, ...], set[frozenset[int | None]]] = defaultdict(set)
    for f in analysis.findings:
        steps[_bare(named[f.id], f)].add(frozenset(o.where.step for o in f.occurrences))
    apart = {bare for bare, seen in steps.items() if len(seen) > 1 and all(len(one) == 1 for one in seen)}
    return {
        f.id: _bare(named[f.id], f)[2:] if _bare(named[f.id], f) in apart else named[f.id] for f in analysis.findings
    }


def _bare(scope: tuple[str, ...], finding: Finding) -> tuple[str, ...]:
    return (finding.op, finding.rule, *(_DIGITS.sub("#", name) for name in scope))


def unnumbered(name: str) -> str:
    mark = step_mark(name)
    return f"{mark.framework} {mark.phase.value}" if mark else _STEP.sub(r"\1\2#", name)


def _site(findings: Sequence[Finding], analysis: Analysis) -> Site:
    steps = max(1, analysis.step.count)
    seen = _by_step(findings, analysis)
    gains = [f.recoverable_us for f in findings if f.recoverable_us is not None]
    compiled = [f.once_compiled_us for f in findings if f.once_compiled_us is not None]
    return Site(
        findings=tuple(sorted(findings, key=lambda f: -f.wait_us)),
        steps=steps,
        seen=seen,
        bubble_us=sum(f.bubble_us for f in findings),
        recoverable_us=sum(gains) if gains else None,
        once_compiled_us=sum(compiled) if compiled else None,
        always=len(seen) == steps,
    )


def _by_step(findings: Iterable[Finding], analysis: Analysis) -> Seen:
    """Return count and duration of waits by step; waits outside of all steps count for the first."""
    place: dict[int | None, int] = {step.number: n for n, step in enumerate(analysis.trace.main_steps)}
    waits = ({place.get(o.where.step, 0): (1.0, o.wait_ns / 1e3)} for f in findings for o in f.occurrences)
    return _add(waits)


def _add(parts: Iterable[Seen]) -> Seen:
    total: dict[int, tuple[float, float]] = {}
    for part in parts:
        for step, (count, wait) in part.items():
            counted, waited = total.get(step, (0.0, 0.0))
            total[step] = (counted + count, waited + wait)
    return total
