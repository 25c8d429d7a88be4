"""Diagnose blocking calls: rules run in order, the first match counts, and calls at one line get one name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from syncscan.detect.call import Call
from syncscan.detect.code_place import CodePlace
from syncscan.detect.rule import Rule, diagnose
from syncscan.detect.rules import RULES
from syncscan.detect.rules.synchronizes import unclassified
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


class OneRule:
    """Collects the diagnoses of calls by the line that made them, and unifies those that differ."""

    def __init__(self) -> None:
        self._sites: dict[tuple[CodePlace, Any], list[int]] = {}
        self._count = 0

    def of(self, call: Call, diagnosis: Diagnosis) -> Diagnosis:
        """Record a call's diagnosis and return it; calls come in the same order as the sync points of `settled`."""
        if call.place.has_frames:  # without frames, two lines can't be distinguished
            self._sites.setdefault((call.place, call.path.names), []).append(self._count)
        self._count += 1
        return diagnosis

    def settled(self, points: Sequence[SyncPoint]) -> list[SyncPoint]:
        """Return the sync points, those of one line with one rule if another was inferred.

        Calls of one rule and title get the fix that most of them have: of a replay buffer's copies, a small one isn't
        taken as a constant.
        """
        settled = list(points)
        for numbers in self._sites.values():
            rules = Counter(points[number].diagnosis.rule for number in numbers)
            if len(rules) < 2:
                _with_one_fix(settled, numbers)
                continue
            if all(points[n].diagnosis.confidence is Confidence.HIGH for n in numbers):
                continue
            most = rules.most_common(1)[0][0]
            chosen = next(points[n].diagnosis for n in numbers if points[n].diagnosis.rule == most)
            for number in numbers:
                if points[number].diagnosis.rule != most:
                    settled[number] = replace(points[number], diagnosis=chosen)
        return settled


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
