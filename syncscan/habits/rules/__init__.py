"""The rules that find habits, one per file, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from syncscan.habits.context import Context
from syncscan.habits.rules import (
    allocation_storm,
    autocast_casts,
    collate_on_step,
    copy_in_line,
    data_parallel,
    first_touch,
    fp32_matmul,
    frozen_scope_in_line,
    garbage_collection,
    gradients_zeroed,
    host_built_tensor,
    inline_pin,
    launch_bound,
    lazy_loading,
    loader_few_workers,
    loader_no_workers,
    lock_held,
    logging_on_step,
    no_warm_up,
    op_setup,
    optimizer_loop,
    pageable_input,
    parameter_loop,
    progress_bar,
    streams_in_turn,
    timed_transfer,
    timing_sync_in_loop,
    tokenize_on_step,
)
from syncscan.model.habit import Advice, Habit


class HabitRule(Protocol):
    """A module with a rule for one habit; its file name is the habit's id with underscores.

    Its docstring has a summary line and then, as `## …`, the headings of `habits.documentation.HEADINGS` except those
    that the advice fills in.
    """

    ADVICE: Advice

    def find(self, context: Context) -> Iterable[Habit]:
        """Return the habits of this kind that the trace proves."""
        ...


RULES: tuple[HabitRule, ...] = (
    timing_sync_in_loop,
    timed_transfer,
    no_warm_up,
    lazy_loading,
    op_setup,
    loader_no_workers,
    loader_few_workers,
    host_built_tensor,
    pageable_input,
    inline_pin,
    data_parallel,
    fp32_matmul,
    optimizer_loop,
    parameter_loop,
    gradients_zeroed,
    autocast_casts,
    garbage_collection,
    allocation_storm,
    lock_held,
    first_touch,
    progress_bar,
    logging_on_step,
    tokenize_on_step,
    collate_on_step,
    launch_bound,
    copy_in_line,
    frozen_scope_in_line,
    streams_in_turn,
)
