"""The rules that find habits, one per file, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

import msgspec

from syncscan.habits.context import Context
from syncscan.model.habit import Habit


class HabitRule(msgspec.Struct, frozen=True):
    """A rule for one habit: its texts are the page `rules/habits/ID.md`."""

    id: str
    find: Callable[[Context], Iterable[Habit]]
    """Returns the habits of this kind that the trace proves."""


ORDER = (
    "op-setup",
    "loader-no-workers",
    "loader-few-workers",
    "host-built-tensor",
    "pageable-input",
    "inline-pin",
    "fp32-matmul",
    "optimizer-loop",
    "parameter-loop",
    "gradients-zeroed",
    "autocast-casts",
    "garbage-collection",
    "allocation-storm",
    "lock-held",
    "first-touch",
    "side-work",
    "launch-bound",
    "copy-in-line",
)
"""Ids of the habits."""


RULES = tuple(HabitRule(id, import_module(f"{__name__}.{id.replace('-', '_')}").find) for id in ORDER)
"""Each one's `find` is that of the module of its name beside this file."""
