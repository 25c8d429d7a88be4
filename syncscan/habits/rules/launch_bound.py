"""A step whose device waits for the host's launches, proven by its time without the profiler or by their number.

## What it finds

Many short kernels in a step that its launches hold for sure: by its time without the profiler, or by their sheer
number.

## How it shows in the trace

Launch after launch on the host, and gaps between the kernels. Only those count that a graph can hold: between two
syncs, with no loader and no other work of the host between. The report tells them by phase, and what stands in the
way of one graph, by its line.

## Example

```python
for _ in range(3):
    result = model(x)
```

## Use instead

Not run: compiling takes longer than a test.

```python
compiled = torch.compile(model, mode="reduce-overhead")
for _ in range(3):
    result = compiled(x)
```

## What it would save

The step is replayed as one graph where that holds all of it, and with its network compiled, which leaves the
optimizer's launches and some µs a parameter.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
- sample_traces/launches, measured: 9.02 → 1.57 ms a step as one graph
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from syncscan.habits.capturable import LEAST_LAUNCHES, Breaks, Capturable, capturable
from syncscan.habits.context import LEAST_NS, Context
from syncscan.habits.graph_readiness import Run, runs_of, segments, splits
from syncscan.habits.said_elsewhere import begun_in, said_elsewhere
from syncscan.model.arrays import Int64
from syncscan.model.finding import Phase
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.trace import Category
from syncscan.model.units import duration

ADVICE = Advice(
    rule="launch-bound",
    area=Area.DEVICE,
    title="The step is bound by its launches",
    why="The host needs longer to launch the step's kernels than the device needs to run them, so the device waits.",
    fix=(
        'torch.compile(mode="reduce-overhead") or a CUDA graph launches all of them at once; larger batches and fused '
        "ops make them fewer."
    ),
    when_fine=(
        "When shapes or control flow change from step to step: graphs need them fixed (to generate, a static cache)."
    ),
)
PARTLY = (
    'torch.compile(model, mode="reduce-overhead") launches the model\'s at once. A wait inside of it ends each graph: '
    "remove that first. What the host does between the model's calls stays."
)
"""The fix where one graph can't hold the whole step."""
SMALL_NS = 50_000
"""Kernels that are longer on average than this aren't held up by their launches."""
WHOLE = 0.95
"""One graph holds a step if it holds this part of its launches."""
CALL_NS, PARAMETER_NS = 100_000, 20_000
"""What a compiled network takes of the host for a pass, and in backward for each parameter, whose gradient is added up
outside of the graph. A network of 96 parameters left 2.3 of its 4.9 ms (H200, torch 2.11, 2026-11-22: `mlp_logged` of
`benchmarks/launches.py`)."""
WORTH_NS = 1_200_000
"""A shorter part isn't worth a compile: a small network under a trainer took longer then (6.9 → 7.5 ms, H200)."""
COSTS, FUSED = (1.0, 1.5, 0.0), (1 / 2, 1.0, 1 / 3)
"""Of what such a call costs, and of the device's work, which a compile fuses and a graph only launches, what is left:
likely, then with the least and with the most saved. A BERT of four layers under a trainer took 8.4 ms instead of 15.4
(H200, torch 2.11), which its launches alone don't explain."""
GRAPH_FUSED = 1 / 2
"""The least that is left of it, gaps and all, where one graph or one compile holds the whole step: a denoiser of 3.5 ms
of kernels and 14.5 ms a step took 2.7 (H200, torch 2.11, 2026-11-22: `denoising` of `benchmarks/launches.py`)."""
STEADY = 0.9
"""The part of a step's launches that is the same in all steps: with less, shapes or control flow change, and no graph
holds them (all of them in 56 recordings of programs that don't change)."""


def find(context: Context) -> Iterable[Habit]:
    """Many short kernels in a step that is held by its launches for sure, as far as graphs can hold them."""
    if not context.launch_bound or context.launch_count < LEAST_LAUNCHES or _steady(context) < STEADY:
        return
    elsewhere = said_elsewhere(context)
    launches, breaks = _launches(context, elsewhere), Breaks.of(context)
    parts = capturable(context, launches, breaks)
    whole = len(parts) <= context.count and sum(len(p.calls) for p in parts) >= WHOLE * len(launches)
    parts = [part for part in parts if whole or part.length_ns * context.host_scale >= WORTH_NS]
    kernels = _kernels(context, _calls(parts))
    if not len(kernels):
        return
    mean_ns = float(context.trace.slices.dur[kernels].mean())
    took = _took(context, parts, elsewhere)
    saved = min(took, context.period_us) - context.length_us(kernels.tolist())
    if mean_ns > SMALL_NS or saved < 5 * context.notable_us:
        return
    runs = runs_of(context, parts, elsewhere)
    habit = context.habit(
        ADVICE if whole else replace(ADVICE, fix=PARTLY),
        [],
        took,
        _evidence(context, parts, took, mean_ns, whole),
        _changes(context, whole, runs),
    )
    yield replace(
        habit,
        segments=segments(context, runs, breaks, partial(_changes, context, False)),
        splits=splits(context, breaks),
    )


def _evidence(context: Context, parts: Sequence[Capturable], took: float, mean_ns: float, whole: bool) -> list[str]:
    count = len(_calls(parts)) / context.count
    return [
        f"{count:.0f} launches a step of kernels of {duration(mean_ns / 1e3)} on average take "
        f"{'' if context.step.unprofiled_us else 'at least '}{duration(took)} of the host",
        _compared(context),
        *([] if whole else [_in_the_way(context, count, len(parts) / context.count)]),
    ]


def _calls(parts: Sequence[Capturable] | Sequence[Run]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *(part.calls for part in parts)])


def _launches(context: Context, elsewhere: Sequence[ThreadInterval]) -> Int64:
    """The calls that launch work, but for those that another habit is about."""
    calls = context.launch_calls
    others: Int64 = calls[~begun_in(context, calls, elsewhere)]
    return others


def _took(context: Context, parts: Sequence[Capturable], elsewhere: Sequence[ThreadInterval]) -> float:
    """Host time of these launches in µs a step; at the least where no unprofiled time is known."""
    if context.step.unprofiled_us is None:
        return sum(len(part.calls) for part in parts) * LEAST_NS / context.count / 1e3
    within = sum(other.end - other.begin for other in elsewhere if any(_holds(part, other) for part in parts))
    return (sum(part.length_ns for part in parts) - within) / context.count / 1e3 * context.host_scale


def _holds(part: Capturable, other: ThreadInterval) -> bool:
    return min(i.begin for i in part.host) <= other.begin and other.end <= max(i.end for i in part.host)


def _changes(context: Context, whole: bool, runs: Sequence[Run]) -> tuple[Change, ...]:
    """The step without these launches: as one graph if that holds all of it, and as a compiled network leaves it.

    An optimizer isn't compiled with its network: only a graph of the whole step spares its launches.
    """
    kernels = _kernels(context, _calls(runs))
    if not whole:
        return tuple(_compiled(context, runs, kernels, k, stay) for k, stay in zip(COSTS, FUSED, strict=True))
    host = tuple(interval for run in runs for interval in run.host)
    work = tuple((row, GRAPH_FUSED) for row in kernels.tolist())
    network = [run for run in runs if run.phase is not Phase.OPTIMIZER]
    return Change(host=host), Change(host=host, work=work), _compiled(context, network, kernels, max(COSTS), 1.0)


def _compiled(context: Context, runs: Sequence[Run], kernels: Int64, costs: float, stay: float) -> Change:
    """Each run a call that takes so many times what one usually does, and the kernels fused."""
    host = (
        interval._replace(begin=min(interval.begin + _call_ns(context, run, costs), interval.end))
        for run in runs
        for interval in run.host
    )
    return Change(host=tuple(host), work=tuple((row, stay) for row in kernels.tolist() if stay < 1.0))


def _call_ns(context: Context, run: Run, costs: float) -> int:
    """What a compiled call takes of the host instead of the run, as recorded."""
    return int(costs * (CALL_NS + PARAMETER_NS * run.parameters) / context.host_scale)


def _kernels(context: Context, calls: Int64) -> Int64:
    """Rows of the kernels that these calls launch."""
    trace = context.trace
    rows = trace.device_rows[trace.slices.category[trace.device_rows] == int(Category.KERNEL)]
    mine: Int64 = rows[np.isin(trace.calls_of(rows), calls)]
    return mine


def _steady(context: Context) -> float:
    """The part of a step's kernels that every step launches, by their names."""
    s, kernels = context.trace.slices, _kernels(context, context.launch_calls)
    if not len(kernels):
        return 0.0
    step = context.step_of(s.ts[context.trace.calls_of(kernels)])
    names, which = np.unique(s.name[kernels], return_inverse=True)
    counts = np.zeros((context.count, len(names)), np.int64)
    np.add.at(counts, (step, which.reshape(-1)), 1)
    return float(counts.min(axis=0).sum() * context.count / len(kernels))


def _in_the_way(context: Context, count: float, parts: float) -> str:
    syncs = sum(f.per_step for f in context.findings)
    return (
        f"one graph can't hold the step's {context.launch_count:.0f} launches: {syncs:.0f} syncs and other work of the "
        f"host lie between them; {count:.0f} lie in {parts:.0f} parts that are worth one"
    )


def _compared(context: Context) -> str:
    busy = f"the device works {duration(context.step.device_busy_us)} of it"
    if context.step.unprofiled_us:
        return f"without the profiler the step takes {duration(context.period_us)}, and {busy}"
    return f"the recorded step takes {duration(context.period_us)}, and {busy}"
