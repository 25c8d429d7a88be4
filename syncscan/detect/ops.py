"""Names of torch's ops, and places in the program, that more than one rule asks for."""

from __future__ import annotations

from syncscan.detect.call import Call

INDEX_ASSIGNMENTS = ("aten::index_put_", "aten::_index_put_impl_", "aten::index_put")
"""What `x[index] = value` calls."""
INDEXINGS = ("aten::index", "aten::_unsafe_index", *INDEX_ASSIGNMENTS)
"""What `x[index]` calls, read or written."""
COALESCES = ("aten::coalesce", "aten::_coalesce")
"""Merging the equal indices of a sparse tensor."""


_CHOICES = ("aten::argmax", "aten::argmin", "aten::multinomial")
"""Ops whose result is which of several things to take: an action, a token, a class."""
_VIEWS = ("aten::squeeze", "aten::unsqueeze", "aten::select", "aten::view", "aten::reshape", "aten::detach", "aten::to")
"""What stands between such an op and the read of its result, and changes nothing of it."""


def choice(call: Call) -> str:
    """The op that chose what is read back, `argmax`; empty where something else is read."""
    made = call.nearest_before(_is_no_view, 4)
    return made.removeprefix("aten::") if made in _CHOICES else ""


def _is_no_view(op: str) -> bool:
    return op not in _VIEWS


def reads_back(call: Call) -> bool:
    """Whether the host reads a value of the device: one number, or a copy to the host."""
    return call.scalar or call.facts.direction == "DtoH"


def converts_to_a_number(call: Call) -> bool:
    """Whether Python turned a tensor into a number without the program calling `item()`: `int(t)`, `range(t)`."""
    return call.top == "aten::item" and not call.called("item")
