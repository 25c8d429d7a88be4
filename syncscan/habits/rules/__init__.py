"""The rules that look for habits, one a file, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from syncscan.habits.context import Context
from syncscan.habits.rules import (
    allocation_storm,
    autocast_casts,
    cold_start,
    collate_on_step,
    copy_in_line,
    data_parallel,
    few_workers,
    first_touch,
    fp32_matmul,
    frozen_scope,
    garbage_collection,
    gradients_zeroed,
    host_built,
    inline_pin,
    launch_bound,
    lazy_loading,
    lock_held,
    logging_on_step,
    no_workers,
    optimizer_loop,
    pageable_input,
    parameter_loop,
    progress_bar,
    serial_streams,
    timed_copy,
    timing_sync,
    tokenise_on_step,
)
from syncscan.model.habit import Advice, Habit


class Rule(Protocol):
    """A module that knows one habit.

    Its docstring has a summary line and then, as `## …`, the headings of `habits.documentation.HEADINGS` but for those
    whose words are the advice's.
    """

    ADVICE: Advice

    def find(self, context: Context) -> Iterable[Habit]:
        """The habits of this kind that the trace proves."""
        ...


RULES: tuple[Rule, ...] = (
    timing_sync,
    timed_copy,
    cold_start,
    lazy_loading,
    no_workers,
    few_workers,
    host_built,
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
    tokenise_on_step,
    collate_on_step,
    launch_bound,
    copy_in_line,
    frozen_scope,
    serial_streams,
)
