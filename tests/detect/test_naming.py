"""Which calls the rules are asked about, and which are named as another was that answered the same."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from syncscan.detect import calls_of, naming
from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.detect.rules import RULES
from syncscan.model.finding import Removal
from tests.builder import TraceBuilder


def calls(*before: str) -> list[Call]:
    """As many read-backs of one site, each with an op of this name right before it."""
    t = TraceBuilder()
    for k, op in enumerate(before):
        t.op(op, 1000 * k + 1, 1000 * k + 5)
        with t.op("aten::item", 1000 * k + 10, 1000 * k + 600):
            t.call("cudaStreamSynchronize", 1000 * k + 20, 1000 * k + 500)
    return list(calls_of(t.trace()))


class Rule:
    """One of the project's, whose match counts how often it is asked, and may do something of its own."""

    def __init__(self, rule: object, match: object) -> None:
        self._rule, self.match = rule, match

    def __getattr__(self, name: str) -> object:
        return getattr(self._rule, name)


def asked(monkeypatch: pytest.MonkeyPatch, match: object, *before: str) -> tuple[list[str], Counter[str]]:
    """What each call was called, and how often a rule of this match was asked, which comes before the others."""
    times: Counter[str] = Counter()

    def counted(call: Call) -> Match | None:
        times["asked"] += 1
        return match(call)  # type: ignore[no-any-return,operator]

    monkeypatch.setattr(naming, "RULES", (Rule(RULES[0], counted), *RULES))
    namer = naming.Naming()
    return [namer.diagnosis_of(call).title for call in calls(*before)], times


def test_rules_are_asked_once_for_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many surroundings there are: what came before the nearest op isn't asked for."""
    said = {f"aten::{name}": Match(title=name, fix="", removal=Removal.NOTHING) for name in "ab"}
    told, times = asked(monkeypatch, lambda call: said[call.before[-1]], *("aten::a", "aten::b", "aten::a") * 5)
    assert told == ["a", "b", "a"] * 5
    assert times["asked"] == 2


def test_calls_alike_are_told_apart_by_what_times_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of read-backs with the same around them every third is followed at once, and goes by another name."""
    t = TraceBuilder()
    for k, start in enumerate(t.steps(9, lasts=1000)):  # nothing from before a step is around it, or from behind
        with t.op("aten::item", start + 10, start + 600):
            t.call("cudaStreamSynchronize", start + 20, start + 500)
        t.op("aten::mul", start + (900 if k % 3 else 601), start + 950)
    said = {at_once: Match(title=str(at_once), fix="", removal=Removal.NOTHING) for at_once in (True, False)}
    rule = Rule(RULES[0], lambda call: said[call.followed_within(5_000)])
    monkeypatch.setattr(naming, "RULES", (rule, *RULES))
    namer = naming.Naming()
    told = [namer.diagnosis_of(call).title for call in calls_of(t.trace())]
    assert told == ["True", "False", "False"] * 3


def test_rules_are_asked_once_for_sites_of_which_the_same_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the program's code decides, and not how its places are called."""
    t = TraceBuilder()
    for k, scope in enumerate(("log 1", "log 2", "eval 1", "log 3", "eval 2")):
        with t.scope(scope, 1000 * k, 1000 * k + 700), t.op("aten::item", 1000 * k + 10, 1000 * k + 600):
            t.call("cudaStreamSynchronize", 1000 * k + 20, 1000 * k + 500)
    times: Counter[str] = Counter()

    def logs(call: Call) -> Match:
        times["asked"] += 1
        return Match(title="log" if call.in_scope("log") else "eval", fix="", removal=Removal.NOTHING)

    monkeypatch.setattr(naming, "RULES", (Rule(RULES[0], logs), *RULES))
    namer = naming.Naming()
    told = [namer.diagnosis_of(call).title for call in calls_of(t.trace())]
    assert told == ["log", "log", "eval", "log", "eval"]
    assert times["asked"] == 2


def test_rules_are_asked_once_for_all_lines_of_a_librarys_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule asks in which line of it; of another function, it may say something else."""
    t = TraceBuilder()
    for k, frame in enumerate(("(7): forward", "(8): forward", "(9): backward", "(10): forward")):
        t.frame("train.py(3): main", 1000 * k, 1000 * k + 700)
        t.frame(f"torchvision/ops/boxes.py{frame}", 1000 * k + 5, 1000 * k + 650)
        with t.op("aten::item", 1000 * k + 10, 1000 * k + 600):
            t.call("cudaStreamSynchronize", 1000 * k + 20, 1000 * k + 500)
    times: Counter[str] = Counter()

    def named(call: Call) -> Match:
        times["asked"] += 1
        return Match(title=str(call.deciding_function), fix="", removal=Removal.NOTHING)

    monkeypatch.setattr(naming, "RULES", (Rule(RULES[0], named), *RULES))
    namer = naming.Naming()
    told = [namer.diagnosis_of(call).title for call in calls_of(t.trace())]
    assert told == ["forward", "forward", "backward", "forward"]
    assert times["asked"] == 2


def test_a_rule_that_never_looks_around_is_asked_once_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next rules' questions lead to other ends; what this one said depends on the call and its ops alone."""
    _, times = asked(monkeypatch, lambda call: None, "aten::isclose", "aten::select", "aten::_is_all_true", "aten::any")
    assert times["asked"] == 1


def test_a_rule_that_asks_for_nothing_is_asked_once_whatever_library_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said depends on the call and its ops alone; one that asks for the library's code is asked below each."""
    t = TraceBuilder()
    for k, function in enumerate(("forward", "backward", "reduce")):
        t.frame("train.py(3): main", 1000 * k, 1000 * k + 700)
        t.frame(f"torchvision/ops/boxes.py(7): {function}", 1000 * k + 5, 1000 * k + 650)
        with t.op("aten::item", 1000 * k + 10, 1000 * k + 600):
            t.call("cudaStreamSynchronize", 1000 * k + 20, 1000 * k + 500)
    times: Counter[str] = Counter()

    def passes(call: Call) -> None:
        times["of the call"] += 1

    def names(call: Call) -> Match:
        times["of the library"] += 1
        return Match(title=str(call.deciding_function), fix="", removal=Removal.NOTHING)

    monkeypatch.setattr(naming, "RULES", (Rule(RULES[0], passes), Rule(RULES[1], names), *RULES))
    namer = naming.Naming()
    told = [namer.diagnosis_of(call).title for call in calls_of(t.trace())]
    assert told == ["forward", "backward", "reduce"]
    assert times == {"of the call": 1, "of the library": 3}


def test_a_rule_that_raises_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are, and what was said before it raised is forgotten."""
    told, times = asked(monkeypatch, lambda call: 1 / 0, "aten::a", "aten::a")
    assert len(set(told)) == 1
    assert times["asked"] == 1


OF_KIND = {"api", "apis", "copy", "direction", "launches", "pageable", "pinned", "synchronises", "waited"}
"""Facts of a call that its kind says; others would have to be asked for."""


def test_of_a_read_back_in_an_op_no_rule_asks_whether_ddp_or_fsdp_wraps_the_module() -> None:
    """Those wait outside of ops, by synchronises alone: each question fewer is one fewer for every call of a kind."""
    (call,) = calls("aten::mul")
    for rule in RULES:
        rule.match(call)
    scopes = {question for question in call.asked if question[0] in ("in_scope", "directly_in_scope", "scope_that")}
    assert not [question for question in scopes if "Parallel" in str(question[1])]


def test_rules_ask_for_all_that_differs_between_calls_of_a_kind() -> None:
    """What a rule took past the questions would be the same for calls that are named alike, and isn't."""
    package = Path(naming.__file__).parent
    taken = set()
    for file in (package / "ops.py", package / "places_in_libraries.py", *(package / "rules").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("call", "call.facts", "call.neighbours"):
                taken.add(ast.unparse(node))
    own = {f"call.{name}" for name in vars(Call) if not name.startswith("_")} - {
        "call.trace",
        "call.place",
        "call.site",
        "call.asked",
        "call.names_before",
        "call.names_after",
    }
    assert taken <= own | {f"call.facts.{fact}" for fact in OF_KIND} | {"call.neighbours.loads"}
    assert "call.facts.direction" in taken
