"""Group the findings of a state into sites, those at one place over rules, steps, recordings, and match two states."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

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
    steps = max(1, analysis.step.count)
    return {key: site_of(findings, steps, _by_step(findings, analysis)) for key, findings in groups.items()}


def joined(sites: Sequence[Site]) -> Site:
    """Merge sites of one recording: another recording may know only their common function."""
    if len(sites) == 1:
        return sites[0]
    return Site(
        findings=tuple(sorted((f for s in sites for f in s.findings), key=lambda f: -f.waited_us)),
        steps=sites[0].steps,
        seen=_add(s.seen for s in sites),
        bubble_us=sum(s.bubble_us for s in sites),
        recoverable_us=_total(s.recoverable_us for s in sites),
        once_compiled_us=_total(s.once_compiled_us for s in sites),
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


def site_of(findings: Sequence[Finding], steps: int, seen: Seen) -> Site:
    """Return the site of these findings of one recording or job, with count and wait in each step that has it."""
    return Site(
        findings=tuple(sorted(findings, key=lambda f: -f.waited_us)),
        steps=steps,
        seen=seen,
        bubble_us=sum(f.idle_us for f in findings),
        recoverable_us=_total(f.recoverable_us for f in findings),
        once_compiled_us=_total(f.once_compiled_us for f in findings),
        always=len(seen) == steps,
        ranks=tuple(sorted({rank for f in findings for rank in f.ranks})),
    )


def _total(gains: Iterable[float | None]) -> float | None:
    known = [gain for gain in gains if gain is not None]
    return sum(known) if known else None


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


Group = tuple[tuple[Key, ...], tuple[Key, ...]]
"""Sites of both states at the same place; one of the two may be empty."""
_Choice = tuple[int, tuple[int, ...]]
"""Cost of an assignment, and the index among `many` for each of `few`."""
_NEVER = 10**12
_MOST = 60
"""Most lines of one function that are aligned; more are paired in order."""


def matched(before: Iterable[Key], after: Iterable[Key]) -> list[Group]:
    """Return groups that hold every site of both states once.

    Passes pair sites by decreasing similarity: first by all of scope, op, phase and place; then without the line,
    without folders, without the phase; and where one of the two has no place, by scope and op only, several together if
    necessary.
    """
    left, right = dict.fromkeys(before), dict.fromkeys(after)
    groups: list[Group] = []
    for pairs in _alike(left, right):
        for pair in pairs:
            groups.append(pair)
            for keys, known in zip(pair, (left, right), strict=True):
                for key in keys:
                    del known[key]
    return [*groups, *(((key,), ()) for key in left), *(((), (key,)) for key in right)]


def _file(place: Place) -> Place:
    return (place[0], 0, place[2])


def _name(place: Place) -> Place:
    return (place[0].replace("\\", "/").rpartition("/")[2], 0, place[2])


def _exactly(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, k.user, k.in_library


def _without_line(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, _file(k.user), _file(k.in_library)


def _without_folder(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, _name(k.user), _name(k.in_library)


def _without_phase(k: Key) -> Hashable:
    return k.scope, k.op, _name(k.user), _name(k.in_library)


def _scoped(k: Key) -> Hashable | None:
    """Match after a file was renamed: the function and the scope are equal."""
    return (k.scope, k.op, k.user[2], k.in_library[2]) if k.scope and k.placed else None


def _in_function(k: Key) -> Hashable | None:
    """Match after a scope was added or renamed: the function is equal, and isn't the module itself."""
    return (k.op, _name(k.user), _name(k.in_library)) if k.user[2] not in ("", "<module>") else None


def _in_file(k: Key) -> Hashable | None:
    """Match after code moved to another function of its file, under the same scope."""
    return (k.scope, k.op, _name(k.user)[0], _name(k.in_library)) if k.scope and k.user != NOWHERE else None


_PASSES: tuple[Callable[[Key], Hashable | None], ...] = (
    _exactly,
    _without_line,
    _without_folder,
    _without_phase,
    _scoped,
    _in_function,
    _in_file,
)


def _of_user(k: Key) -> Hashable | None:
    return (k.scope, k.op, _name(k.user)) if k.user != NOWHERE else None


def _of_library(k: Key) -> Hashable | None:
    return (k.scope, k.op, _name(k.in_library)) if k.in_library != NOWHERE else None


def _of_same_op(k: Key) -> Hashable:
    return k.scope, k.op, k.intended


def _of_scope(k: Key) -> Hashable:
    """Match by scope and op; whether a wait is intended may depend on its rule, and that on the frames."""
    return k.scope, k.op


_UNKNOWING: tuple[tuple[Callable[[Key], Hashable | None], Callable[[Key], bool]], ...] = (
    (_of_user, lambda k: k.in_library != NOWHERE),
    (_of_library, lambda k: k.user != NOWHERE),
    (_of_same_op, lambda k: k.placed),
    (_of_scope, lambda k: k.placed),
)
"""Criteria for sites where one recording has less information, and the information it is missing."""


def _groups(
    left: Iterable[Key], right: Iterable[Key], similar: Callable[[Key], Hashable | None]
) -> Iterator[tuple[list[Key], list[Key]]]:
    """Yield groups of similar sites, each with sites of both states."""
    groups: defaultdict[Hashable, tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
    for number, keys in enumerate((left, right)):
        for key in keys:
            if (name := similar(key)) is not None:
                groups[name][number].append(key)
    yield from ((one, other) for one, other in groups.values() if one and other)


def _alike(left: Iterable[Key], right: Iterable[Key]) -> Iterator[list[Group]]:
    """Yield the pairs of one pass after the other; each handles what earlier passes left."""
    for similar in _PASSES:
        yield [pair for one, other in _groups(left, right, similar) for pair in _pair(one, other)]
    for similar, knows in _UNKNOWING:
        yield [
            (tuple(one), tuple(other))
            for one, other in _groups(left, right, similar)
            if not any(map(knows, one)) or not any(map(knows, other))
        ]


def _pair(first: Sequence[Key], other: Sequence[Key]) -> Iterator[Group]:
    """Yield pairs line by line, in order; all together where one side knows only the function."""
    if not all(k.exact for k in (*first, *other)):
        yield tuple(first), tuple(other)
        return
    first, other = sorted(first, key=_line), sorted(other, key=_line)
    if len(first) > len(other):
        yield from (((a,), (b,)) for b, a in _align(other, first))
    else:
        yield from (((a,), (b,)) for a, b in _align(first, other))


def _line(key: Key) -> tuple[int, int]:
    return key.user[1], key.in_library[1]


def _align(few: Sequence[Key], many: Sequence[Key]) -> list[tuple[Key, Key]]:
    """Pair each of `few` with one of `many`, in order, so that lines shift as evenly as possible."""
    if len(few) == len(many) or len(many) > _MOST:
        return list(zip(few, many, strict=False))
    moved = [[_line(b)[0] - _line(a)[0] for b in many] for a in few]
    best: list[_Choice] = [(abs(shift), (j,)) for j, shift in enumerate(moved[0])]
    for i in range(1, len(few)):
        best = [_behind(best, moved[i - 1], moved[i][j], j) for j in range(len(many))]
    return [(a, many[j]) for a, j in zip(few, min(best)[1], strict=True)]


def _behind(best: list[_Choice], moved: Sequence[int], shift: int, j: int) -> _Choice:
    """Return the cheapest assignment that continues with `j`, shifted by `shift`, given the previous shifts."""
    earlier = [(cost + abs(shift - moved[chosen[-1]]), (*chosen, j)) for cost, chosen in best if chosen[-1] < j]
    return min(earlier, default=(_NEVER, (j,) * (len(best[0][1]) + 1)))
