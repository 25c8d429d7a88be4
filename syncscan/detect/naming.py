"""From blocking calls to their diagnoses: by the rules, or by what these said of a call that answered all they asked.

What rules ask depends on the answers before alone, so that the same answers lead to the same end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from syncscan.detect.call import LIBRARY, WITHOUT_TIMES, Call, Kind, Question, Site, recalling
from syncscan.detect.rule import Match, Rule, diagnose
from syncscan.detect.rules import RULES, unclassified
from syncscan.model.finding import Diagnosis

_Answers = dict[Question, Any]
"""What was asked, in order, with the answers."""


class Naming:
    """Asks the rules in their order, and remembers what they said, and those that raised."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        """A sentence on each rule that raised; it isn't asked again."""
        self._rules: tuple[Rule, ...] = RULES
        self._forget()

    def _forget(self) -> None:
        self._of_libraries: dict[Any, _Decisions] = {}
        """For calls of a kind below the same library's code, wherever in a program they stand."""
        self._of_sites: dict[Site, _Decisions] = {}
        """The same ones by where they stand."""
        self._possible: dict[Any, tuple[Rule, ...]] = {}
        """The rules that may fit calls of a kind below the same library's code: the others said no by that alone."""
        self._of_kind: dict[Kind, tuple[Rule, ...]] = {}
        """Those that may fit calls of a kind: the others said no by that alone, whatever code such a call stands in."""
        self._of_alike: dict[Any, tuple[Diagnosis, Any]] = {}
        """For calls of a site with the same surroundings of which nothing else was asked; with these surroundings."""

    def diagnosis_of(self, call: Call) -> Diagnosis:
        """By what was said of a call like it, or of one of its kind that answers the same; else by the rules."""
        # By identity: to hash so many names takes longer than all else. While they are kept no others get their ids.
        alike = *call.site, call.facts.bytes, id(call.names_before), id(call.names_after)
        known = self._of_alike.get(alike)
        if known is not None:
            return known[0]
        diagnosis, of_times = self._by_answers(call, call.site)
        if not of_times:
            self._of_alike[alike] = diagnosis, (call.names_before, call.names_after)
        return diagnosis

    def _by_answers(self, call: Call, site: Site) -> tuple[Diagnosis, bool]:
        """By what was said of a call of its kind, below the same library, that answers the same; else by the rules.

        And whether a call with the same around it may have to be asked again.
        """
        there = self._of_sites.get(site)
        if there is None:
            there = self._of_libraries.setdefault((call.kind, call.place.below_program), _Decisions())
            self._of_sites[site] = there
        diagnosis, of_times = there.of(call)
        if diagnosis is None:
            diagnosis, of_times = self._by_rules(call), True
            there.add(call.asked, diagnosis)
        return diagnosis, of_times

    def _by_rules(self, call: Call) -> Diagnosis:
        """By the first rule that fits; `call.asked` has what was asked until then, in order, but for the library's."""
        asked: _Answers = {}
        same = call.kind, call.place.below_program
        rules, match = self._possible.get(same) or self._of_kind.get(call.kind) or self._rules, None
        of_kind: list[Rule] = []
        possible: list[Rule] = []
        for number, rule in enumerate(rules):
            match = self._ask(rule, call)
            asked |= call.asked
            if match is not None:
                of_kind += rules[number:]
                possible += rules[number:]
                break
            if call.asked:
                of_kind.append(rule)
                if not call.asked.keys() <= {LIBRARY}:
                    possible.append(rule)
                call.asked.clear()
        if same not in self._possible:
            self._of_kind[call.kind] = tuple(of_kind)
        self._possible[same] = tuple(possible)
        if match is None:
            diagnosis = diagnose(unclassified, unclassified.match(call))
        else:
            diagnosis = diagnose(rule, match, call.stands_in)
        asked.pop(LIBRARY, None)
        call.asked.clear()
        call.asked.update(asked)
        return diagnosis

    def _ask(self, rule: Rule, call: Call) -> Match | None:
        try:
            return rule.match(call)
        except Exception as e:
            self._rules = tuple(other for other in self._rules if other is not rule)
            self._forget()  # what it said so far isn't what will be said
            self.warnings.append(f"The rule {rule.ID} failed ({type(e).__name__}: {e}) and was skipped.")
            return None


class _Asked(msgspec.Struct, frozen=True):
    """A question, and by its answer what was asked next, or said at last."""

    question: Question
    answer: Callable[[Call], Any]
    of_times: bool
    """Whether calls of a site with the same around them may answer it otherwise."""
    next: dict[Any, _Asked | Diagnosis]


class _Decisions:
    """What was said of calls, as a tree of what was asked of them."""

    def __init__(self) -> None:
        self._first: dict[Any, _Asked | Diagnosis] = {}

    def of(self, call: Call) -> tuple[Diagnosis | None, bool]:
        """What the rules would say of a call; None where nothing was said yet of one that answers the same.

        And whether anything was asked that calls of its site with the same around them may answer otherwise.
        """
        at, of_times = self._first.get(None), False
        while isinstance(at, _Asked):
            of_times = of_times or at.of_times
            at = at.next.get(at.answer(call))
        return at, of_times

    def add(self, asked: _Answers, diagnosis: Diagnosis) -> None:
        """Remember what was asked of a call, in order, with its answers, and what came of it."""
        following, answer = self._first, None
        for question, told in asked.items():
            node = following.get(answer)
            if node is None:
                node = following[answer] = _Asked(question, recalling(question), question[0] not in WITHOUT_TIMES, {})
            assert isinstance(node, _Asked)
            following, answer = node.next, told
        following[answer] = diagnosis


__all__ = ["Naming"]
