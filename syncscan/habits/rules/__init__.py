"""The rules that find habits, in the order in which they run; those about one thing share a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from syncscan.habits.context import Context
from syncscan.habits.rules import (
    inputs,
    launch_bound,
    lock_held,
    memory,
    op_setup,
    optimizers,
    precision,
    sampled_work,
)
from syncscan.model.habit import Habit


class HabitRule(msgspec.Struct, frozen=True):
    """A rule for one habit: its texts are the page `rules/habits/ID.md`."""

    id: str
    find: Callable[[Context], Iterable[Habit]]
    """Returns the habits of this kind that the trace proves."""


RULES = (
    HabitRule("op-setup", op_setup.find),
    HabitRule("loader-no-workers", inputs.no_workers),
    HabitRule("loader-few-workers", inputs.few_workers),
    HabitRule("host-built-tensor", inputs.host_built_tensor),
    HabitRule("inline-pin", inputs.inline_pin),
    HabitRule("fp32-matmul", precision.fp32_matmul),
    HabitRule("optimizer-loop", optimizers.optimizer_loop),
    HabitRule("parameter-loop", optimizers.parameter_loop),
    HabitRule("gradients-zeroed", optimizers.gradients_zeroed),
    HabitRule("autocast-casts", precision.autocast_casts),
    HabitRule("garbage-collection", memory.garbage_collection),
    HabitRule("allocation-storm", memory.allocation_storm),
    HabitRule("lock-held", lock_held.find),
    HabitRule("first-touch", memory.first_touch),
    HabitRule("side-work", sampled_work.side_work),
    HabitRule("launch-bound", launch_bound.find),
    HabitRule("copy-in-line", inputs.copy_in_line),
)
