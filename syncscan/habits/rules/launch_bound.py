"""A step whose device waits for the host's launches, proven by its time without the profiler or by their number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.look import LEAST_NS, Look
from syncscan.model.habit import Advice, Area, Change, Habit
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


def find(look: Look) -> Iterable[Habit]:
    """Many short kernels in a step that is held by its launches for sure."""
    if not look.launch_bound:
        return
    s = look.trace.slices
    work = np.concatenate([look.launched((NONE, begin, end), any_thread=True) for begin, end in look.spans])
    kernels = work[s.category[work] == int(Category.KERNEL)]
    if look.launch_count < MANY or not len(kernels):
        return
    mean_ns = float(s.dur[kernels].mean())
    needed = look.launching_us if look.step.unprofiled_us else look.launch_count * LEAST_NS / 1e3
    saved = min(needed, look.period_us) - look.step.device_busy_us
    if mean_ns > SMALL_NS or saved < 5 * look.notable_us:
        return
    yield look.habit(
        ADVICE,
        [],
        saved,
        [
            f"{look.launch_count:.0f} launches a step of kernels of {mean_ns / 1e3:.1f} µs on average take "
            f"{'' if look.step.unprofiled_us else 'at least '}{needed / 1e3:.2f} ms of the host",
            _compared(look),
        ],
        [Change(queued=True)],
    )


def _compared(look: Look) -> str:
    busy = f"the device works {look.step.device_busy_us / 1e3:.2f} ms of it"
    if look.step.unprofiled_us:
        return f"without the profiler the step takes {look.period_us / 1e3:.2f} ms, and {busy}"
    return f"the recorded step takes {look.period_us / 1e3:.2f} ms, and {busy}"
