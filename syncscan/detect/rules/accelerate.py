"""accelerate copies batches to the device synchronously.

## What it finds

The batches of a prepared data loader, unless `non_blocking` is on, and of transformers' `Trainer`, which uses one;
sizes that `pad_across_processes` exchanges, and `check_trigger`.

## How it shows in the trace

Frames of `accelerate/utils/operations.py`, `send_to_device`, around a copy to the device and a synchronize; of
`_pad_across_processes` around a copy to the host.

## Example

```python
from accelerate import Accelerator
result = Accelerator()
```

## Use instead

Not run: this needs accelerate.

```python
from accelerate import Accelerator, DataLoaderConfiguration
result = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))
```

## Versions

`DataLoaderConfiguration.non_blocking` is False by default. Checked in the source of accelerate 1.15, and measured.

## References

- https://huggingface.co/docs/accelerate/package_reference/utilities
- accelerate/utils/operations.py (send_to_device, pad_across_processes), accelerate/utils/dataclasses.py
  (DataLoaderConfiguration), accelerate/data_loader.py (DataLoaderShard.__iter__)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

ID = "accelerate"
NAME = "accelerate copies batches synchronously"
CAUSE = Cause.PAGEABLE
RACE = RaceKind.WRITE_BEFORE_COPY
WHY = """\
`send_to_device` calls `tensor.to(device, non_blocking=False)`, which ends in a synchronize: the host waits for the copy
and for all work queued before.
"""
WHEN_FINE = """\
When a batch is one small tensor.

The loader has to pin memory (`pin_memory=True`); otherwise the copy still waits.
"""

_PLACES = (
    # 1.15, operations.py, send_to_device: `tensor.to(device, non_blocking=non_blocking)`, which
    # data_loader.py, DataLoaderShard.__iter__ calls with `self._non_blocking`, False unless configured
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
    # 1.15, operations.py, pad_across_processes: `sizes = gather(size).cpu()`
    LibraryPlace(
        file="accelerate/utils/operations.py",
        functions=("_pad_across_processes",),
        direction="DtoH",
        title="accelerate reads the sizes of all ranks to pad to the largest",
        fix="Pad to one length in the collator, and call gather() or gather_for_metrics() only: no sizes "
        "are exchanged without pad_across_processes.",
        cause=Cause.DIST,
    ),
    # 1.15, accelerator.py, check_trigger: `flag_tensor.item() >= 1`
    LibraryPlace(
        file="accelerate/accelerator.py",
        functions=("check_trigger",),
        direction="DtoH",
        title="accelerate checks whether any rank has set its trigger",
        fix="Call accelerator.check_trigger() every N steps.",
        cause=Cause.DIST,
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
