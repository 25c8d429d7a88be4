"""Match an op of nested tensors around the call, or their Python code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    op = call.op_with("nested", "jagged", "aten::to_padded_tensor")
    jagged = "PythonSubclass" in call.ops and call.top in ("aten::unbind", "aten::split_with_sizes", "aten::chunk")
    if not (op or jagged or call.in_library("torch/nested")):
        return None
    what = op.removeprefix("aten::") or "a nested tensor"
    return Match(
        values={"what": what},
        removal=Removal.KERNELS,
    )
