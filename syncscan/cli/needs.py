"""Refuse an option that would be ignored because another one is missing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from syncscan.errors import UsageError


class Need(msgspec.Struct, frozen=True):
    """One option of a command, and what it means nothing without.

    `option` and `other` are parameters of the command by their Python names. `values` are those of the other's with
    which it means something; empty where the other only has to be given, or (`never`) not to be.
    """

    option: str
    other: str
    values: tuple[str, ...] = ()
    never: bool = False


def needs(*all_of_them: Need) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a command refuse options that would be ignored; to be applied right above it, below its options."""

    def checking(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def checked(**arguments: Any) -> Any:
            for need in all_of_them:
                _check(need, click.get_current_context())
            return command(**arguments)

        checked.needs = all_of_them  # type: ignore[attr-defined]
        return checked

    return checking


def given(context: click.Context, parameter: str) -> bool:
    """Return whether the user gave this option or argument, and it isn't its default."""
    explicit = context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
    return explicit and context.params.get(parameter) not in (None, (), "")


def name(command: click.Command, parameter: str) -> str:
    """Return how the user writes an option or an argument: the longest of its names."""
    option = next(p for p in command.params if p.name == parameter)
    if not isinstance(option, click.Option):
        return parameter.upper()
    return "/".join(max(names, key=len) for names in (option.opts, option.secondary_opts) if names)


def _check(need: Need, context: click.Context) -> None:
    if not given(context, need.option):
        return
    option, other = name(context.command, need.option), name(context.command, need.other)
    value = context.params[need.other]
    if need.values:
        if value not in need.values:
            wanted = " or ".join(f"{other} {v}" for v in need.values)
            raise UsageError(f"{option} needs {wanted}, but it is {value}.", f"Leave out {option}, or change {other}.")
    elif given(context, need.other) is need.never:
        beside = "together with" if need.never else "without"
        remedy = "Leave one of them out." if need.never else f"Add {other}, or leave out {option}."
        raise UsageError(f"{option} has no effect {beside} {other}.", remedy)
