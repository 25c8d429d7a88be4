"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

_FOLDER = "torch/distributed/fsdp/_fully_shard"

_PLACES = (
    # 2.11, _fsdp_param_group.py, finalize_backward: `fsdp_param.grad_offload_event.synchronize()`
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_param_group.py",
        functions=("finalize_backward",),
        title="FSDP2 waits until the gradients are on the host, where the optimizer runs",
        fix="This is intended with CPUOffloadPolicy. Without offload_policy, where memory allows, the optimizer runs "
        "on the device and nothing is copied.",
        cause=Cause.EXPLICIT,
        intended=True,
    ),
    # 2.11, _fsdp_collectives.py, foreach_reduce: `non_blocking = fsdp_param.pin_memory and not to_accumulate_grad`
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_collectives.py",
        functions=("foreach_reduce",),
        direction="DtoH",
        title="FSDP2 copies each gradient to the host synchronously",
        fix="CPUOffloadPolicy(pin_memory=True), the default, copies without a wait, unless gradients accumulate on the "
        "host: optimizer.zero_grad() in each step, and model.set_requires_gradient_sync(False) in all but the last of "
        "accumulated ones.",
        use=Use.NOTHING,
        removal=Removal.ASYNC_COPY,
    ),
    # 2.11, _fsdp_param.py, all_gather_inputs: `sharded_param_data.to(self.device, non_blocking=True)`, on a stream of
    # its own: no wait seen on an H200
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_param.py",
        functions=("all_gather_inputs",),
        direction="HtoD",
        title="FSDP2 copies parameters from pageable memory to the device",
        fix="CPUOffloadPolicy(pin_memory=True), the default: from pinned memory the copy doesn't wait.",
        removal=Removal.PINNED_COPY,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
