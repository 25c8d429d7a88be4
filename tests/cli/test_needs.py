"""An option that means nothing without another is refused without it; what each option does is in test_heeded."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from syncscan.cli import all_commands, group, module_of
from syncscan.cli.needs import Need, name
from syncscan.errors import UsageError
from tests.each import each
from tests.offered import offered

VALUES = {
    "form": "json",
    "page": "1",
    "better": "higher",
    "evidence": "1",
    "around": "1",
    "max_batch": "8",
    "output": "OUT",
    "steps": "none",
    "fix --steps": "1",
    "attach --steps": "1",
    "viewer": "html",
    "min_saves": "1us",
    "select": "item",
    "ignore": "item",
    "source_root": ".",
}

NO_PROCESS = str(2**31 - 1)
"""A number that no process has: Linux's are at most 2**22."""

ARGUMENTS = {"explain": ["item"], "attach": [NO_PROCESS]}


def click_commands() -> dict[str, click.Command]:
    return {name: importlib.import_module(module_of(name)).command for name in all_commands()}


NEEDS = [(n, need) for n, c in click_commands().items() for need in getattr(c.callback, "needs", ())]


@each(("command", "need"), NEEDS, ids=lambda case: f"{case[0]} {case[1].option}-{case[1].other}")
def test_an_option_without_what_it_needs_is_an_error(command: str, need: Need) -> None:
    """Both are named, before anything is read; and with what it needs it isn't one."""
    click_command = click_commands()[command]
    option, other = name(click_command, need.option), name(click_command, need.other)
    error = call(click_command, command, need, broken=True)
    assert isinstance(error, UsageError)
    assert option in error.message
    assert other in error.message
    assert other not in str(call(click_command, command, need, broken=False))


def call(click_command: click.Command, command: str, need: Need, *, broken: bool) -> BaseException | None:
    """The command with the option, and with the other so that it is wrong, or right."""
    arguments = ARGUMENTS.get(command, ["no.json"])
    words = [command]
    if need.values:
        wrong = next(c for c in parameter(click_command, need.other).type.choices if c not in need.values)
        words += option_of(click_command, need.other, wrong if broken else need.values[-1])
    elif broken is need.never:
        words += option_of(click_command, need.other)
    words += [word for also in needs_beside(click_command, need) for word in also]
    words += option_of(click_command, need.option)  # the last: it may be an argument that ends a command's options
    if command == "annotate":
        words += ["-o", "x.pt.trace.json"]
    return CliRunner().invoke(group, [*words, *arguments]).exception


def needs_beside(command: click.Command, need: Need) -> Iterator[list[str]]:
    """Yield what the other needs of the option ask for."""
    for also in getattr(command.callback, "needs", ()):
        if also.option == need.option and also is not need and not also.never:
            yield option_of(command, also.other, also.values[-1] if also.values else "")


def option_of(command: click.Command, which: str, value: str = "") -> list[str]:
    """As a user would write it."""
    result = parameter(command, which)
    if isinstance(result, click.Argument):
        return ["no.json"]
    takes_value = not (result.is_flag or result.count)
    written = name(command, which).partition("/")[0]
    usual = VALUES.get(f"{command.name} {written}", VALUES.get(which, "1"))
    return [written, value or usual] if takes_value else [written]


def parameter(command: click.Command, which: str) -> click.Parameter:
    return next(p for p in command.params if p.name == which)


@pytest.mark.parametrize("words", [["analyze", "no.json"], ["whatif", "no.json"], ["report", "no.json", "-o", "-"]])
def test_force_without_a_file_is_an_error(words: list[str]) -> None:
    """There is nothing to replace."""
    error = CliRunner().invoke(group, [*words, "--force"]).exception
    assert isinstance(error, UsageError)
    assert "--force" in error.message


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "many"])
@each(
    "words",
    offered([["analyze", "no.json", "--step-ms"], ["check", "no.json", "--syncs"], ["prove", "--tolerance"]]),
)
def test_a_number_is_one_to_count_with(words: list[str], number: str) -> None:
    """Or it is an error that names the option."""
    result = CliRunner().invoke(group, [*words, number])
    assert result.exit_code == 2
    assert f"Invalid value for '{words[-1]}'" in result.stderr


@pytest.mark.parametrize(
    "words",
    [["analyze", ""], ["explain", ""], ["analyze", "no.json", "--evidence="]],
)
def test_an_empty_argument_is_an_error(words: list[str]) -> None:
    """It is a variable that wasn't set, and would be taken for no argument, or for this folder."""
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 2
    assert "is empty" in result.stderr
