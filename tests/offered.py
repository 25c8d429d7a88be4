"""The cases of a test whose command is there: the room of one may have been taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, TypeVar

from syncscan.cli import all_commands

T = TypeVar("T")


def offered(cases: Iterable[T], words: Callable[[Any], str] = itemgetter(0)) -> list[T]:
    """Return the cases whose words begin with a command that there is; by default these are a case's first."""
    commands = all_commands()
    return [case for case in cases if words(case).partition(" ")[0] in commands]
