"""Record waits, ops and scopes of a program as a trace such as torch.profiler would have written.

The clock is none: it only counts, so that ranges nest and follow each other as they did. A call from Python begins
`CALL_NS` after the one before, ops of one call `OP_NS` after each other, as the rules for traces expect it.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from syncscan.capture.sync_lines import Interned

CALL_NS = 20_000
OP_NS = 1_000
BASE_NS = 1_000_000_000
"""Epoch that the counted times are said to be counted from: so long ago that nobody takes it for a time of day, after
which the program's files would have been written."""
NEAR = 48
"""Ops before a wait that are kept: the rules look back over 64 names at the most, most of them over less than ten."""
FOLLOWING = 16
"""Ops kept after a wait."""
PROCESS, MAIN, AUTOGRAD, OTHERS = 1, 1, 2, 3
"""The process, its thread, the one that a GPU's backward pass runs on, the first of those that the program began."""

_NOT_CALLED_BACK = ("cudaFree",)
"""Calls of a wait whose line isn't known from torch's callbacks, but from the timed call around it, as in captures."""

Frame = tuple[str, int, str]
"""File, line and function."""
Stack = tuple[Frame, ...]
"""Innermost frame first."""


@dataclass(frozen=True, slots=True)
class DryWait:
    """A wait of the host in an op: the ops inside down to the call, outermost first, and the call's kind.

    `copy` is the copy's name as CUDA's profiler gives it, empty for a bare synchronize or `cudaFree`; `calls` the
    runtime calls of the wait; `size` the bytes copied; `value` a mark of what is read (`values.mark_of`), or empty.
    """

    ops: tuple[str, ...]
    calls: tuple[str, ...] = ("cudaMemcpyAsync", "cudaStreamSynchronize")
    copy: str = ""
    size: int = 0
    value: str = ""

    def inside(self, *outer: str) -> DryWait:
        """Return this wait below further ops."""
        return replace(self, ops=(*outer, *self.ops))


@dataclass(frozen=True, slots=True)
class ProgramPoint:
    """Where in the program a wait stands: its stack, the path of the module around it, and the forward op's number."""

    stack: Stack
    module: str = ""
    node: str = ""
    """The node of the backward pass that it lies in: `IndexBackward0`; empty outside."""
    sequence: int | None = None
    """That node's number, by which its forward op is known."""
    borrowed: bool = False
    """Whether the stack is that of the thread that called `backward()`: the node has no Python frames of its own."""
    thread: int = MAIN
    """The one that waits, or that called `backward()`."""


@dataclass(frozen=True, slots=True)
class ForwardOp:
    """An op that autograd followed: its name, when it ran, and where."""

    name: str
    begin: int
    stack: Stack
    thread: int = MAIN


class DryRecording:
    """The waits, ops and scopes of a dry run, in order."""

    def __init__(self) -> None:
        self.now, self.waits = CALL_NS, 0
        self.events: list[dict[str, Any]] = []
        self._near: deque[tuple[str, int, int]] = deque(maxlen=NEAR)
        """The last ops: name, thread and when each began. Most are forgotten: no row is made of them."""
        self._following = self._lowest = 0
        self._scopes: defaultdict[int, list[tuple[str, int]]] = defaultdict(list, {MAIN: []})
        """Open scopes of each thread."""
        self.steps: list[tuple[int, int]] = []
        """Begin and end of each step that is over."""
        self.after_last: Callable[[], None] | None = None
        """Called once, when the last step has ended."""
        self._step: int | None = None
        """When the running step began."""
        self._due: list[int | None] = []
        self._frames: Interned[Frame] = Interned()
        self._stacks: Interned[tuple[int, ...]] = Interned()
        self._modules: Interned[str] = Interned()
        self._syncs: list[list[Any]] = []
        self._calls: list[list[int]] = []
        """Waits that torch doesn't call back for: begin, end, thread and stack."""
        self._values: list[list[Any]] = []
        self._led: set[int] = set()
        self._rows: list[range] = []
        """Places in `events` of the rows of each wait."""

    def call(self) -> None:
        """Note that the program calls torch once more."""
        self.now += CALL_NS

    def op(self, name: str, tid: int = MAIN) -> None:
        """Note that an op ran that doesn't wait: it is kept if a wait is near."""
        begin = self.now + OP_NS
        self.now = begin + OP_NS // 2
        if self._following > 0:
            self._following -= 1
            self.events.append(_op_row(name, tid, begin))
        else:
            self._near.append((name, tid, begin))

    def open_scope(self, name: str, tid: int = MAIN) -> None:
        self.now += OP_NS
        self._scopes[tid].append((name, self.now))

    def close_scope(self, tid: int = MAIN) -> None:
        """End the innermost open range."""
        self.now += OP_NS
        scopes = self._scopes[tid]
        if scopes:
            name, begin = scopes.pop()
            self.events.append(_slice("user_annotation", name, tid, begin, self.now))
        if tid != MAIN:
            return
        self._lowest = min(self._lowest, len(scopes))
        if self._due and len(scopes) <= self._lowest:
            last, self._due = self._due[-1], []
            self._begin_step(last)

    def step(self, number: int | None) -> None:
        """End the current step, if one runs, and begin the next, if it has a number.

        Ranges of a thread nest: where scopes are open that were opened in the step, it ends with the last of those.
        """
        if len(self._scopes[MAIN]) > self._lowest:
            self._due.append(number)
        else:
            self._begin_step(number)

    def _begin_step(self, number: int | None) -> None:
        self.now += CALL_NS
        if self._step is not None:
            self.steps.append((self._step, self.now - OP_NS))
        self._step = None if number is None else self.now
        self._lowest = len(self._scopes[MAIN])
        if number is None and (then := self.after_last):
            self.after_last = None
            then()

    def wait(self, wait: DryWait, place: ProgramPoint, forward: ForwardOp | None = None) -> None:
        self.waits += 1
        self.events += [_op_row(*op) for op in self._near]
        self._near.clear()
        self._following = FOLLOWING
        tid = AUTOGRAD if place.node else place.thread
        if forward is not None and place.sequence is not None:
            self._lead_to(forward, place.sequence)
        first = len(self.events)
        self._nest(self._around(wait, place), wait, tid, place)
        self._rows.append(range(first, len(self.events)))

    def _around(self, wait: DryWait, place: ProgramPoint) -> list[tuple[str, dict[str, Any]]]:
        """Return the ops of a wait with their arguments, outermost first, those of autograd's engine included."""
        ops: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in wait.ops]
        if not place.node:
            return ops
        ids = {} if place.sequence is None else {"Sequence number": place.sequence, "Fwd thread id": 1}
        engine = f"autograd::engine::evaluate_function: {place.node}"
        return [(engine, ids), (place.node, ids), *ops]

    def _nest(self, ops: list[tuple[str, dict[str, Any]]], wait: DryWait, tid: int, place: ProgramPoint) -> None:
        begins = []
        for _ in ops:
            self.now += 100
            begins.append(self.now)
        begin = self.now
        if wait.calls != _NOT_CALLED_BACK:
            owner = place.thread if place.borrowed else tid
            module = self._modules[place.module] if place.module else -1
            self._synced(begin + 50, tid, place.stack, module, owner)
        if wait.value:
            self._values.append([BASE_NS + self.now + 100, wait.value])
        for at, name in enumerate(wait.calls):
            self.now += 100
            correlation = len(self.events) + 1_000
            args = {"correlation": correlation}
            self.events.append(_slice("cuda_runtime", name, tid, self.now, self.now + 50, args))
            if wait.copy and at == 0:
                row = {"device": 0, "stream": 7, "correlation": correlation, "bytes": wait.size}
                self.events.append({**_slice("gpu_memcpy", wait.copy, 7, self.now + 20, self.now + 40, row), "pid": 0})
            self.now += 50
        if wait.calls == _NOT_CALLED_BACK:
            self._calls.append([BASE_NS + begin, BASE_NS + self.now, tid, self._stack(place.stack)])
        for (name, args), begin in zip(reversed(ops), reversed(begins), strict=True):
            self.now += 100
            self.events.append(_slice("cpu_op", name, tid, begin, self.now, args))

    def _synced(self, at: int, tid: int, stack: Stack, module: int, owner: int) -> None:
        self._syncs.append([BASE_NS + at, tid, "stream", self._stack(stack), module, 0, owner])

    def _lead_to(self, forward: ForwardOp, sequence: int) -> None:
        """Write the forward op's row and stack, once: so short a row that it holds nothing of what it did."""
        if sequence in self._led:
            return
        self._led.add(sequence)
        args = {"Sequence number": sequence, "Fwd thread id": 0}
        thread = forward.thread
        self.events.append(_slice("cpu_op", forward.name, thread, forward.begin, forward.begin + 40, args))
        self._synced(forward.begin, thread, forward.stack, -1, thread)

    def _stack(self, stack: Iterable[Frame]) -> int:
        return self._stacks[tuple(self._frames[frame] for frame in stack)]

    def keep_open(self, before: int) -> None:
        """Let steps begin and end within the open scopes that were opened before this time."""
        self._lowest = sum(begin < before for _, begin in self._scopes[MAIN])

    def finish(self) -> None:
        """End the scopes and the step that are open: the run is over."""
        self.after_last = None
        for tid, scopes in self._scopes.items():
            while scopes:
                self.close_scope(tid)
        self._begin_step(None)

    def scopes(self) -> list[tuple[int, int]]:
        """Return begin and end of each `record_function` range of the program's thread that is over."""
        return [
            (begin := round(row["ts"] * 1e3), begin + round(row["dur"] * 1e3))
            for row in self.events
            if row["cat"] == "user_annotation" and row["tid"] == MAIN
        ]

    def count_from(self, begin: int, end: int) -> None:
        """Count what came before the first step as one, and what came after the last as part of the one before."""
        begins = [begin, *(begun for begun, _ in self.steps)]
        ends = [begun - OP_NS for begun in begins[1:]]
        self.steps = list(zip(begins, [*ends[:-1], max(end, ends[-1])], strict=False))

    def trace(
        self, about: dict[str, Any], rounds: Iterable[tuple[int, int]] | None = None, without: Iterable[int] = ()
    ) -> bytes:
        """Return the recording as a trace's JSON.

        `about` is stored besides under the trace's key "syncscan". `rounds` are begin and end of its steps, None for
        those that were marked; `without` are numbers of waits to leave out.
        """
        self.finish()
        events = self._choose_rows(rounds, without)
        return json.dumps(
            {
                "schemaVersion": 1,
                "cuda_runtime_version": 13000,
                "deviceProperties": [{"id": 0, "name": "simulated GPU"}],
                "baseTimeNanoseconds": BASE_NS,
                "syncscan": {"pretended": True, **about, "lines": self._lines(), "values": self._values},
                "traceEvents": [*_labels(events), *events],
            }
        ).encode()

    def _choose_rows(self, rounds: Iterable[tuple[int, int]] | None, without: Iterable[int]) -> list[dict[str, Any]]:
        """Return the rows but for those of some waits, with other steps where they are given."""
        left_out = {at for number in without for at in self._rows[number]}
        rows = [row for at, row in enumerate(self.events) if at not in left_out]
        steps = self.steps if rounds is None else rounds
        return [*rows, *(_slice("user_annotation", f"ProfilerStep#{k}", MAIN, *at) for k, at in enumerate(steps))]

    def _lines(self) -> dict[str, Any]:
        return {
            "source": "callbacks",
            "frames": [list(frame) for frame in self._frames],
            "stacks": [list(stack) for stack in self._stacks],
            "modules": list(self._modules),
            "syncs": self._syncs,
            "calls": self._calls,
        }


def _slice(cat: str, name: str, tid: int, begin: int, end: int, args: dict[str, Any] | None = None) -> dict[str, Any]:
    times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
    return {"ph": "X", "cat": cat, "name": name, "pid": PROCESS, "tid": tid, **times, "args": args or {}}


def _op_row(name: str, tid: int, begin: int) -> dict[str, Any]:
    return _slice("cpu_op", name, tid, begin, begin + OP_NS // 2)


def _labels(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    threads = {MAIN: "main", AUTOGRAD: "pt_autograd_0"}
    used = sorted({event["tid"] for event in events if event["pid"] == PROCESS and event["tid"] >= OTHERS})
    threads |= {tid: f"worker {number}" for number, tid in enumerate(used)}
    rows = ((tid, f"thread {tid} ({name})") for tid, name in threads.items())
    return [
        {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": tid, "ts": 0, "args": {"name": name}}
        for tid, name in rows
    ]
