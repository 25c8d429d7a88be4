"""Names of torch's ops, and places in the program, that more than one rule asks for."""

from __future__ import annotations

from syncscan.detect.call import Call

INDEX_ASSIGNMENTS = ("aten::index_put_", "aten::_index_put_impl_", "aten::index_put")
"""What `x[index] = value` calls."""
INDEXINGS = ("aten::index", "aten::_unsafe_index", *INDEX_ASSIGNMENTS)
"""What `x[index]` calls, read or written."""
COALESCES = ("aten::coalesce", "aten::_coalesce")
"""Merging the equal indices of a sparse tensor."""


def reads_back(call: Call) -> bool:
    """Whether the host reads a value of the device: one number, or a copy to the host."""
    return call.scalar or call.facts.direction == "DtoH"


def converts_to_a_number(call: Call) -> bool:
    """Whether Python turned a tensor into a number without the program calling `item()`: `int(t)`, `range(t)`."""
    return call.top == "aten::item" and not call.called("item")
