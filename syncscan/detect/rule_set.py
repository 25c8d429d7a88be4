"""From a blocking call to its diagnosis: the rules are asked in their order, and the first that matches names it."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.detect.call import Call
from syncscan.detect.rule import Rule, diagnose
from syncscan.detect.rules import RULES, unclassified
from syncscan.model.finding import Diagnosis


class RuleSet:
    """Rules in the order in which they are asked; one that raises is skipped from then on.

    Args:
        rules: special ones before general ones. What none of them matches is `unclassified`.
    """

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self.warnings: list[str] = []
        """A sentence on each rule that raised."""
        self._rules = tuple(rules)

    def diagnosis_of(self, call: Call) -> Diagnosis:
        """Return what the first rule that matches says of a call."""
        for rule in self._rules:
            try:
                match = rule.match(call)
            except Exception as e:
                self._skip(rule, e)
                continue
            if match is not None:
                return diagnose(rule, match, call.stands_in)
        return diagnose(unclassified, unclassified.match(call))

    def _skip(self, rule: Rule, error: Exception) -> None:
        self._rules = tuple(other for other in self._rules if other is not rule)
        self.warnings.append(f"The rule {rule.ID} failed ({type(error).__name__}: {error}) and was skipped.")


__all__ = ["RuleSet"]
