"""Give rules the facts of a blocking call: ops, scopes and frames around it, and what comes before and after."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import msgspec

from syncscan.detect.blocking_call import BlockingCall
from syncscan.detect.code_place import CodePlace
from syncscan.detect.neighbours import Neighbours
from syncscan.detect.ops_around import OpsAround
from syncscan.facts.paths import Path
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.slice_names import is_optimizer_step
from syncscan.model.trace import NONE, Category, Trace

_NEAR = 64
"""Number of calls to search for the previous one: torch frees its cached blocks one by one."""


class Call(msgspec.Struct, frozen=True, dict=True):
    """A blocking call as rules see it: its facts, and questions about its place in the program."""

    facts: BlockingCall
    trace: Trace
    neighbours: Neighbours
    path: Path
    """The ops and scopes around it."""
    around: OpsAround
    """Names of these ops; rules use the properties below."""
    place: CodePlace
    """Its place in code; rules use the methods below."""
    before: tuple[str, ...]
    """Names of the outermost ops and annotations before it on its thread, the nearest last; up to 64."""
    after: tuple[str, ...]
    """Names of the outermost ops, annotations and runtime calls after it, the nearest first; up to 64."""

    # the ops around it

    @property
    def chain(self) -> tuple[int, ...]:
        """Rows of the ops around it on its thread, outermost first, without annotations."""
        return self.path.ops

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops around it, outermost first: `aten::index`, `aten::nonzero`."""
        return self.around.names

    @property
    def op(self) -> str:
        """The op that a user would recognize: the outermost that isn't autograd's own wrapper; empty without ops."""
        return self.around.op

    @property
    def top(self) -> str:
        """The outermost op that does work itself, without wrappers, backward nodes and compiled regions."""
        return self.around.top

    @property
    def leaf(self) -> str:
        """The innermost op; empty without ops."""
        return self.around.leaf

    @property
    def backward(self) -> str:
        """Name of the autograd node around it, such as `IndexBackward0`; empty outside of backward."""
        return self.around.backward

    @property
    def scalar(self) -> bool:
        """Whether it waits for one number: `item()` and everything that uses it."""
        return self.around.scalar

    def under(self, *names: str) -> bool:
        """Return whether any op around it has one of these names."""
        return not self.around.distinct.isdisjoint(names)

    def first(self, *names: str) -> str:
        """Return the outermost op around it with one of these names; empty without one."""
        return next((op for op in self.ops if op in names), "") if self.under(*names) else ""

    def op_with(self, *parts: str) -> str:
        """Return the outermost op around it whose name contains one of these texts; empty without one."""
        for op in self.around.names:
            for part in parts:
                if part in op:
                    return op
        return ""

    @property
    def dry(self) -> bool:
        """Whether nothing was timed: ops that follow at once then belong to the same call for certain."""
        return self.trace.info.capture.pretended

    def copies_at_most(self, size: int) -> bool:
        """Return whether its copy has at most this many bytes; True without a copy."""
        return self.facts.bytes <= size

    # scopes around it, without the profiler's steps

    def in_scope(self, *parts: str) -> bool:
        """Return whether the name of any annotation around it contains one of these texts."""
        return self.place.in_scope(*parts)

    def scope_that(self, predicate: Callable[[str], bool]) -> str:
        """Return the outermost annotation around it that satisfies `predicate`; empty without one."""
        return self.place.scope_that(predicate)

    def directly_in_scope(self, name: str) -> bool:
        """Return whether the innermost annotation around it has this name."""
        return self.place.directly_in_scope(name)

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

    @property
    def has_frames(self) -> bool:
        """Whether the profiler or capture recorded its stack."""
        return self.place.has_frames

    @property
    def has_python_frames(self) -> bool:
        """Whether its stack has Python frames, besides C functions and modules."""
        return self.place.has_python_frames

    def called(self, *methods: str) -> bool:
        """Return whether the innermost frame is a C function or method with one of these names (`item`, `tolist`)."""
        return self.place.called(*methods)

    def in_frame(self, *packages: str) -> bool:
        """Return whether any Python frame is in one of these packages or files, such as `torch/utils/benchmark`."""
        return self.place.in_frame(*packages)

    def in_function(self, *names: str) -> bool:
        """Return whether the function of any Python frame has, or begins with, one of these names."""
        return self.place.in_function(*names)

    # library frames between the program's own innermost frame and the call

    def in_library(self, *packages: str) -> bool:
        """Return whether a library frame is in one of these packages or files, such as `torch/distributions`."""
        return self.place.in_library(*packages)

    def in_library_function(self, *names: str) -> bool:
        """Return whether the function of a library frame has, or begins with, one of these names."""
        return self.place.in_library_function(*names)

    def in_library_function_of(self, *names: str, files: tuple[str, ...] = ("",)) -> bool:
        """Return whether the function of a library frame has one of these names."""
        return self.place.in_library_function_of(*names, files=files)

    def functions_in_library(self, package: str) -> tuple[str, ...]:
        """Return the functions of the library frames in this package, outermost first."""
        return self.place.functions_in_library(package)

    def decided_in(self, package: str) -> bool:
        """Return whether the innermost library frame that doesn't merely forward the call is in this package."""
        return self.place.decided_in(package)

    @property
    def deciding_function(self) -> str | None:
        """Function of the innermost library frame that doesn't merely forward the call, or None."""
        return self.place.deciding_function

    @property
    def stands_in(self) -> str:
        """Function of a library other than torch that makes the call, as `covar_dist of gpytorch`; else empty."""
        return self.place.stands_in

    # what came before and after it on its thread

    def nearest_before(self, predicate: Callable[[str], bool], most: int) -> str:
        """Return the nearest of the last `most` names of `before` that satisfies `predicate`; empty without one."""
        return next(filter(predicate, self.before[: -most - 1 : -1]), "")

    def nearest_after(self, predicate: Callable[[str], bool], most: int) -> str:
        """Return the nearest of the first `most` names of `after` that satisfies `predicate`; empty without one."""
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
        return bool(self.chain) and self.neighbours.first_begins[self.leaf] == self.trace.slices.ts[self.chain[-1]]

    @property
    def call_before(self) -> str:
        """Name of the runtime call before it in the same op, skipping synchronizes and calls of its own name."""
        parent, rows = self.trace.slices.parent, range(self.facts.rows[0] - 1, -1, -1)
        names = (self.trace.name(row) for row in takewhile(lambda row: parent[row] == self.facts.around, rows[:_NEAR]))
        return next((name for name in names if name != self.facts.apis[0] and not is_synchronize(name)), "")

    def followed_within(self, ns: int) -> bool:
        """Return whether the next op, annotation or runtime call began within `ns` after it or the op around it."""
        start = self.neighbours.next_start(self.facts.track, self._returned)
        return start is not None and start - self._returned <= ns

    @property
    def since_scope(self) -> tuple[str, ...]:
        """Names of the outermost ops and annotations that began since the innermost annotation around it."""
        slices = self.trace.slices
        annotations = [row for row in self.path.rows if slices.category.item(row) == Category.ANNOTATION]
        opened = int(slices.ts[annotations[-1]]) if annotations else 0
        return self.neighbours.between(self.facts.track, opened + 1, self.facts.ts)

    @property
    def _returned(self) -> int:
        """When the program continues: the end of the op that it called, or of the call itself."""
        return self.facts.end if self.path.worker == NONE else self.trace.slices.end.item(self.path.worker)


__all__ = ["Call"]
