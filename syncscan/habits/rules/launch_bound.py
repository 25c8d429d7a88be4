"""A step whose device waits for the host's launches, proven by its time without the profiler."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import Look
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.trace import Category

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
    """Many short kernels in a step whose time without the profiler is known, and much longer than the device's work."""
    s = look.trace.slices
    work = [int(r) for begin, end in look.spans for r in look.launched((-1, begin, end), any_thread=True)]
    calls = {look.launching(r) for r in work}
    kernels = [r for r in work if s.category[r] == Category.KERNEL]
    if not look.launch_bound or len(calls) < MANY * look.count or not kernels:
        return
    mean_ns = sum(int(s.dur[r]) for r in kernels) / len(kernels)
    saved = min(look.launching_us, look.period_us) - look.step.device_busy_us
    if mean_ns > SMALL_NS or saved < 5 * look.notable_us:
        return
    yield look.habit(
        ADVICE,
        [],
        saved,
        [
            f"{len(calls) / look.count:.0f} launches a step of kernels of {mean_ns / 1e3:.1f} µs on average take "
            f"{look.launching_us / 1e3:.2f} ms of the host",
            f"without the profiler the step takes {look.period_us / 1e3:.2f} ms, "
            f"and the device works {look.step.device_busy_us / 1e3:.2f} ms of it",
        ],
        [Change(queued=True)],
    )
