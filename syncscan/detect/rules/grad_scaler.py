"""Match a read-back between unscaling and the optimizer's step, or inside the scaler's code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.slice_names import is_optimizer_step

_SCALERS = (
    "torch/amp/grad_scaler.py",
    "torch/cuda/amp/grad_scaler.py",
    "torch/distributed/fsdp/sharded_grad_scaler.py",
)
_UNSCALE = ("aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_non_finite_check_and_unscale_")


def match(call: Call) -> Match | None:
    if not (call.in_library(*_SCALERS) or _scaled(call)):
        return None
    return Match(
        removal=Removal.NOTHING,
    )


def _scaled(call: Call) -> bool:
    """Return whether a number is read between unscaling and the optimizer's step."""
    read = call.scalar and call.top == "aten::item" and any(n in call.before for n in _UNSCALE)
    return read and bool(call.nearest_after(_goes_on, 6))


def _goes_on(name: str) -> bool:
    return is_optimizer_step(name) or name == "aten::_amp_update_scale_"
