"""From the names of the ops around a call to the parts of that chain that rules ask for."""

from __future__ import annotations

import msgspec

from syncscan.facts.paths import PathNames
from syncscan.model.names import is_backward_node, program_op
from syncscan.model.trace import NONE


class OpsAround(msgspec.Struct, frozen=True, eq=False):
    """The ops around a call, by name; calls inside the same ops share the object."""

    names: tuple[str, ...]
    """Outermost first: `aten::index`, `aten::nonzero`."""
    distinct: frozenset[str]
    op: str
    """The op a user would recognize: the outermost one that isn't autograd's own wrapper; empty without ops."""
    top: str
    """The outermost op that does work itself: wrappers, backward nodes and compiled regions are passed over."""
    leaf: str
    """The innermost op; empty without ops."""
    backward: str
    """The name of the autograd node, e.g. `IndexBackward0`; empty outside of a backward pass."""
    scalar: bool
    """Whether one number is read: by `item()` and everything that goes through it."""


def parts_of_chain(path: PathNames) -> OpsAround:
    """Return the parts of a chain of ops and scopes."""
    names = path.ops
    return OpsAround(
        names=names,
        distinct=frozenset(names),
        op=program_op(names),
        top=names[path.worker] if path.worker != NONE else "",
        leaf=names[-1] if names else "",
        backward=next(filter(is_backward_node, names), ""),
        scalar="aten::_local_scalar_dense" in names,
    )


__all__ = ["OpsAround", "parts_of_chain"]
