"""Derive what rules need from the names of the ops around a call."""

from __future__ import annotations

import msgspec

from syncscan.facts.paths import PathNames
from syncscan.model.slice_names import is_backward_node, program_op
from syncscan.model.trace import NONE


class OpsAround(msgspec.Struct, frozen=True, eq=False):
    """The ops around a call, by name; calls inside the same ops share the object."""

    names: tuple[str, ...]
    """Outermost first: `aten::index`, `aten::nonzero`."""
    distinct: frozenset[str]
    op: str
    """The op that a user would recognize: the outermost that isn't autograd's own wrapper; empty without ops."""
    top: str
    """The outermost op that does work itself, without wrappers, backward nodes and compiled regions."""
    leaf: str
    """The innermost op; empty without ops."""
    backward: str
    """Name of the autograd node, such as `IndexBackward0`; empty outside of backward."""
    scalar: bool
    """Whether one number is read: by `item()` and everything that uses it."""


def parts_of_chain(path: PathNames) -> OpsAround:
    """Return the parts of a chain of ops and scopes that rules use."""
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
