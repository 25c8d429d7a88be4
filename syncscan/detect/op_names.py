"""Names of torch's ops, and questions about calls, that several rules share."""

from __future__ import annotations

from syncscan.detect.call import Call

INDEX_ASSIGNMENTS = ("aten::index_put_", "aten::_index_put_impl_", "aten::index_put")
"""Ops that `x[index] = value` calls."""
INDEXINGS = ("aten::index", "aten::_unsafe_index", *INDEX_ASSIGNMENTS)
"""Ops that `x[index]` calls, reading or writing."""
COALESCES = ("aten::coalesce", "aten::_coalesce")
"""Ops that merge the equal indices of a sparse tensor."""


_CHOICES = ("aten::argmax", "aten::argmin", "aten::multinomial")
"""Ops whose result selects one of several things: an action, a token, a class."""
_VIEWS = ("aten::squeeze", "aten::unsqueeze", "aten::select", "aten::view", "aten::reshape", "aten::detach", "aten::to")
"""Ops between such an op and the read of its result that don't change it."""


def choice(call: Call) -> str:
    """Return the op that chose the value read back, such as `argmax`; empty if something else is read."""
    op = call.nearest_before(lambda op: op not in _VIEWS, 4)
    return op.removeprefix("aten::") if op in _CHOICES else ""


def reads_back(call: Call) -> bool:
    """Return whether the host reads a value of the device: one number, or a copy to the host."""
    return call.scalar or call.point.direction == "DtoH"


def converts_to_a_number(call: Call) -> bool:
    """Return whether Python converted a tensor to a number without `item()` in the program: `int(t)`, `range(t)`."""
    return call.top == "aten::item" and not call.place.called("item")
