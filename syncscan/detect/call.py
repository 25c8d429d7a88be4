"""From a blocking call and its trace to what rules may ask of it: the ops, scopes and frames around, what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from itertools import takewhile
from operator import attrgetter
from typing import Any, overload

import msgspec

from syncscan.detect.blocking_call import BlockingCall
from syncscan.detect.code_place import CodePlace
from syncscan.detect.neighbours import Neighbours
from syncscan.model.names import is_backward_node, is_optimizer_step, program_op
from syncscan.model.paths import Path
from syncscan.model.runtime_calls import is_synchronise
from syncscan.model.trace import NONE, Category, Trace

_NEAR = 64
"""Calls that are looked back over for the one before: torch gives its cached blocks back one by one."""

_RECALLED = 1 << 12
"""Answers that are kept of each question."""

Question = tuple[Any, ...]
"""Something that is asked of a call: the name of a property, and arguments."""
OF_PROGRAM = frozenset({"in_scope", "scope_that", "directly_in_scope", "in_frame", "in_function"})
"""What is asked of the program's own code around a call: the answers are the same for every call of one site."""
OF_NAMES, OF_NAMES_BEFORE = frozenset({"holds", "nearest"}), frozenset({"since", "last_before_but"})
"""What is asked of the names around a call and of nothing else: of those `before` or `after` it, as the question says
next, and of those before. A part of them is, too, and takes less time than to look up what another was told."""
LIBRARY: Question = ("library",)
"""Anything that is asked of the library's code between that and the call: the same for many sites."""
WITHOUT_TIMES = frozenset({*OF_PROGRAM, *OF_NAMES, *OF_NAMES_BEFORE, "part", "copies_at_most", *LIBRARY})
"""Questions that calls of one site with the same around them answer the same; the others ask when something was, or
which call it was."""
Kind = tuple[Any, ...]
Site = tuple[Any, ...]


class Call(msgspec.Struct, frozen=True, dict=True):
    """What a rule is given: the facts of a blocking call, and questions about where in the program it was made."""

    facts: BlockingCall
    trace: Trace
    neighbours: Neighbours
    path: Path
    """The ops and scopes around it."""
    place: CodePlace
    """The code that it stands in; rules ask by the methods below."""
    names_before: tuple[str, ...]
    names_after: tuple[str, ...]
    """Of what came before and after it on its thread, in order of time; rules ask by `before` and `after`."""
    asked: dict[Question, Any] = msgspec.field(default_factory=dict)
    """What was asked so far of the code that it stands in and of its surroundings in time, and the answers."""

    @property
    def kind(self) -> Kind:
        """What a rule may ask of it whatever code it stands in: the call itself, and the ops around it."""
        facts = self.facts
        return facts.api, facts.apis, facts.copy, facts.waited, facts.launches, self.ops

    @property
    def site(self) -> Site:
        """The same, with the code that it stands in; cheap to be compared: names and places are told by identity."""
        facts = self.facts
        return facts.api, facts.apis, facts.copy, facts.waited, facts.launches, self.path.names, self.place

    @property
    def _below_program(self) -> CodePlace:
        self.asked[LIBRARY] = True
        return self.place

    def answer(self, question: Question) -> Any:
        """What is so of its surroundings in time, or of the program's code around it.

        Args:
            question: the name of one of the properties or methods below, and what it takes besides.
        """
        if question not in self.asked:
            self.asked[question] = asker(question)(self)
        return self.asked[question]

    def _holds(self, which: str, name: str) -> bool:
        return name in getattr(self, f"names_{which}")

    # the ops around it

    @property
    def chain(self) -> tuple[int, ...]:
        """Rows of the ops around it on its thread, outermost first, annotations left out."""
        return self.path.ops

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops around it, outermost first: `aten::index`, `aten::nonzero`."""
        return self.path.names.ops

    @cached_property
    def op(self) -> str:
        """The op a user would recognise: the outermost one that isn't autograd's own wrapper; empty without ops."""
        return program_op(self.ops)

    @cached_property
    def top(self) -> str:
        """The outermost op that does work itself: wrappers, backward nodes and compiled regions are passed over."""
        return self.ops[self.path.names.worker] if self.path.names.worker != NONE else ""

    @cached_property
    def leaf(self) -> str:
        """The innermost op; empty without ops."""
        return self.ops[-1] if self.ops else ""

    @cached_property
    def backward(self) -> str:
        """The name of the autograd node around it, e.g. `IndexBackward0`; empty outside of a backward pass."""
        return next((op for op in self.ops if is_backward_node(op)), "")

    @cached_property
    def scalar(self) -> bool:
        """True when the wait is for one number: `item()` and everything that goes through it."""
        return "aten::_local_scalar_dense" in self.ops

    def under(self, *names: str) -> bool:
        """True if any op around it has one of these names."""
        return bool(self.first(*names))

    def first(self, *names: str) -> str:
        """The outermost op around it that has one of these names; empty without."""
        return next((op for op in self.ops if op in names), "")

    def copies_at_most(self, size: int) -> bool:
        """True if its copy has up to so many bytes; also without a copy."""
        return bool(self.answer(("copies_at_most", size)))

    def _copies_at_most(self, size: int) -> bool:
        return self.facts.bytes <= size

    # the scopes around it, the profiler's steps left out

    def in_scope(self, *parts: str) -> bool:
        """True if the name of any annotation around it contains one of these texts."""
        return bool(self.answer(("in_scope", *parts)))

    def scope_that(self, predicate: Callable[[str], bool]) -> str:
        """The outermost annotation around it of which this is so; empty without."""
        return str(self.answer(("scope_that", predicate)))

    def directly_in_scope(self, name: str) -> bool:
        """True if the innermost annotation around it is called so."""
        return bool(self.answer(("directly_in_scope", name)))

    @property
    def in_closure(self) -> bool:
        """True if a backward pass runs in the optimizer's step around it: then a closure does, and with it the program.

        Lightning runs the whole training step so, and LBFGS whatever it is given.
        """
        return bool(self.answer(("in_closure",)))

    def _in_closure(self) -> bool:
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
        return self._below_program.has_frames

    @property
    def has_python_frames(self) -> bool:
        """True where that has frames of Python's, besides C functions and modules."""
        return self._below_program.has_python_frames

    def called(self, *methods: str) -> bool:
        """True if the innermost frame is a C function or method of one of these names (`item`, `tolist`)."""
        return self._below_program.called(*methods)

    def in_frame(self, *packages: str) -> bool:
        """True if any Python frame lies in one of these packages or files, e.g. `torch/utils/benchmark`."""
        return bool(self.answer(("in_frame", *packages)))

    def in_function(self, *names: str) -> bool:
        """True if the function of any Python frame has one of these names, or one that begins so."""
        return bool(self.answer(("in_function", *names)))

    # the frames of libraries between the program's own innermost frame and the call

    def in_library(self, *packages: str) -> bool:
        """True if one of them lies in one of these packages or files, e.g. `torch/distributions`."""
        return self._below_program.in_library(*packages)

    def in_library_function(self, *names: str) -> bool:
        """True if the function of one of them has one of these names, or one that begins so."""
        return self._below_program.in_library_function(*names)

    def in_library_function_of(self, *names: str) -> bool:
        """True if the function of one of them has one of these names."""
        return self._below_program.in_library_function_of(*names)

    def functions_in_library(self, package: str) -> tuple[str, ...]:
        """The functions of those that lie in this package, outermost first."""
        return self._below_program.functions_in_library(package)

    def decided_in(self, package: str) -> bool:
        """True if the innermost of them that doesn't only pass the call on lies in this package or file."""
        return self._below_program.decided_in(package)

    @property
    def deciding_function(self) -> str | None:
        """The function of the innermost of them that doesn't only pass the call on; None without."""
        return self._below_program.deciding_function

    @property
    def stands_in(self) -> str:
        """The function of another library than torch that makes the call, `covar_dist of gpytorch`; empty without."""
        return self._below_program.stands_in

    # what came before and after it on its thread

    @property
    def before(self) -> Names:
        """Names of the outermost ops and annotations that came before it on its thread, the nearest last; up to 64."""
        return Names(self, "before")

    def _nearest(self, which: str, predicate: Callable[[str], bool], most: int) -> str:
        near = self.names_before[: -most - 1 : -1] if which == "before" else self.names_after[:most]
        return next(filter(predicate, near), "")

    def last_before_but(self, op: str) -> str:
        """The nearest of `before` that isn't this op; empty without."""
        return str(self.answer(("last_before_but", op)))

    def _last_before_but(self, op: str) -> str:
        return next((name for name in reversed(self.names_before) if name != op), "")

    def since(self, ops: tuple[str, ...], most: int) -> tuple[str, ...] | None:
        """Of the nearest `most` of `before` what came after these in a row, the last time; None where they aren't."""
        names: tuple[str, ...] | None = self.answer(("since", ops, most))
        return names

    def _since(self, ops: tuple[str, ...], most: int) -> tuple[str, ...] | None:
        names = self.names_before[-most:]
        ends = (at for at in range(len(names), len(ops) - 1, -1) if names[at - len(ops) : at] == ops)
        end = next(ends, None)
        return None if end is None else names[end:]

    @property
    def after(self) -> Names:
        """Names of the outermost ops, annotations and runtime calls that came after it, the nearest first; up to 64."""
        return Names(self, "after")

    @property
    def first_run(self) -> bool:
        """True if the innermost op around it runs for the first time in the trace."""
        return bool(self.answer(("first_run",)))

    def _first_run(self) -> bool:
        return bool(self.chain) and self.neighbours.first_begins[self.leaf] == self.trace.slices.ts[self.chain[-1]]

    @property
    def call_before(self) -> str:
        """Name of the runtime call before it in the same op; those like itself, and synchronises, are passed over."""
        return str(self.answer(("call_before",)))

    def _call_before(self) -> str:
        parent, rows = self.trace.slices.parent, range(self.facts.rows[0] - 1, -1, -1)
        names = (self.trace.name(row) for row in takewhile(lambda row: parent[row] == self.facts.around, rows[:_NEAR]))
        return next((name for name in names if name != self.facts.apis[0] and not is_synchronise(name)), "")

    def followed_within(self, ns: int) -> bool:
        """True if the next op, annotation or runtime call began that soon after the op around it, or after it."""
        return bool(self.answer(("followed_within", ns)))

    def _followed_within(self, ns: int) -> bool:
        start = self.neighbours.next_start(self.facts.track, self._returned)
        return start is not None and start - self._returned <= ns

    @property
    def since_scope(self) -> tuple[str, ...]:
        """Names of the outermost ops and annotations that began since the innermost annotation around it."""
        names: tuple[str, ...] = self.answer(("since_scope",))
        return names

    def _since_scope(self) -> tuple[str, ...]:
        slices = self.trace.slices
        annotations = [row for row in self.path.rows if slices.category.item(row) == Category.ANNOTATION]
        opened = int(slices.ts[annotations[-1]]) if annotations else 0
        return self.neighbours.between(self.facts.track, opened + 1, self.facts.ts)

    @property
    def _returned(self) -> int:
        """When the program goes on: the end of the op that it called, or of the call itself."""
        return self.facts.end if self.path.worker == NONE else self.trace.slices.end.item(self.path.worker)


@cache
def asker(question: Question) -> Callable[[Call], Any]:
    """What answers a question, of any call."""
    asks, *of = question
    if asks == "part":
        which, part = attrgetter(f"names_{of[0]}"), slice(*of[1:])
        return lambda call: which(call)[part]
    if asks in OF_PROGRAM:
        return lambda call: getattr(call.place, asks)(*of)
    method = getattr(Call, f"_{asks}")
    return lambda call: method(call, *of)


def recalling(question: Question) -> Callable[[Call], Any]:
    """The same, of many calls at few places with few different names around: most are told what another was told."""
    answer, (asks, *of) = asker(question), question
    if asks in OF_PROGRAM:
        decisive = attrgetter("place")
    elif asks in OF_NAMES:
        decisive = attrgetter(f"names_{of[0]}")
    elif asks in OF_NAMES_BEFORE:
        decisive = attrgetter("names_before")
    else:
        return answer
    known: dict[int, tuple[Any, Any]] = {}  # by identity: to hash many names takes longer than the look-up

    def recalled(call: Call) -> Any:
        asked = decisive(call)
        told = known.get(id(asked))
        if told is None:
            told = asked, answer(call)  # with what was asked, so that nothing else gets its id
            if len(known) < _RECALLED:
                known[id(asked)] = told
        return told[1]

    return recalled


class Names(Sequence[str]):
    """The names of what came before or after a call; each look at them is a question, and only that.

    Args:
        call: which is asked.
        which: `before` or `after`.
    """

    __slots__ = ("_call", "_which")

    def __init__(self, call: Call, which: str) -> None:
        self._call, self._which = call, which

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return self._part(at.start, at.stop, at.step)
        name = self._part(at, at + 1 or None, None)
        if not name:
            raise IndexError(at)
        return name[0]

    def __len__(self) -> int:
        return len(self._part(None, None, None))

    def __iter__(self) -> Iterator[str]:
        return iter(self._part(None, None, None))

    def __contains__(self, name: object) -> bool:
        return bool(self._call.answer(("holds", self._which, name)))

    def __bool__(self) -> bool:
        return bool(self[-1:])

    def nearest(self, predicate: Callable[[str], bool], most: int) -> str:
        """Of so many nearest ones the nearest of which this is so; empty without.

        Rules look further than a name or two by this: what else lies there differs from place to place.
        """
        return str(self._call.answer(("nearest", self._which, predicate, most)))

    def _part(self, *of_slice: int | None) -> tuple[str, ...]:
        names: tuple[str, ...] = self._call.answer(("part", self._which, *of_slice))
        return names


__all__ = ["Call", "Names", "recalling"]
