"""Weights that autocast casts again in each pass.

## What it finds

Casts under autocast of tensors without gradients (frozen weights; in inference, all), and of weights that an earlier
pass of the same step has already cast.

## How it shows in the trace

An op under autocast contains itself, after the `aten::to`s of its inputs. A cast is of a tensor without gradient if no
`ToCopyBackward0` has its sequence number; it is repeated if its node runs right before the gradient is added in a
second backward pass of the step.

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

The step is replayed without these casts. The lower bound keeps the first cast of each op, which may be of its input.
Casts of less than 4 % of the step aren't reported, since that can't be measured.

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
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="autocast-casts",
    area=Area.DEVICE,
    title="Autocast casts the same weights repeatedly",
    why=(
        "Autocast caches the cast of a weight only until its outermost region ends, and doesn't cache tensors "
        "without gradients: each cast is an op on the host and a kernel that reads the whole weight."
    ),
    fix=(
        "Cast untrained weights once, in advance: model.to(torch.bfloat16) for inference, without autocast; the frozen "
        "part of a fine-tuned model. With gradient accumulation, one autocast around all passes of a "
        "step, and autocast(enabled=False) around each backward."
    ),
    when_fine="When weights change between the passes, or the device is busy meanwhile.",
)

LEAST = 0.04
"""Least part of a step for casts to be reported: two equal steps differ by as much on average on an H200's host, and
where 72 casts took 2.4 % of a step, it took as long without them."""


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for casts of tensors without gradient and for repeated casts of a step.

    The lower bound keeps an op's first cast, which may be of its input.
    """
    casts = autocast_casts(context)
    rows = sorted({*casts.frozen, *casts.repeated}, key=lambda row: int(context.trace.slices.ts[row]))
    if len(rows) < context.count:
        return
    host_us, device_us = _took(context, rows)
    if host_us + device_us < LEAST * context.period_us:
        return
    inputs = set(casts.inputs)
    without_all, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        ADVICE,
        rows,
        host_us + device_us,
        _evidence(context, casts, host_us, device_us),
        [without_all, replace(without_all, unstretched=True), least],
    )


def _took(context: Context, rows: Sequence[int]) -> tuple[float, float]:
    """Return the host and device time of these casts, in µs per step."""
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    return context.length_us(rows) * context.host_scale, context.length_us(distinct(work).tolist())


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)


def _evidence(context: Context, casts: Casts, host_us: float, device_us: float) -> list[str]:
    sentences = []
    if casts.frozen:
        sentences.append(
            f"{len(casts.frozen) / context.count:.0f} casts per step in {casts.ops / context.count:.0f} ops cast "
            "tensors without gradients, which autocast doesn't cache"
        )
    if casts.repeated:
        sentences.append(f"{len(casts.repeated) / context.count:.0f} casts per step repeat an earlier cast")
    sentences.append(f"they take {duration(host_us)} of host time and {duration(device_us)} of device time")
    return sentences
