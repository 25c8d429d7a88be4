"""Find which ops of a trace's steps a compile of the network reaches, and which graph holds each.

Dynamo ends a graph at a sync. Within a loop it can't, and a whole function stays eager.
"""

from __future__ import annotations

import enum
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from syncscan.facts.network import OutermostOp, Pass, is_product, is_recurrent, ops_of, passes
from syncscan.facts.paths import frames_around
from syncscan.facts.recorded_stacks import RecordedStacks
from syncscan.model.capture import Frame
from syncscan.model.finding import Finding, SyncPoint
from syncscan.model.interval import Cover, Interval, ThreadInterval, cover_of
from syncscan.model.libraries import calls_modules, is_library, passes_on
from syncscan.model.slice_names import frame_parts, is_loader
from syncscan.model.trace import NONE, Category, Trace
from syncscan.whatif.fusion import Fusion, fusion
from syncscan.whatif.network_calls import network_calls


class CompiledPiece(msgspec.Struct, frozen=True, eq=False, dict=True):
    trace: Trace
    ops: tuple[OutermostOp, ...]
    trains: bool
    calls: int = 1
    """Calls of networks that it holds, each a graph of its own."""

    @property
    def interval(self) -> Interval:
        return Interval(self.ops[0].begin, self.ops[-1].end)

    @cached_property
    def leaves(self) -> int:
        """How many ops launch something."""
        return sum(op.leaves for op in self.ops)

    @cached_property
    def gradients(self) -> int:
        """How many parameters' gradients are added up."""
        return sum(op.gradients for op in self.ops)

    def spans(self, longest_ns: float) -> tuple[ThreadInterval, ...]:
        """Return on each thread the times from an op's begin to another's end, with no longer pause between two."""
        if longest_ns not in self._spans:
            self._spans[longest_ns] = tuple(_spans(self.ops, longest_ns))
        return self._spans[longest_ns]

    @cached_property
    def _spans(self) -> dict[float, tuple[ThreadInterval, ...]]:
        return {}

    @cached_property
    def fusion(self) -> Fusion:
        return fusion(self.trace, self.ops)

    @property
    def launches(self) -> int:
        """How many kernels are launched once it is compiled."""
        return self.fusion.generated + sum(op.heavy for op in self.ops)


def _spans(ops: Sequence[OutermostOp], longest_ns: float) -> Iterator[ThreadInterval]:
    by_track: dict[int, list[OutermostOp]] = {}
    for op in ops:
        by_track.setdefault(op.track, []).append(op)
    for track, track_ops in by_track.items():
        begin = track_ops[0].begin
        for op, following in itertools.zip_longest(track_ops, track_ops[1:]):
            if following is None or following.begin - op.end > longest_ns:
                yield ThreadInterval(track, begin, op.end)
                begin = following.begin if following else 0


class Reach(msgspec.Struct, frozen=True):
    """The parts of the replayed steps that a compile reaches, and those that it doesn't."""

    pieces: tuple[CompiledPiece, ...]
    eager: tuple[CompiledPiece, ...]
    """Ops that stay as they are, since their function's graph would break in a loop."""
    breaking: tuple[Finding, ...]
    """Syncs that stay within what would be compiled."""
    ops: float
    """Ops that launch, of all these."""
    host_ns: float
    """The time that they took of the host, waits left out, as recorded."""
    eager_ns: float
    """The part of that time that the ops took that stay as they are."""

    @property
    def unit_ns(self) -> float:
        """The time that one op that launches took of the host, with the Python around it."""
        return self.host_ns / self.ops if self.ops else 0.0


def reach(trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding], removed: frozenset[str]) -> Reach:
    waits = cover_of([(o.ts, o.end) for f in findings for o in f.occurrences if o.end > o.ts])
    breaks = CompileBreaks(trace, findings, removed)
    pieces, eager = list[CompiledPiece](), list[CompiledPiece]()
    pieces_by_question = trace.cached(_KnownPieces)
    for step in steps:
        passes_of_step = passes(trace, step)
        trains = any(one.backward for one in passes_of_step)
        for at, one in enumerate(passes_of_step):
            for part in breaks.split(one, passes_of_step[at - 1] if at else None, trains):
                for ops in _traced(part.ops):
                    (eager if part.eager else pieces).append(pieces_by_question.piece(ops, trains, part.calls))
    return Reach(
        pieces=tuple(pieces),
        eager=tuple(eager),
        breaking=tuple({finding.id: finding for finding, _ in breaks.inside}.values()),
        ops=sum(piece.leaves for piece in (*pieces, *eager)),
        host_ns=_own_ns(sorted(piece.interval for piece in (*pieces, *eager)), waits),
        eager_ns=_own_ns([piece.interval for piece in eager], waits),
    )


class _KnownPieces:
    """The pieces of a trace that were met, so that what is worked out of one serves all that reach it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._of: dict[tuple[int, int, int, bool, int], CompiledPiece] = {}

    def piece(self, ops: tuple[OutermostOp, ...], trains: bool, calls: int) -> CompiledPiece:
        key = ops[0].track, ops[0].begin, len(ops), trains, calls
        if key not in self._of:
            self._of[key] = CompiledPiece(self.trace, ops, trains, calls)
        return self._of[key]


def reach_of_graph(
    trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding], removed: frozenset[str]
) -> Reach:
    """Return what a CUDA graph of everything between two waits holds of these steps; arguments as for `reach`."""
    left = [(o, f) for f in findings if f.id not in removed for o in f.occurrences]
    waits = cover_of([(sync.ts, sync.end) for sync, _ in left if sync.end > sync.ts])
    pieces, count, intervals = list[CompiledPiece](), 0, list[Interval]()
    for step in steps:
        ops = ops_of(trace, step)
        if ops:
            cuts = sorted(sync.ts for sync, _ in left if step.holds(sync.ts))
            pieces += [CompiledPiece(trace, part, False) for part in _cut_at(tuple(ops), cuts)]
            count += sum(op.leaves for op in ops)
            intervals.append(Interval(ops[0].begin, max(op.end for op in ops)))
    breaking = tuple({f.id: f for _, f in left}.values())
    return Reach(tuple(pieces), (), breaking, count, _own_ns(intervals, waits), 0.0)


def _own_ns(intervals: Sequence[Interval], waits: Cover) -> float:
    begins, ends = np.array(intervals, np.int64).reshape(-1, 2).T
    return float((ends - begins - waits.within(begins, ends)).sum())


InnerSync: TypeAlias = tuple[Finding, SyncPoint]
"""A sync within a network, with its finding."""


def _time(sync: InnerSync) -> int:
    return sync[1].ts


class PassPart(NamedTuple):
    """Neighboring ops of a pass that one graph holds, or that stay eager."""

    ops: tuple[OutermostOp, ...]
    eager: bool
    calls: int = 1


class CompileBreaks:
    """Where syncs would break the graph of a network, and which of its ops stay eager for it.

    Dynamo ends a graph at a sync and begins another behind it. It can't do so within a loop: there it runs the rest of
    that function as it is (`torch/_dynamo/symbolic_convert.py`, "graph break in loop"; `docs/explanation/replay.md` has
    the versions that were tried).
    """

    def __init__(self, trace: Trace, findings: Sequence[Finding], removed: frozenset[str]) -> None:
        has_modules = any(f.module for f in findings)
        self.trace = trace
        self.loops = SyncLoops(trace)
        self.inside: list[InnerSync] = []
        self.outside: list[int] = trace.slices.ts[trace.where(is_loader, Category.ANNOTATION)].tolist()
        for finding in findings:
            inner = bool(finding.module) if has_modules else finding.source is None
            for o in finding.occurrences:
                if not inner:
                    self.outside.append(o.ts)
                elif finding.id not in removed:
                    self.inside.append((finding, o))
        self.inside.sort(key=_time)
        self.outside.sort()

    def split(self, run: Pass, before: Pass | None, trains: bool) -> Iterator[PassPart]:
        """Yield the ops of a pass by the graph that holds them: a backward pass is split as its forward one is."""
        if not run.backward:
            yield from self._forward(run, trains)
        elif before is not None and not before.backward:
            yield from _mirrored(run.ops, list(self._forward(before, trains)))
        else:
            yield PassPart(run.ops, False)

    def _forward(self, run: Pass, trains: bool) -> Iterator[PassPart]:
        begin, end = run.interval
        cuts = self.outside[bisect_left(self.outside, begin) : bisect_left(self.outside, end)]
        parts = list(_cut_at(run.ops, cuts))
        if len(parts) > 1:
            # Copies of an input and what is reported of the last step are the program's own.
            networks = [network for part in parts if (network := _network(part))]
            parts = (networks if not trains else [part for part in parts if _network(part)]) or parts
        for part in parts:
            held = list(self._call(part))
            calls = network_calls(self.trace, part) if trains and len(held) == 1 else 1
            yield from (one._replace(calls=calls) for one in held)

    def _call(self, ops: tuple[OutermostOp, ...]) -> Iterator[PassPart]:
        begin, end = ops[0].begin, ops[-1].end
        met = self.inside[bisect_left(self.inside, begin, key=_time) : bisect_left(self.inside, end, key=_time)]
        begins = [op.begin for op in ops]
        places = [(bisect_right(begins, _time(sync)) - 1, sync) for sync in met]
        first, behind = self._looped(places, len(ops))
        for low, high, eager in ((0, first, False), (first, behind, True), (behind, len(ops), False)):
            if eager and high > low:
                yield PassPart(ops[low:high], True)
            elif high > low:
                yield from (PassPart(part, False) for part in _cut_at(ops[low:high], list(map(_time, met))))

    def _looped(self, places: Sequence[tuple[int, InnerSync]], count: int) -> tuple[int, int]:
        """Return where the ops begin and end that stay eager: the rest of a function whose graph breaks in a loop.

        One line that waits in several ops of a call is in a loop, unless each wait is in a call of its own. If the loop
        is in the network's own function, all of it behind the last break before the loop stays eager, whatever function
        waits; if it is in one that the network calls, the rest of the network is compiled.
        """
        by_line: dict[str, dict[int, InnerSync]] = {}
        for at, sync in places:
            by_line.setdefault(sync[0].id, {}).setdefault(at, sync)
        holders = {line: self._holder([*of.values()]) for line, of in by_line.items() if len(of) > 1}
        looped = [at for at, (finding, _) in places if holders.get(finding.id, LoopHolder.NONE) is not LoopHolder.NONE]
        if not looped:
            return count, count
        first, last = looped[0], looped[-1] + 1
        if LoopHolder.NETWORK not in holders.values():
            return first, last
        return max((at for at, (f, _) in places if at < first and f.id not in holders), default=0), count

    def _holder(self, syncs: Sequence[InnerSync]) -> LoopHolder:
        """Return whose loop it is; where a recording doesn't show it, the loop is taken to be in the waiting line's."""
        holder = self.loops.holder([sync for _, sync in syncs])
        if holder is not LoopHolder.UNKNOWN:
            return holder
        finding, _ = syncs[0]
        in_forward = finding.source is None or finding.source.function.startswith("forward")
        return LoopHolder.NETWORK if len(finding.module) < 2 and in_forward else LoopHolder.CALLED


def _mirrored(ops: Sequence[OutermostOp], forward: Sequence[PassPart]) -> Iterator[PassPart]:
    """Yield the ops of a backward pass in as many parts as its forward one has, the other way round."""
    op_count, at, past = sum(len(part.ops) for part in forward), 0, 0
    for part in reversed(forward):
        past += len(part.ops)
        behind = round(len(ops) * past / op_count)
        if any(op.work for op in ops[at:behind]):
            yield PassPart(tuple(ops[at:behind]), part.eager, part.calls)
            at = behind


def _traced(ops: tuple[OutermostOp, ...]) -> Iterator[tuple[OutermostOp, ...]]:
    """Yield these ops in parts without recurrent layers, which dynamo doesn't trace: it ends a graph before each.

    (`torch._dynamo.config.allow_rnn`, off in torch 2.11 and 2.13.)
    """
    for recurrent, run in itertools.groupby(ops, lambda op: any(map(is_recurrent, op.inner))):
        part = tuple(run)
        if not recurrent and any(op.work for op in part):
            yield part


def _network(ops: tuple[OutermostOp, ...]) -> tuple[OutermostOp, ...]:
    """Return the ops of one of several calls in a step: those up to the last product.

    What follows is the loop's own: a sampler's step, the choice of a word, a world that is acted on. With one call it
    isn't known to be, and a network's own end is as short. Where no call has a product, nothing tells them apart, and
    all stays its network's.
    """
    last = max((at for at, op in enumerate(ops) if any(map(is_product, op.inner))), default=-1)
    return ops[: last + 1]


def _cut_at(ops: tuple[OutermostOp, ...], cuts: Sequence[int]) -> Iterator[tuple[OutermostOp, ...]]:
    """Yield these ops in parts, each with work, that begin behind each of these times (ns, ascending)."""
    if not cuts:
        if any(op.work for op in ops):
            yield ops
        return
    parts: list[list[OutermostOp]] = [[]]
    pending = list(cuts)
    for op in ops:
        while pending and op.begin >= pending[0]:
            pending.pop(0)
            parts.append([])
        parts[-1].append(op)
    yield from (tuple(part) for part in parts if any(op.work for op in part))


_MODULE = "nn.Module: "


class LoopHolder(enum.Enum):
    """The outermost function within a network that has a loop around a sync."""

    NONE = "none"
    """No loop is within the network: each call of it waits once."""
    NETWORK = "network"
    """The network's own `forward`, which is what would be compiled."""
    CALLED = "called"
    """A function or module that it calls."""
    UNKNOWN = "unknown"


class SyncLoops:
    """Finds the loops around syncs of a trace, by capture's stacks or the profiler's frames."""

    def __init__(self, trace: Trace) -> None:
        lines = trace.info.capture.lines
        self._trace = trace
        self._looped: frozenset[Frame] | None = None
        if lines.looped is not None:
            self._looped = frozenset(lines.frames[i] for i in lines.looped if 0 <= i < len(lines.frames))

    def holder(self, syncs: Sequence[SyncPoint]) -> LoopHolder:
        """Return which function has the loop that repeats these syncs of one line, ascending, in one call."""
        stack = self._recorded(syncs[0])
        if stack:
            return self._of_recorded(stack)
        return self._of_profiled(syncs)

    def _recorded(self, sync: SyncPoint) -> tuple[Frame, ...]:
        """Return the frames within the network that capture recorded, outermost first."""
        first, last, op = (np.array([n], np.int64) for n in (sync.calls[0], sync.calls[-1], (*sync.ops, NONE)[0]))
        (stack,) = self._trace.cached(RecordedStacks).of_each(first, last, op)
        frames = stack.frames if stack else ()
        call = next((at for at, frame in enumerate(frames) if calls_modules(frame.file)), len(frames))
        return tuple(frame for frame in frames[call:] if not _passes_on(frame.file))

    def _of_recorded(self, frames: Sequence[Frame]) -> LoopHolder:
        if self._looped is None:
            return LoopHolder.NETWORK if len(frames) == 1 else LoopHolder.UNKNOWN
        if frames[0] in self._looped:
            return LoopHolder.NETWORK
        return LoopHolder.CALLED if any(frame in self._looped for frame in frames) else LoopHolder.NONE

    def _of_profiled(self, syncs: Sequence[SyncPoint]) -> LoopHolder:
        """Return the holder by the profiler's frames: those around all rounds at once have the loop, or are around it.

        Without a loop of the network's there is none, as each call of it has frames of its own.
        """
        track, begin, end = (np.array([n], np.int64) for n in (syncs[0].track, syncs[0].ts, syncs[-1].end))
        if not any(name.startswith(_MODULE) for name in frames_around(self._trace, track, begin, begin)[0]):
            return LoopHolder.UNKNOWN
        (names,) = frames_around(self._trace, track, begin, end)
        modules = [at for at, name in enumerate(names) if name.startswith(_MODULE)]
        if not modules:
            return LoopHolder.NONE
        parts = [frame_parts(name) for name in names[modules[0] :]]
        inner = [part for part in parts if part and not _passes_on(part[0])]
        return LoopHolder.NETWORK if len(inner) <= 1 else LoopHolder.CALLED


def _passes_on(file: str) -> bool:
    return is_library(file) and passes_on(file)
