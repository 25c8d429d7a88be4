"""Diagnose blocking calls: rules run in order, the first match counts, and calls at one line get one name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from syncscan.detect.call import Call
from syncscan.detect.code_place import CodePlace
from syncscan.detect.rule import Rule, diagnose
from syncscan.detect.rules import RULES
from syncscan.detect.rules.calls_without_a_copy import unclassified
from syncscan.model.finding import Confidence, Diagnosis, SyncPoint


class RuleSet:
    """Rules in the order in which they run, specific ones before general ones; one that raises is skipped from then on.

    Calls without a match are `unclassified`.
    """

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self.warnings: list[str] = []
        """One sentence per rule that raised."""
        self._rules = tuple(rules)

    def diagnosis_of(self, call: Call) -> Diagnosis:
        for rule in self._rules:
            try:
                match = rule.match(call)
            except Exception as e:
                self._skip(rule, e)
                continue
            if match is not None:
                return diagnose(rule, match, call.place.stands_in)
        return diagnose(RULES[-1], unclassified(call))

    def _skip(self, rule: Rule, error: Exception) -> None:
        self._rules = tuple(other for other in self._rules if other is not rule)
        self.warnings.append(f"The rule {rule.id} failed ({type(error).__name__}: {error}) and was skipped.")


def diagnosed(calls: Iterable[Call], rules: RuleSet) -> list[SyncPoint]:
    """Return the sync points of these calls, each with its diagnosis; those of one line with one rule.

    Where another rule was inferred for some calls of a line, they get that of most. Calls of one rule and title get the
    fix that most of them have: of a replay buffer's copies, a small one isn't taken as a constant.
    """
    points: list[SyncPoint] = []
    by_line: defaultdict[tuple[CodePlace, Any], list[int]] = defaultdict(list)
    for call in calls:
        if call.place.has_frames:  # without frames, two lines can't be distinguished
            by_line[call.place, call.path.names].append(len(points))
        points.append(replace(call.point, ops=call.path.ops, diagnosis=rules.diagnosis_of(call)))
    for numbers in by_line.values():
        counts = Counter(points[number].diagnosis.rule for number in numbers)
        if len(counts) < 2:
            _with_one_fix(points, numbers)
        elif any(points[n].diagnosis.confidence is not Confidence.HIGH for n in numbers):
            most = counts.most_common(1)[0][0]
            chosen = next(points[n].diagnosis for n in numbers if points[n].diagnosis.rule == most)
            for number in numbers:
                if points[number].diagnosis.rule != most:
                    points[number] = replace(points[number], diagnosis=chosen)
    return points


def _with_one_fix(points: list[SyncPoint], numbers: Sequence[int]) -> None:
    """Give those of these sync points that have one title the diagnosis that most of them have."""
    by_title: defaultdict[str, list[int]] = defaultdict(list)
    for number in numbers:
        by_title[points[number].diagnosis.title].append(number)
    for alike in by_title.values():
        fixes = Counter(points[number].diagnosis.fix for number in alike)
        if len(fixes) > 1:
            most = fixes.most_common(1)[0][0]
            chosen = next(points[n].diagnosis for n in alike if points[n].diagnosis.fix == most)
            for number in alike:
                if points[number].diagnosis.fix != most:
                    points[number] = replace(points[number], diagnosis=chosen)
