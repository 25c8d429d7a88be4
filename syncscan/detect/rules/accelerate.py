"""accelerate copies batches to the device with a wait.

## What it finds

The batches of a prepared data loader, unless `non_blocking` is on, and of transformers' `Trainer`, which uses one.

## How it shows in the trace

Frames of `accelerate/utils/operations.py`, `send_to_device`, around a copy to the device and a synchronise.

## Example

```python
from accelerate import Accelerator
result = Accelerator()
```

## Use instead

Not run: it takes accelerate.

```python
from accelerate import Accelerator, DataLoaderConfiguration
result = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))
```

## Versions

`DataLoaderConfiguration.non_blocking` is False by default. Seen in traces of accelerate 1.

## References

- https://huggingface.co/docs/accelerate/package_reference/utilities
- accelerate/utils/operations.py (send_to_device)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "accelerate"
NAME = "accelerate copies batches with a wait"
CAUSE = Cause.PAGEABLE
WHY = """\
`send_to_device` calls `tensor.to(device, non_blocking=False)`, which ends in a synchronise: the host waits for the copy
and for all work queued before.
"""
WHEN_FINE = """\
Where a batch is one small tensor.

The loader has to pin (`pin_memory=True`), else the copy waits all the same.
"""

_PLACES = (
    # operations.py, send_to_device: `tensor.to(device, non_blocking=non_blocking)`, False unless configured
    LibraryPlace(
        file="accelerate/utils/operations.py",
        functions=("send_to_device",),
        direction="HtoD",
        title="accelerate copies the batch to the device and waits for it",
        fix="Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True)), in transformers "
        "TrainingArguments(accelerator_config={'non_blocking': True}), with pin_memory=True in the loader "
        "(dataloader_pin_memory, on by default); don't change a batch on the host until the copy has run.",
        removal=Removal.ASYNC_COPY,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
