"""From a blocking call and its trace to what rules may ask of it: the ops, scopes and frames around, what follows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import msgspec

from syncscan.detect.blocking_call import BlockingCall
from syncscan.detect.code_place import CodePlace
from syncscan.detect.neighbours import Neighbours
from syncscan.detect.ops_around import OpsAround
from syncscan.facts.paths import Path
from syncscan.model.names import is_optimizer_step
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import NONE, Category, Trace

_NEAR = 64
"""Calls that are looked back over for the one before: torch gives its cached blocks back one by one."""


class Call(msgspec.Struct, frozen=True, dict=True):
    """What a rule is given: the facts of a blocking call, and questions about where in the program it was made."""

    facts: BlockingCall
    trace: Trace
    neighbours: Neighbours
    path: Path
    """The ops and scopes around it."""
    around: OpsAround
    """The names of those ops; rules ask by the properties below."""
    place: CodePlace
    """The code that it stands in; rules ask by the methods below."""
    before: tuple[str, ...]
    """Names of the outermost ops and annotations that came before it on its thread, the nearest last; up to 64."""
    after: tuple[str, ...]
    """Names of the outermost ops, annotations and runtime calls that came after it, the nearest first; up to 64."""

    # the ops around it

    @property
    def chain(self) -> tuple[int, ...]:
        """Rows of the ops around it on its thread, outermost first, annotations left out."""
        return self.path.ops

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops around it, outermost first: `aten::index`, `aten::nonzero`."""
        return self.around.names

    @property
    def op(self) -> str:
        """The op a user would recognise: the outermost one that isn't autograd's own wrapper; empty without ops."""
        return self.around.op

    @property
    def top(self) -> str:
        """The outermost op that does work itself: wrappers, backward nodes and compiled regions are passed over."""
        return self.around.top

    @property
    def leaf(self) -> str:
        """The innermost op; empty without ops."""
        return self.around.leaf

    @property
    def backward(self) -> str:
        """The name of the autograd node around it, e.g. `IndexBackward0`; empty outside of a backward pass."""
        return self.around.backward

    @property
    def scalar(self) -> bool:
        """True when the wait is for one number: `item()` and everything that goes through it."""
        return self.around.scalar

    def under(self, *names: str) -> bool:
        """True if any op around it has one of these names."""
        return not self.around.distinct.isdisjoint(names)

    def first(self, *names: str) -> str:
        """The outermost op around it that has one of these names; empty without."""
        return next((op for op in self.ops if op in names), "") if self.under(*names) else ""

    def op_with(self, *parts: str) -> str:
        """The outermost op around it whose name contains one of these texts; empty without."""
        for op in self.around.names:
            for part in parts:
                if part in op:
                    return op
        return ""

    def copies_at_most(self, size: int) -> bool:
        """True if its copy has up to so many bytes; also without a copy."""
        return self.facts.bytes <= size

    # the scopes around it, the profiler's steps left out

    def in_scope(self, *parts: str) -> bool:
        """True if the name of any annotation around it contains one of these texts."""
        return self.place.in_scope(*parts)

    def scope_that(self, predicate: Callable[[str], bool]) -> str:
        """The outermost annotation around it of which this is so; empty without."""
        return self.place.scope_that(predicate)

    def directly_in_scope(self, name: str) -> bool:
        """True if the innermost annotation around it is called so."""
        return self.place.directly_in_scope(name)

    @property
    def in_closure(self) -> bool:
        """True if a backward pass runs in the optimizer's step around it: then a closure does, and with it the program.

        Lightning runs the whole training step so, and LBFGS whatever it is given.
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
        """True in a trace with the profiler's own stacks, which show C functions besides Python's."""
        return len(self.trace.frames) > 0

    @property
    def has_frames(self) -> bool:
        """True where the profiler or capture took its stack."""
        return self.place.has_frames

    @property
    def has_python_frames(self) -> bool:
        """True where that has frames of Python's, besides C functions and modules."""
        return self.place.has_python_frames

    def called(self, *methods: str) -> bool:
        """True if the innermost frame is a C function or method of one of these names (`item`, `tolist`)."""
        return self.place.called(*methods)

    def in_frame(self, *packages: str) -> bool:
        """True if any Python frame lies in one of these packages or files, e.g. `torch/utils/benchmark`."""
        return self.place.in_frame(*packages)

    def in_function(self, *names: str) -> bool:
        """True if the function of any Python frame has one of these names, or one that begins so."""
        return self.place.in_function(*names)

    # the frames of libraries between the program's own innermost frame and the call

    def in_library(self, *packages: str) -> bool:
        """True if one of them lies in one of these packages or files, e.g. `torch/distributions`."""
        return self.place.in_library(*packages)

    def in_library_function(self, *names: str) -> bool:
        """True if the function of one of them has one of these names, or one that begins so."""
        return self.place.in_library_function(*names)

    def in_library_function_of(self, *names: str) -> bool:
        """True if the function of one of them has one of these names."""
        return self.place.in_library_function_of(*names)

    def functions_in_library(self, package: str) -> tuple[str, ...]:
        """The functions of those that lie in this package, outermost first."""
        return self.place.functions_in_library(package)

    def decided_in(self, package: str) -> bool:
        """True if the innermost of them that doesn't only pass the call on lies in this package or file."""
        return self.place.decided_in(package)

    @property
    def deciding_function(self) -> str | None:
        """The function of the innermost of them that doesn't only pass the call on; None without."""
        return self.place.deciding_function

    @property
    def stands_in(self) -> str:
        """The function of another library than torch that makes the call, `covar_dist of gpytorch`; empty without."""
        return self.place.stands_in

    # what came before and after it on its thread

    def nearest_before(self, predicate: Callable[[str], bool], most: int) -> str:
        """The nearest of the last `most` of `before` of which this is so; empty without."""
        return next(filter(predicate, self.before[: -most - 1 : -1]), "")

    def nearest_after(self, predicate: Callable[[str], bool], most: int) -> str:
        """The nearest of the first `most` of `after` of which this is so; empty without."""
        return next(filter(predicate, self.after[:most]), "")

    def last_before_but(self, op: str) -> str:
        """The nearest of `before` that isn't this op; empty without."""
        return next((name for name in reversed(self.before) if name != op), "")

    def since(self, ops: tuple[str, ...], most: int) -> tuple[str, ...] | None:
        """Of the nearest `most` of `before` what came after these in a row, the last time; None where they aren't."""
        names = self.before[-most:]
        if ops[-1] not in names:
            return None
        ends = (at for at in range(len(names), len(ops) - 1, -1) if names[at - len(ops) : at] == ops)
        end = next(ends, None)
        return None if end is None else names[end:]

    @property
    def first_run(self) -> bool:
        """True if the innermost op around it runs for the first time in the trace."""
        return bool(self.chain) and self.neighbours.first_begins[self.leaf] == self.trace.slices.ts[self.chain[-1]]

    @property
    def call_before(self) -> str:
        """Name of the runtime call before it in the same op; those like itself, and synchronises, are passed over."""
        parent, rows = self.trace.slices.parent, range(self.facts.rows[0] - 1, -1, -1)
        names = (self.trace.name(row) for row in takewhile(lambda row: parent[row] == self.facts.around, rows[:_NEAR]))
        return next((name for name in names if name != self.facts.apis[0] and not is_synchronize(name)), "")

    def followed_within(self, ns: int) -> bool:
        """True if the next op, annotation or runtime call began that soon after the op around it, or after it."""
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
        """When the program goes on: the end of the op that it called, or of the call itself."""
        return self.facts.end if self.path.worker == NONE else self.trace.slices.end.item(self.path.worker)


__all__ = ["Call"]
