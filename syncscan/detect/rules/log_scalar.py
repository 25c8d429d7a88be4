"""A logger, progress bar or format string reads a value back.

## What it finds

`f'{loss}'`, `tqdm.set_postfix(loss=loss)`, TensorBoard and Weights & Biases scalars, Lightning's
`self.log(prog_bar=True)`.

## Why it stalls

Formatting a device value reads it back; late in a step the wait is for nearly all of the step's work.

## How it shows in the trace

`aten::item` with frames of `Tensor.__format__`, tqdm, wandb, TensorBoard, Lightning or logging; without stacks
`aten::detach` directly before `aten::item`, as `Tensor.__format__` does.

## Example

```python
loss = x.square().mean()
result = f"{loss:.3f}"
```

## Use instead

```python
loss = x.square().mean()
losses = [loss.detach()]  # every step: nothing is read
result = f"{torch.stack(losses).tolist()[-1]:.3f}"  # every some steps: one read for all
```

## When it is fine

Every some steps. One read late in the step costs only the lead that the host has: look at what the step would gain.
To log without waiting, copy into pinned memory with `non_blocking=True`, record an event, and read a step later, when
the event is done.

## Versions

`Tensor.__format__` detaches first in torch 2.11.

## References

- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
- torch/_tensor.py (__format__)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Confidence, Diagnosis

ID = "log-scalar"
NAME = "Logging reads a value back"
CAUSE = Cause.LOG

_LOGGERS = (
    ": __format__",
    ": __repr__",
    "tqdm/",
    "wandb/",
    "tensorboard",
    "logging/",
    "lightning",
    "mlflow",
    "clearml",
    "trackio",
)


def match(call: Call) -> Diagnosis | None:
    """A read-back inside a logger, or in the way that `Tensor.__format__` reads."""
    reads = call.scalar or call.direction == "DtoH"
    formats = not call.frames and call.top == "aten::item" and call.before[-1:] == ("aten::detach",)
    if not (formats or (reads and call.in_library(*_LOGGERS))):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="a value is read back" + (", most likely" if formats else "") + " to be logged",
        why="Formatting a value of the device waits for it and for all work queued before.",
        fix="Collect detached values on the device and read them every some steps with one "
        "torch.stack(values).tolist(); or "
        "copy into pinned memory with non_blocking=True, record an event and read a step later, after the event.",
        when_fine="Every some steps.",
        confidence=Confidence.MEDIUM if formats else Confidence.HIGH,
    )
