"""Diagnose a blocking call: rules run in order, and the first match counts."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.detect.call import Call
from syncscan.detect.rule import Rule, diagnose
from syncscan.detect.rules import RULES
from syncscan.detect.rules.synchronizes import unclassified
from syncscan.model.finding import Diagnosis


class RuleSet:
    """Rules in the order in which they run; one that raises is skipped from then on.

    Args:
        rules: specific ones before general ones. Calls without a match are `unclassified`.
    """

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self.warnings: list[str] = []
        """One sentence per rule that raised."""
        self._rules = tuple(rules)

    def diagnosis_of(self, call: Call) -> Diagnosis:
        """Return the first matching rule's diagnosis of a call."""
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


__all__ = ["RuleSet"]
