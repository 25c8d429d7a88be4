"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

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
    return match_at(call, _PLACES)
