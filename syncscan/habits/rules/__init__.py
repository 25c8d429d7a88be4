"""The rules that find habits, in the order in which they run; those about one thing share a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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

RULES: dict[str, Callable[[Context], Iterable[Habit]]] = {
    "op-setup": op_setup.find,
    "loader-no-workers": inputs.no_workers,
    "loader-few-workers": inputs.few_workers,
    "host-built-tensor": inputs.host_built_tensor,
    "inline-pin": inputs.inline_pin,
    "fp32-matmul": precision.fp32_matmul,
    "optimizer-loop": optimizers.optimizer_loop,
    "parameter-loop": optimizers.parameter_loops,
    "gradients-zeroed": optimizers.gradients_zeroed,
    "autocast-casts": precision.autocast_casts,
    "garbage-collection": memory.garbage_collection,
    "allocation-storm": memory.allocation_storm,
    "lock-held": lock_held.find,
    "first-touch": memory.first_touch,
    "side-work": sampled_work.side_work,
    "launch-bound": launch_bound.find,
    "copy-in-line": inputs.copy_in_line,
}
"""A function by the name of each habit's page (`rules/habits/NAME.md`), which returns those that the trace proves."""
