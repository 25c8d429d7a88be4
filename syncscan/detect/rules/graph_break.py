"""Match a read-back that runs eagerly in a compiled region, between two, or in a function left to eager."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_compiled_graph, is_compiled_region

_WRAPPER = "torch/_dynamo/eval_frame.py"
_READS = {
    "aten::item": Cause.READBACK,
    "aten::to": Cause.READBACK,
    "aten::is_nonzero": Cause.CTRL,
    "aten::nonzero": Cause.SHAPE,
}
"""Read-backs that Dynamo leaves to eager mode, and the cause of each."""


def match(call: Call) -> Match | None:
    if call.top not in _READS or call.facts.direction == "HtoD":
        return None
    if not (_inside(call) or _between(call) or _left_to_eager(call)):
        return None
    broken = _inside(call) or _between(call)
    return Match(
        values={"does": "breaks the compiled graph in two" if broken else "keeps a function from being compiled"},
        cause=_READS[call.top],
        removal=Removal.NOTHING,
    )


def _inside(call: Call) -> bool:
    """Return whether it runs eagerly inside a region."""
    return any(map(is_compiled_region, call.ops)) and not any(map(is_compiled_graph, call.ops))


def _left_to_eager(call: Call) -> bool:
    """Return whether compiled code calls it outside of a region: a break in a loop leaves the whole function eager.

    Dynamo's wrapper stands in the stack above the function: `compile_wrapper` of torch/_dynamo/eval_frame.py. What
    `torch.compiler.disable` wraps stands below `_fn` there, and was meant to run eagerly; so stood both before 2.9.
    """
    wrappers = [frame.function for frame in call.place.python_frames if frame.file.endswith(_WRAPPER)]
    left = bool(wrappers) and wrappers[-1] == "compile_wrapper"
    return left and not any(map(is_compiled_region, call.ops)) and not call.backward


def _between(call: Call) -> bool:
    """Return whether one region ran before it and another one runs after it."""
    before = call.nearest_before(is_compiled_region, 8)
    return bool(before) and call.nearest_after(is_compiled_region, 8) not in ("", before)
