"""A rule is a function of one call: what it says of a call doesn't depend on which calls were named before."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from syncscan import load
from syncscan.detect import Call, calls_of
from syncscan.detect.rule_set import RuleSet
from syncscan.detect.rules import RULES
from syncscan.model.finding import Diagnosis
from tests.builder import TraceBuilder

TRACES = Path(__file__).parent.parent.parent / "sample_traces"


class Rule:
    """One of the project's rules with another `match`."""

    def __init__(self, match: Callable[[Call], Diagnosis | None]) -> None:
        self.match = match

    def __getattr__(self, name: str) -> Any:
        return getattr(RULES[0], name)


def titled(title: str) -> Diagnosis:
    return Diagnosis(title=title)


def titles(calls: list[Call], *rules: Any) -> list[str]:
    """Return the titles that a rule set of these rules gives the calls."""
    named = RuleSet((*rules, *RULES))
    return [named.diagnosis_of(call).title for call in calls]


def reads(*lasting: int) -> list[Call]:
    """Read-backs of one site, with the same ops around, before and after each, that take so many µs."""
    t = TraceBuilder()
    for start, us in zip(t.steps(len(lasting), lasts=1000), lasting, strict=True):
        t.op("aten::mul", start + 1, start + 5)
        with t.op("aten::item", start + 10, start + 30 + us):
            t.call("cudaStreamSynchronize", start + 20, start + 20 + us)
        t.op("aten::add", start + 900, start + 910)
    return list(calls_of(t.trace()))


def by_length(call: Call) -> Diagnosis:
    """The length of a call, read through another name of its facts."""
    point = call.point
    return titled("big" if point.end - point.ts > 300_000 else "small")


def by_begin(call: Call) -> Diagnosis:
    """The time of a call, which differs for each."""
    return titled(str(call.point.ts))


def by_row(call: Call) -> Diagnosis:
    """The call's row in the trace."""
    return titled(str(call.trace.slices.ts[call.point.calls[0]]))


def by_next_op(call: Call) -> Diagnosis:
    """How soon the next op follows."""
    return titled(str(call.followed_within(500_000)))


@pytest.mark.parametrize("match", [by_length, by_begin, by_row, by_next_op])
def test_a_rule_says_of_each_call_what_it_says_when_it_is_asked_directly(match: Callable[[Call], Diagnosis]) -> None:
    """Calls of one site, alike in all but their times, are each judged by themselves, whatever the rule reads."""
    calls = reads(100, 500, 100, 500)
    assert titles(calls, Rule(match)) == [match(call).title for call in calls]


def test_equal_calls_are_distinguished_by_their_length() -> None:
    """The rule above does say different things of calls of one site."""
    assert [by_length(call).title for call in reads(100, 500, 100, 500)] == ["small", "big", "small", "big"]


@pytest.mark.parametrize(
    "name", ["rules/rules.0", "rules/world.stacks", "rules/ops.0", "lines.stacks", "maskedloss.v0"]
)
def test_a_recorded_call_is_named_as_if_it_were_the_only_one(name: str) -> None:
    """By one set of rules in order of time, and by a new set for each call from the last to the first."""
    calls = list(calls_of(load.load(TRACES / f"{name}.pt.trace.json.gz")))
    assert calls
    together = RuleSet()
    in_order = [together.diagnosis_of(call) for call in calls]
    alone = [RuleSet().diagnosis_of(call) for call in reversed(calls)]
    assert in_order == alone[::-1]


def test_the_first_rule_that_matches_names_a_call() -> None:
    """Whatever the others would say; a rule that passes leaves the call to the next."""
    rules = [Rule(lambda call: titled("a")), Rule(lambda call: titled("b")), Rule(lambda call: None)]
    calls = reads(100)
    orders = {tuple(order): titles(calls, *order) for order in permutations(rules)}
    a, b, passes = rules
    assert orders[a, b, passes] == orders[a, passes, b] == orders[passes, a, b] == ["a"]
    assert orders[b, a, passes] == orders[b, passes, a] == orders[passes, b, a] == ["b"]


def test_a_call_that_no_rule_matches_is_unclassified() -> None:
    """The words are the rule's, whose id a finding has."""
    (call,) = reads(100)
    assert RuleSet(()).diagnosis_of(call).rule == "unclassified"


def test_a_rule_that_raises_is_skipped_and_reported_once() -> None:
    """It names the calls before the one it fails on; the other rules are asked about that one, and the later ones."""

    def fails(call: Call) -> Diagnosis:
        return titled({"small": "short"}[by_length(call).title])

    rules = RuleSet((Rule(fails), Rule(lambda call: titled("other"))))
    named = [rules.diagnosis_of(call).title for call in reads(100, 500, 100, 500)]
    assert named == ["short", "other", "other", "other"]
    (warning,) = rules.warnings
    assert warning == f"The rule {RULES[0].id} failed (KeyError: 'big') and was skipped."
