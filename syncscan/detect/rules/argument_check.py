"""Match ops that check their arguments on the host, or a function of torch's that does."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_OPS = (
    "aten::corrcoef",
    "aten::cov",
    "aten::istft",
    "aten::normal",
    "aten::normal_",
    "aten::multinomial",
    "aten::poisson",
    "aten::embedding_renorm_",
    "aten::_assert_scalar",
    "aten::cudnn_is_acceptable",
    "aten::_cudnn_init_dropout_state",
)


_FUNCTIONS = ("gaussian_nll_loss",)
"""Functions of torch.nn.functional that ask in Python."""


def match(call: Call) -> Match | None:
    name = call.first(*_OPS) or next((f for f in _FUNCTIONS if call.scalar and call.in_library_function(f)), "")
    if not name:
        return None
    op = name.removeprefix("aten::")
    return Match(variant=op, values={"op": op}, removal=Removal.NOTHING)
