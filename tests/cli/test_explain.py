"""`syncscan explain` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan import habits
from syncscan.cli import group
from syncscan.detect import RuleDoc, catalogue
from syncscan.errors import UsageError
from tests.cli.test_analyze import waiting
from tests.each import each

RULES, HABITS = catalogue(), habits.catalogue()


def run(*args: str) -> Result:
    return CliRunner().invoke(group, [*args])


def test_text_lists_every_rule_on_a_line_in_their_order() -> None:
    """The list is what is asked, from the first rule to the last, with id, cause and title."""
    lines = run("explain").stdout.splitlines()
    assert [line.split()[:2] for line in lines[: len(RULES)]] == [[r.id, r.cause.value] for r in RULES]
    assert lines[0].endswith(RULES[0].name)
    habits = lines[lines.index("Other costs:") + 2 :][: len(HABITS)]
    assert [line.split()[:2] for line in habits] == [[h.id, h.cause.value] for h in HABITS]
    assert lines[-1].startswith(f"{len(RULES)} rules and {len(HABITS)} habits.")


@pytest.mark.parametrize("name", ["one-hot", "one_hot", "One-Hot", "aten::one_hot"])
def test_explain_finds_a_rule_as_people_write_it(name: str) -> None:
    """An id, the module's name and the op's name all lead to the rule."""
    result = run("explain", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("# one-hot: ")
    assert "F.one_hot(labels, num_classes=8)" in result.stdout


def test_explain_shows_what_the_examples_stand_on() -> None:
    """Both examples can be pasted behind the preamble."""
    assert "labels = torch.randint" in run("explain", "bincount").stdout


def test_an_unknown_rule_is_a_usage_error_with_a_suggestion() -> None:
    """A typing error is answered with the rule that was meant, and exit code 2."""
    error = run("explain", "boolean-indx").exception
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert "boolean-index" in (error.hint or "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("clip_grad_norm_", "clip-grad"),
        ("masked_fill", "boolean-assign"),
        ("DataLoader num_workers", "loader-no-workers"),
        ("readback", "It is a cause; its rules are"),
        ("INPUT", "It is a cause; its rules are"),
    ],
)
def test_words_and_causes_lead_to_the_rules_about_them(name: str, hint: str) -> None:
    """A function's name, words of the page in any case, and the class of a cause."""
    error = run("explain", name).exception
    assert isinstance(error, UsageError)
    assert hint in (error.hint or "")


def test_a_name_like_no_rule_leads_to_the_list() -> None:
    """Where nothing is close, the hint says where all are."""
    error = run("explain", "zzzzzzzz").exception
    assert isinstance(error, UsageError)
    assert "syncscan explain" in (error.hint or "")


def test_on_a_terminal_the_text_has_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is highlighted where colors are wanted."""
    monkeypatch.setattr("syncscan.cli.explain.colors", lambda: True)
    result = CliRunner().invoke(group, ["explain", "item"], color=True)
    assert "\x1b[" in result.output


@each("habit", HABITS, ids=lambda habit: habit.id)
def test_every_habit_is_explained(habit: RuleDoc) -> None:
    """Under the id that reports show, with the number behind it or without."""
    for name in (habit.id, f"{habit.id}-0123abcd"):
        assert run("explain", name).stdout.startswith(f"# {habit.id}: {habit.name}\n")


@pytest.mark.parametrize("name", ["item-0a1b2c3d", "one-h", "fp32"])
def test_an_id_of_a_finding_and_a_unique_beginning_lead_to_the_rule(name: str) -> None:
    """As far as a user has typed it."""
    assert run("explain", name).exit_code == 0


def test_a_beginning_of_several_lists_them() -> None:
    """Syncs' and habits' alike."""
    error = run("explain", "launch").exception
    assert isinstance(error, UsageError)
    assert error.hint == "It can be launch-blocking, launch-bound."


@pytest.mark.parametrize("name", ["1", "nonzero", "nonz"])
def test_with_a_trace_what_was_measured_comes_first(tmp_path: Path, name: str) -> None:
    """The finding's evidence, then its rule's page."""
    text = run("explain", name, str(waiting().write(tmp_path / "t.json"))).stdout
    assert 0 < text.index("| wait, measured |") < text.index("# nonzero: ")


def test_a_number_needs_a_trace_and_the_name_comes_first(tmp_path: Path) -> None:
    """The error says what to type instead."""
    trace = str(waiting().write(tmp_path / "t.json"))
    for words, hint in ((["1"], "syncscan explain 1 TRACE"), ([trace, "1"], f"syncscan explain 1 {trace}")):
        error = run("explain", *words).exception
        assert isinstance(error, UsageError)
        assert hint in error.hint
