"""A logger, progress bar or format string reads a value back.

## What it finds

`f'{loss}'`, `tqdm.set_postfix(loss=loss)`, TensorBoard and Weights & Biases scalars, Lightning's
`self.log(prog_bar=True)`.

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
result = f"{torch.stack(losses).tolist()[-1]:.3f}"  # every N steps: one read for all
```

## Versions

`Tensor.__format__` detaches first in torch 2.11.

## References

- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization
- torch/_tensor.py (__format__)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.race import RaceKind

ID = "log-scalar"
NAME = "Logging reads a value back"
CAUSE = Cause.LOG
RACE = RaceKind.READ_BEFORE_COPY
WHY = """\
Formatting a value of the device waits for it and for all work queued before; late in a step, that is nearly all of its
work.
"""
WHEN_FINE = """\
Every N steps.

A single read late in the step costs only the time by which the host runs ahead: check what the step would gain. To log
without waiting, copy into pinned memory with `non_blocking=True`, record an event, and read a step later, when the
event is done.
"""

_LOGGERS = (
    *("tqdm", "wandb", "tensorboard", "tensorboardX", "torch/utils/tensorboard", "logging", "mlflow", "clearml"),
    *("trackio", "lightning/pytorch/loggers", "lightning/pytorch/callbacks/progress", "lightning/fabric/loggers"),
    *("pytorch_lightning/loggers", "pytorch_lightning/callbacks/progress", "lightning_fabric/loggers"),
)


def match(call: Call) -> Match | None:
    """Match a read-back inside a logger, or in the way that `Tensor.__format__` reads."""
    formats = not call.has_frames and call.top == "aten::item" and call.before[-1:] == ("aten::detach",)
    if not (
        formats
        or (reads_back(call) and (call.in_library(*_LOGGERS) or call.in_library_function("__format__", "__repr__")))
    ):
        return None
    return Match(
        title="a value is read back" + (", most likely" if formats else "") + " to be logged",
        fix="Collect detached values on the device and read them every N steps with one "
        "torch.stack(values).tolist(); or copy into pinned memory with non_blocking=True, then event.record(), "
        "and read a step later, after event.synchronize().",
        confidence=Confidence.MEDIUM if formats else Confidence.HIGH,
        for_caller=True,
        removal=Removal.NOTHING,
    )
