"""Match a wait that transformers' generation code makes itself, not the model or a mask that it calls."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

_LOOPS = ("_sample", "_beam_search", "_greedy", "_assisted", "_group_beam", "_constrained", "_contrastive", "_dola")
"""Names, or begins of names, of the loops over tokens in transformers/generation/utils.py.

In 5.17 `_sample` asks `StopCheck.__call__`: `bool(unfinished_sequences.max() == 0)`.
"""


def match(call: Call) -> Match | None:
    if not call.decided_in("transformers/generation"):
        return None
    return _each_token(call) if call.in_library_function(*_LOOPS) else _each_call(call)


def _each_token(call: Call) -> Match:
    if call.facts.direction == "HtoD":
        return _each_call(call)
    return Match(
        for_caller=True,
        removal=Removal.NOTHING,
    )


def _each_call(call: Call) -> Match:
    """Match special tokens that become device tensors, and the warnings about them."""
    copies = call.facts.direction == "HtoD"
    return Match(
        variant="call",
        values={"what": "copies special tokens to the device" if copies else "checks its input"},
        cause=Cause.PAGEABLE if copies else Cause.CHECK,
        use=Use.NOTHING if copies else Use.SHOWN,
        for_caller=True,
        removal=Removal.PINNED_COPY if copies else Removal.NOTHING,
    )
