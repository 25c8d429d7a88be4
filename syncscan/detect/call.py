"""Give rules the facts of a blocking call: ops, scopes and frames around it, and what comes before and after."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import takewhile

import msgspec

from syncscan.detect.code_place import CodePlace
from syncscan.detect.neighbours import Neighbours
from syncscan.facts.paths import Path
from syncscan.model.finding import SyncPoint
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.slice_names import is_backward_node, is_optimizer_step, program_op
from syncscan.model.trace import NONE, Category, Trace

_NEAR = 64
"""Number of calls to search for the previous one: torch frees its cached blocks one by one."""


class Call(msgspec.Struct, frozen=True, dict=True):
    """A blocking call as rules see it: the sync point that it is, and questions about its place in the program."""

    point: SyncPoint
    trace: Trace
    neighbours: Neighbours
    path: Path
    """The ops and scopes around it."""
    place: CodePlace
    before: tuple[str, ...]
    """Names of the outermost ops and annotations before it on its thread, the nearest last; up to 64."""
    after: tuple[str, ...]
    """Names of the outermost ops, annotations and runtime calls after it, the nearest first; up to 64."""

    # the ops around it

    @property
    def ops(self) -> tuple[str, ...]:
        """Outermost first: `aten::index`, `aten::nonzero`."""
        return self.path.names.ops

    @cached_property
    def op(self) -> str:
        """The op that a user would recognize: the outermost that isn't autograd's own wrapper; empty without ops."""
        return program_op(self.ops)

    @cached_property
    def top(self) -> str:
        """The outermost op that does work itself, without wrappers, backward nodes and compiled regions."""
        return self.ops[self.path.names.worker] if self.path.names.worker != NONE else ""

    @cached_property
    def leaf(self) -> str:
        return self.ops[-1] if self.ops else ""

    @cached_property
    def backward(self) -> str:
        """Name of the autograd node around it, such as `IndexBackward0`; empty outside of backward."""
        return next(filter(is_backward_node, self.ops), "")

    @cached_property
    def scalar(self) -> bool:
        """Whether it waits for one number: `item()` and everything that uses it."""
        return "aten::_local_scalar_dense" in self.ops

    def under(self, *names: str) -> bool:
        return any(op in names for op in self.ops)

    def first(self, *names: str) -> str:
        """Return the outermost op around it with one of these names; empty without one."""
        return next((op for op in self.ops if op in names), "")

    def op_with(self, *parts: str) -> str:
        """Return the outermost op around it whose name contains one of these texts; empty without one."""
        return next((op for op in self.ops if any(part in op for part in parts)), "")

    @property
    def dry(self) -> bool:
        """Whether nothing was timed: ops that follow at once then belong to the same call for certain."""
        return self.trace.info.capture.pretended

    def copies_at_most(self, size: int) -> bool:
        """Return whether its copy has at most this many bytes; True without a copy."""
        return self.point.bytes <= size

    @property
    def in_closure(self) -> bool:
        """Whether backward runs in the optimizer's step around it, that is, in a closure and so in the program.

        Lightning runs the whole training step in one, and LBFGS its argument.
        """
        slices = self.trace.slices
        row = next(
            (r for r, name in zip(self.path.rows, self.path.names.every, strict=True) if is_optimizer_step(name)),
            NONE,
        )
        return row != NONE and self.neighbours.goes_backward(int(slices.ts[row]), int(slices.end[row]))

    # the Python frames around it

    @property
    def profiled(self) -> bool:
        """Whether the trace has the profiler's own stacks, which have C functions besides Python's."""
        return len(self.trace.frames) > 0

    # what came before and after it on its thread

    def nearest_before(self, predicate: Callable[[str], bool], most: int) -> str:
        """Return the nearest of the last `most` names of `before` that satisfies `predicate`; empty without one."""
        return next(filter(predicate, self.before[: -most - 1 : -1]), "")

    def nearest_after(self, predicate: Callable[[str], bool], most: int) -> str:
        return next(filter(predicate, self.after[:most]), "")

    def last_before_but(self, op: str) -> str:
        """Return the nearest name of `before` other than this op; empty without one."""
        return next((name for name in reversed(self.before) if name != op), "")

    def since(self, ops: tuple[str, ...], most: int) -> tuple[str, ...] | None:
        """Return the names after the last occurrence of these ops in the last `most` of `before`, or None."""
        names = self.before[-most:]
        if ops[-1] not in names:
            return None
        ends = (at for at in range(len(names), len(ops) - 1, -1) if names[at - len(ops) : at] == ops)
        end = next(ends, None)
        return None if end is None else names[end:]

    @property
    def first_run(self) -> bool:
        """Whether the innermost op around it runs for the first time in the trace."""
        rows = self.path.ops
        return bool(rows) and self.neighbours.first_begins[self.leaf] == self.trace.slices.ts[rows[-1]]

    @property
    def call_before(self) -> str:
        """Name of the runtime call before it in the same op, skipping synchronizes and calls of its own name."""
        parent, rows = self.trace.slices.parent, range(self.point.calls[0] - 1, -1, -1)
        names = (self.trace.name(row) for row in takewhile(lambda row: parent[row] == self.point.around, rows[:_NEAR]))
        return next((name for name in names if name != self.point.apis[0] and not is_synchronize(name)), "")

    def followed_within(self, ns: int) -> bool:
        """Return whether the next op, annotation or runtime call began within `ns` after it or the op around it."""
        start = self.neighbours.next_start(self.point.track, self._returned)
        return start is not None and start - self._returned <= ns

    @property
    def since_scope(self) -> tuple[str, ...]:
        """Names of the outermost ops and annotations that began since the innermost annotation around it."""
        slices = self.trace.slices
        annotations = [row for row in self.path.rows if slices.category.item(row) == Category.ANNOTATION]
        opened = int(slices.ts[annotations[-1]]) if annotations else 0
        return self.neighbours.between(self.point.track, opened + 1, self.point.ts)

    @property
    def _returned(self) -> int:
        """When the program continues: the end of the op that it called, or of the call itself."""
        return self.point.end if self.path.worker == NONE else self.trace.slices.end.item(self.path.worker)
