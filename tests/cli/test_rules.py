"""`syncscan rules` and `syncscan explain` as a user calls them."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.detect import catalogue
from syncscan.errors import UsageError

RULES = catalogue()


def run(*args: str) -> Result:
    return CliRunner().invoke(group, [*args])


def test_text_lists_every_rule_on_a_line_in_their_order() -> None:
    """The list is what is asked, from the first rule to the last, with id, cause and title."""
    lines = run("rules").stdout.splitlines()
    assert [line.split()[:2] for line in lines[: len(RULES)]] == [[r.id, r.cause.value] for r in RULES]
    assert lines[0].endswith(RULES[0].name)


def test_json_holds_the_whole_catalogue() -> None:
    """A program gets all sections of all rules under a schema's name."""
    answer = json.loads(run("rules", "--format", "json").stdout)
    assert answer["schema"] == "syncscan.rules/1"
    assert [rule["id"] for rule in answer["rules"]] == [r.id for r in RULES]
    assert answer["rules"][0]["sections"] == dict(RULES[0].sections)


def test_markdown_is_a_table_with_a_row_a_rule() -> None:
    """The README's table: no cell breaks it."""
    lines = run("rules", "--format", "markdown").stdout.splitlines()
    assert len(lines) == len(RULES) + 2
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)


@pytest.mark.parametrize("name", ["one-hot", "one_hot", "One-Hot", "aten::one_hot"])
def test_explain_finds_a_rule_as_people_write_it(name: str) -> None:
    """An id, the module's name and the op's name all lead to the rule."""
    result = run("explain", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("# one-hot: ")
    assert "F.one_hot(labels, num_classes=8)" in result.stdout


def test_explain_shows_what_the_examples_stand_on() -> None:
    """Both examples can be pasted behind the preamble."""
    assert "labels = torch.randint" in run("explain", "bincount", "--format", "markdown").stdout


def test_an_unknown_rule_is_a_usage_error_with_a_suggestion() -> None:
    """A typing error is answered with the rule that was meant, and exit code 2."""
    error = run("explain", "boolean-indx").exception
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert "boolean-index" in (error.hint or "")


def test_a_name_like_no_rule_leads_to_the_list() -> None:
    """Where nothing is close, the hint says where all are."""
    error = run("explain", "zzzzzzzz").exception
    assert isinstance(error, UsageError)
    assert "syncscan rules" in (error.hint or "")


def test_on_a_terminal_the_text_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is highlighted where colours are wanted."""
    monkeypatch.setattr("syncscan.cli.explain.colors", lambda: True)
    result = CliRunner().invoke(group, ["explain", "item"], color=True)
    assert "\x1b[" in result.output
