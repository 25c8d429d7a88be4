"""Match a wait in the code of torch.distributed, not in the module it wraps."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    fsdp = call.facts.synchronizes and not call.ops and call.in_scope("FullyShardedDataParallel._", "FSDP::")
    if not (fsdp or call.in_library("torch/distributed")):
        return None
    return Match(
        removal=Removal.ASYNC_COPY,
    )
