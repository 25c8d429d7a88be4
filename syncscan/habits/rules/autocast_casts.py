"""Weights that autocast casts in each pass anew.

## What it finds

Casts under autocast of what has no gradient (frozen weights, and in inference all), and of weights that an earlier pass
of the same step has cast.

## How it shows in the trace

An op under autocast holds itself again, behind the `aten::to`s of what it takes. A cast whose number no
`ToCopyBackward0` bears is of what has no gradient; one is repeated where its node runs right before the gradient is
added in a second backward pass of the step.

## Example

```python
frozen = torch.nn.Linear(64, 64, device=device).requires_grad_(False)
for _ in range(3):
    with torch.autocast(device, torch.bfloat16):
        frozen(torch.ones(8, 64, device=device))
```

## Use instead

```python
frozen = torch.nn.Linear(64, 64, device=device).requires_grad_(False).to(torch.bfloat16)
for _ in range(3):
    with torch.autocast(device, torch.bfloat16):
        frozen(torch.ones(8, 64, device=device))
```

## What it would save

The step is replayed without them. At least those that remain when the first of each op is of its input; casts of less
than 4 % of the step aren't told, for that can't be measured.

## References

- https://docs.pytorch.org/docs/stable/amp.html#torch.autocast
- `cached_cast` in aten/src/ATen/autocast_mode.cpp of PyTorch
- benchmarks/host_stalls.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from syncscan.habits.autocast import Casts, autocast_casts
from syncscan.habits.context import Context
from syncscan.model.arrays import distinct
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.units import duration

ADVICE = Advice(
    rule="autocast-casts",
    area=Area.DEVICE,
    title="Autocast casts the same weights again and again",
    why=(
        "Autocast keeps the cast of a weight only until its outermost region ends, and of a weight without a gradient "
        "not at all: each cast is an op of the host's and a kernel that reads the whole weight."
    ),
    fix=(
        "Cast what isn't trained once, ahead: model.to(torch.bfloat16) for inference, without autocast; the frozen "
        "part of a model that is fine-tuned. Where gradients are accumulated, one autocast around all passes of a "
        "step, and autocast(enabled=False) around each backward."
    ),
    when_fine="When weights change between the passes, or the device has work for as long.",
)

LEAST = 0.04
"""Casts that take less than this part of a step aren't worth a word: two equal steps at the same moment are as far
apart on average on an H200's host, and where 72 casts took 2.4 % of a step, it took as long without them."""


def find(context: Context) -> Iterable[Habit]:
    """Casts in ops under autocast without a gradient, and those that a pass of the same step has made before.

    The least that is saved leaves an op's first cast, which may be of its input.
    """
    casts = autocast_casts(context)
    rows = sorted({*casts.frozen, *casts.repeated}, key=lambda row: int(context.trace.slices.ts[row]))
    if len(rows) < context.count:
        return
    host_us, device_us = _took(context, rows)
    if host_us + device_us < LEAST * context.period_us:
        return
    inputs = set(casts.inputs)
    whole, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        ADVICE,
        rows,
        host_us + device_us,
        _evidence(context, casts, host_us, device_us),
        [whole, replace(whole, unstretched=True), least],
    )


def _took(context: Context, rows: Sequence[int]) -> tuple[float, float]:
    """What these casts take of the host, and of the device, in µs a step."""
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    return context.length_us(rows) * context.host_scale, context.length_us(distinct(work).tolist())


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)


def _evidence(context: Context, casts: Casts, host_us: float, device_us: float) -> list[str]:
    said = []
    if casts.frozen:
        said.append(
            f"{len(casts.frozen) / context.count:.0f} casts a step in {casts.ops / context.count:.0f} ops are of what "
            "has no gradient, which autocast doesn't keep from one pass to the next"
        )
    if casts.repeated:
        said.append(f"{len(casts.repeated) / context.count:.0f} casts a step are of weights that it has cast before")
    said.append(f"they take {duration(host_us)} of the host and {duration(device_us)} of the device")
    return said
