"""A name that a user gives selects a part of a report, or an error lists the candidates."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.report import evidence, markup
from syncscan.report.named import named
from syncscan.report.remedies import describe
from tests.report.example import analysis, hostile, typical


def ids(analysis: Analysis, name: str) -> list[str]:
    return [part.id for part in named(analysis, name)]


def test_a_number_is_the_one_of_the_list() -> None:
    """Syncs that go together are one entry, a habit another."""
    a = typical()
    for entry in describe(a):
        assert ids(a, str(entry.number)) == ([entry.habit] if entry.habit else [m.id for m in entry.members])


def test_where_nothing_is_to_change_numbers_are_the_findings() -> None:
    """As the first screen lists them: intended waits have none."""
    a = replace(typical(), remedies=())
    listed = [f.id for f in a.findings if f.severity.value != "info"]
    assert [ids(a, str(n))[0] for n in range(1, len(listed) + 1)] == listed


@pytest.mark.parametrize("kind", ["findings", "habits"])
def test_an_id_a_unique_beginning_and_a_rule_are_names(kind: str) -> None:
    """It holds for findings and habits, in any spelling."""
    a = typical()
    part = getattr(a, kind)[0]
    for name in (part.id, part.id[:-2], part.id.upper().replace("-", "_")):
        assert ids(a, name) == [part.id]
    alone = replace(a, findings=a.findings[:1], habits=a.habits[:1])
    assert ids(alone, part.rule) == [part.id]


def test_a_name_of_several_lists_them() -> None:
    """With their places, so that one can be chosen."""
    a = typical()
    twice = replace(a, findings=(a.findings[0], replace(a.findings[0], id="nonzero-ffffffff")))
    with pytest.raises(UsageError, match=r"2 things .* are called 'nonzero'") as caught:
        named(twice, "nonzero")
    assert "nonzero-ffffffff (" in caught.value.hint


@pytest.mark.parametrize("name", ["", "0", "99", "nothing-like-it"])
def test_a_name_of_nothing_is_an_error(name: str) -> None:
    """It says what there is."""
    with pytest.raises(UsageError) as caught:
        named(typical(), name)
    assert caught.value.hint
    with pytest.raises(UsageError):
        named(analysis(), name)


def test_the_nearest_is_suggested() -> None:
    """A slip of the pen leads to what was meant."""
    a = typical()
    with pytest.raises(UsageError, match="Did you mean") as caught:
        named(a, a.findings[0].id[:-1] + "x")
    assert a.findings[0].id in caught.value.hint


def test_evidence_of_a_habit_says_what_a_reviewer_asks() -> None:
    """The evidence has the proof, the time it takes, the gain and its basis, and the advice."""
    a = typical()
    habit = a.habits[0]
    text = evidence.of_named(a, habit.id)
    for part in (habit.title, "evidence, measured", "takes, measured", "| gain", "**Fix**", f"`{habit.id}`"):
        assert part in text
    assert {line.count("|") - line.count("\\|") for line in text.splitlines() if line.startswith("| ")} == {3}


def test_evidence_of_syncs_that_go_together_has_a_block_each() -> None:
    """Under a line that says what they gain together."""
    a = typical()
    number, report = next((r.number, r) for r in describe(a) if len(r.members) > 1)
    text = evidence.of_named(a, str(number))
    assert text.startswith(f"**{len(report.members)} syncs, to be removed together** ")
    assert all(f"Finding `{member.id}`" in text for member in report.members)


def test_hostile_names_of_habits_make_no_markup() -> None:
    """Each fact stays in its row, and no HTML but ours appears."""
    a = hostile("x|y`</sub><script>[a](b)")
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", markup.drawn(evidence.of_habit(a, a.habits[0])))
    assert set(re.findall(r"<[^>]*>", outside)) == {"<sub>", "</sub>"}
