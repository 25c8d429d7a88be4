"""Match anything below `aten::ctc_loss`, or in its backward."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_OPS = ("aten::ctc_loss", "aten::_ctc_loss", "aten::_cudnn_ctc_loss", "aten::_use_cudnn_ctc_loss")


def match(call: Call) -> Match | None:
    if not (call.under(*_OPS) or call.backward.startswith("CtcLossBackward")):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
