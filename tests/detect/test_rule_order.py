"""The order of the rules: which other rules match the calls that a rule names, and a reason for each such pair."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan import load
from syncscan.detect import Call, calls_of
from syncscan.detect.rules import BEFORE, LATE, RULES

SAMPLES = Path(__file__).parent.parent.parent / "sample_traces"
PLACE = {rule.id: place for place, rule in enumerate(RULES)}
Pair = tuple[str, str]


@functools.cache
def recorded() -> tuple[dict[Pair, int], dict[Pair, str], Counter[str]]:
    """Count recorded calls: per pair of first and further match with an example, and per rule."""
    count: Counter[Pair] = Counter()
    example: dict[Pair, str] = {}
    named: Counter[str] = Counter()
    for path in sorted(SAMPLES.rglob("*.pt.trace.json.gz")):
        for call in calls_of(load.load(path)):
            first, *others = [rule.id for rule in RULES if rule.match(call) is not None]
            named[first] += 1
            for other in others[:-1]:
                count[first, other] += 1
                example.setdefault((first, other), chain(call))
    return count, example, named


def chain(call: Call) -> str:
    return " > ".join((*call.ops, *call.facts.apis))


def reason(pair: Pair) -> str:
    return BEFORE.get(pair) or LATE[pair[1]]


def in_order(pair: Pair) -> tuple[int, int]:
    return PLACE[pair[0]], PLACE[pair[1]]


def test_every_pair_has_a_reason() -> None:
    """Whoever moves a rule reads what its place is for."""
    count, _, _ = recorded()
    assert [pair for pair in sorted(count, key=in_order) if pair not in BEFORE and pair[1] not in LATE] == []


def test_no_reason_is_stale_or_reported_twice() -> None:
    """Each pair with a reason is recorded, in this order, and no general reason covers it already."""
    count, _, _ = recorded()
    assert [pair for pair in BEFORE if pair not in count] == []
    assert [pair for pair in BEFORE if pair[1] in LATE] == []
    assert [late for late in LATE if late not in {loser for _, loser in count}] == []


def test_general_rules_come_after_all_that_they_are_late_for() -> None:
    """A rule for what is left of a kind wins over no rule that isn't as general."""
    count, _, _ = recorded()
    general = {"unclassified", *LATE}
    assert [pair for pair in count if pair[0] in general and pair[1] not in general] == []


def test_the_order_on_the_recordings_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    """A change of order, or of what a rule matches, is seen in the table of pairs."""
    count, example, named = recorded()
    lines = [
        "Written by `pytest tests/detect/test_rule_order.py --update-golden`, from all calls in `sample_traces`.",
        "",
        f"{sum(named.values())} calls. What each rule names: "
        + ", ".join(f"{rule} {named[rule]}" for rule in PLACE if named[rule])
        + ".",
        "",
        "Where a second rule matches too (`unclassified`, which matches everything, is left out):",
        "",
        "| named by | before | calls | why | one of them |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {first} | {other} | {count[first, other]} | {reason((first, other))} | `{example[first, other]}` |"
        for first, other in sorted(count, key=in_order)
    ]
    golden("rule_order.md", "\n".join(lines) + "\n")


@pytest.mark.parametrize("pair", BEFORE, ids=" before ".join)
def test_pairs_with_a_reason_stand_in_its_order(pair: Pair) -> None:
    """The reasons and the list agree."""
    assert PLACE[pair[0]] < PLACE[pair[1]]
