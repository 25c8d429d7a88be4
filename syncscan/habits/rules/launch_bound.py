"""A step whose device waits for the host's launches, proven by its time without the profiler or by their number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import LEAST_NS, Context
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.trace import NONE, Category

ADVICE = Advice(
    rule="launch-bound",
    area=Area.DEVICE,
    title="The step is bound by its launches",
    why="The host needs longer to launch the step's kernels than the device needs to run them, so the device waits.",
    fix=(
        'torch.compile(mode="reduce-overhead") or a CUDA graph launches all of them at once; larger batches and fused '
        "ops make them fewer."
    ),
    when_fine="When shapes or control flow change from step to step: graphs need them fixed.",
)
SMALL_NS, MANY = 50_000, 50


def find(context: Context) -> Iterable[Habit]:
    """Many short kernels in a step that is held by its launches for sure."""
    if not context.launch_bound:
        return
    s = context.trace.slices
    work = np.concatenate(
        [context.launched(ThreadInterval(NONE, begin, end), any_thread=True) for begin, end in context.steps]
    )
    kernels = work[s.category[work] == int(Category.KERNEL)]
    if context.launch_count < MANY or not len(kernels):
        return
    mean_ns = float(s.dur[kernels].mean())
    needed = context.launching_us if context.step.unprofiled_us else context.launch_count * LEAST_NS / 1e3
    saved = min(needed, context.period_us) - context.step.device_busy_us
    if mean_ns > SMALL_NS or saved < 5 * context.notable_us:
        return
    yield context.habit(
        ADVICE,
        [],
        saved,
        [
            f"{context.launch_count:.0f} launches a step of kernels of {mean_ns / 1e3:.1f} µs on average take "
            f"{'' if context.step.unprofiled_us else 'at least '}{needed / 1e3:.2f} ms of the host",
            _compared(context),
        ],
        [Change(queued=True)],
    )


def _compared(context: Context) -> str:
    busy = f"the device works {context.step.device_busy_us / 1e3:.2f} ms of it"
    if context.step.unprofiled_us:
        return f"without the profiler the step takes {context.period_us / 1e3:.2f} ms, and {busy}"
    return f"the recorded step takes {context.period_us / 1e3:.2f} ms, and {busy}"
