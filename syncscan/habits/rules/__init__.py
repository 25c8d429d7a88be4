"""The rules that find habits, in the order in which they run; those about one thing share a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from syncscan.habits.context import Context
from syncscan.habits.rules import (
    allocation_storm,
    autocast_casts,
    first_touch,
    fp32_matmul,
    garbage_collection,
    input_copies,
    launch_bound,
    loaders,
    lock_held,
    op_setup,
    optimizers,
    parameter_loops,
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
    HabitRule("loader-no-workers", loaders.no_workers),
    HabitRule("loader-few-workers", loaders.few_workers),
    HabitRule("host-built-tensor", input_copies.host_built_tensor),
    HabitRule("inline-pin", input_copies.inline_pin),
    HabitRule("fp32-matmul", fp32_matmul.find),
    HabitRule("optimizer-loop", optimizers.optimizer_loop),
    HabitRule("parameter-loop", parameter_loops.parameter_loop),
    HabitRule("gradients-zeroed", optimizers.gradients_zeroed),
    HabitRule("autocast-casts", autocast_casts.find),
    HabitRule("garbage-collection", garbage_collection.find),
    HabitRule("allocation-storm", allocation_storm.find),
    HabitRule("lock-held", lock_held.find),
    HabitRule("first-touch", first_touch.find),
    HabitRule("side-work", sampled_work.side_work),
    HabitRule("launch-bound", launch_bound.find),
    HabitRule("copy-in-line", input_copies.copy_in_line),
)
