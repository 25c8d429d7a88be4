"""Attribute each sync point to its op, scope, module, source line, owner, phase, thread and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.attribute.line_calls import candidates, diagnosed_by_line, use_of
from syncscan.attribute.phase import ForwardOps, Phases
from syncscan.attribute.source_file import (
    OWN,
    SourceFiles,
    available_sources,
    kept_sources,
    source_files,
    with_excerpts,
)
from syncscan.attribute.source_lines import (
    PickedLines,
    modules,
    parse,
    path_in_program,
    pick,
    program_root,
)
from syncscan.facts.paths import Paths, frames_around
from syncscan.facts.recorded_stacks import RecordedStack, RecordedStacks
from syncscan.model.arrays import Int64
from syncscan.model.capture import Frame
from syncscan.model.finding import Attribution, Confidence, Phase, Source, SyncPoint, Use
from syncscan.model.slice_names import program_op
from syncscan.model.trace import NONE, Trace


def attribute(trace: Trace, points: Iterable[SyncPoint], files: SourceFiles = OWN) -> tuple[SyncPoint, ...]:
    """Return the sync points attributed to ops, scopes, modules, source lines, phases, threads and steps.

    A sync point on an autograd thread is traced to the forward op that created its backward op, and takes scope, module
    and line from there.

    Files that may be read show lines that weren't recorded, and what a value is used for.
    """
    return tuple(_Attributor(trace, tuple(points), available_sources(trace, files)).attributed())


class _Stack(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A stack that leads to a sync point; sync points of one call site share the object."""

    names: tuple[str, ...]
    """The profiler's Python frames, outermost first; empty without stacks."""
    recorded: RecordedStack | None

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Frames that locate the sync: recorded ones, or the profiler's; outermost first."""
        return self.recorded.frames if self.recorded else parse(self.names)

    @cached_property
    def place(self) -> PickedLines:
        return pick(self.frames, exact=self.recorded is not None)

    @cached_property
    def module(self) -> tuple[str, ...]:
        return self.recorded.module if self.recorded and self.recorded.module else modules(self.names)


_Names = tuple[str, ...]


class _Attributor:
    """Attributes the sync points of a trace; columns have one entry for each."""

    def __init__(self, trace: Trace, points: Sequence[SyncPoint], files: SourceFiles) -> None:
        self.trace = trace
        self.points = points
        self.files = files
        self.first = np.array([point.calls[0] for point in points], np.int64)
        outermost = np.array([point.ops[0] if point.ops else NONE for point in points], np.int64)
        self.forward = ForwardOps(trace).of_each(points, outermost)
        """Row of the forward op that each belongs to; NONE outside of backward."""
        self.homes = np.where(self.forward == NONE, self._host_rows(), self.forward)
        """Row around which scopes and frames are looked up: the forward op's, or the call's own."""
        self.stacks = self._stacks(outermost)
        self.threads = [track.thread or f"thread {track.tid}" for track in trace.tracks]
        self.sites: dict[tuple[Any, ...], Attribution] = {}
        """Attributions that sync points of one call site share, all but phase, thread and step."""
        # Sites of one program share frames, so what follows from frames is computed once per frame.
        self.uses: dict[tuple[Source, tuple[str, ...]], Use] = {}
        self.candidates = cache(partial(candidates, files=self.files))
        self.path_in_program = cache(path_in_program)

    def _stacks(self, outermost: Int64) -> list[_Stack]:
        """Return for each sync point the stack that tells where it comes from."""
        s = self.trace.slices
        names = frames_around(self.trace, s.track[self.homes], s.ts[self.homes], s.end[self.homes])
        recorded = self._recorded(outermost)
        stacks_by_key: dict[tuple[_Names, RecordedStack | None], _Stack] = {}
        stacks = []
        for parts in zip(names, recorded, strict=True):
            if parts not in stacks_by_key:
                stacks_by_key[parts] = _Stack(*parts)
            stacks.append(stacks_by_key[parts])
        return stacks

    def attributed(self) -> Iterator[SyncPoint]:
        """Yield each sync point with its attribution."""
        root = program_root(stack.frames for stack in self.stacks)
        path_of, parent = self.trace.cached(Paths).to, self.trace.slices.parent
        paths, home = (list(map(path_of, parent[rows].tolist())) for rows in (self.first, self.homes))
        begins = np.array([point.ts for point in self.points], np.int64)
        steps, phases = self.trace.steps_at(begins), Phases(self.trace).of_each(begins, paths)
        for point, led, stack, path, place, phase, step in zip(
            self.points, self.forward.tolist(), self.stacks, paths, home, phases, steps, strict=True
        ):
            ops = path.names.ops if path.ops == point.ops else tuple(map(self.trace.name, point.ops))
            site = self._site_of(point, led, stack, ops, place.names.scopes, root)
            number = step.number if step else None
            where = replace(site, phase=phase, thread=self.threads[point.track], step=number)
            yield replace(point, where=where)

    def _site_of(
        self, point: SyncPoint, forward: int, stack: _Stack, ops: _Names, scopes: _Names, root: str
    ) -> Attribution:
        led = "" if forward == NONE else self.trace.name(forward)
        key = stack, ops, scopes, led, point.api, point.diagnosis.use
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = self._site(point, forward, stack, ops, scopes, root)
        return site

    def _site(
        self, point: SyncPoint, forward: int, stack: _Stack, ops: _Names, scopes: _Names, root: str
    ) -> Attribution:
        place = stack.place
        source = self._with_candidates(place.user, point, forward, stack, ops)
        confidence = Confidence.HIGH if stack.recorded or place.user else Confidence.MEDIUM
        path = self.path_in_program(place.user.file, root) if place.user else ""
        return Attribution(
            op=program_op(ops),
            op_stack=ops,
            scope=scopes,
            module=stack.module,
            source=source,
            called_from=place.framework,
            owner=place.owner,
            phase=Phase.OTHER,
            thread="",
            step=None,
            confidence=confidence,
            path=path,
            in_loop=place.in_loop,
            value=self._use(point, source, place.owner, ops),
        )

    def _host_rows(self) -> Int64:
        """Return the rows around which to look: the call, or its op where only a sync row shows the wait."""
        calls: Int64 = self.first.copy()
        tracks = np.array([point.track for point in self.points], np.int64)
        for place in np.flatnonzero(self.trace.slices.track[calls] != tracks).tolist():
            ops = self.points[place].ops
            calls[place] = ops[-1] if ops else calls[place]
        return calls

    def _with_candidates(
        self, source: Source | None, point: SyncPoint, forward: int, stack: _Stack, ops: _Names
    ) -> Source | None:
        """Return the source with the candidate lines; a single candidate becomes its line, still inexact."""
        if source is None or source.exact:
            return source
        called = (self.trace.name(forward),) if forward != NONE else ops
        lines = self.candidates(source, called, point.api)
        return replace(source, line=lines[0] if len(lines) == 1 else source.line, candidates=lines)

    def _recorded(self, outermost: Int64) -> list[RecordedStack | None]:
        """Return each sync point's recorded stack, or None.

        Autograd's own ops have no frames: they get the stack of a sync inside their forward op.
        """
        recorded, last = self.trace.cached(RecordedStacks), [point.calls[-1] for point in self.points]
        stacks = recorded.of_each(self.first, np.array(last, np.int64), outermost)
        led = np.flatnonzero(self.forward != NONE).tolist()
        places = [place for place in led if (own := stacks[place]) is None or own.borrowed]
        s, rows = self.trace.slices, self.forward[places]
        instead = recorded.between_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])
        for place, stack in zip(places, instead, strict=True):
            if stack or len(self.trace.frames):
                stacks[place] = stack
        return stacks

    def _use(self, point: SyncPoint, source: Source | None, owner: str, ops: tuple[str, ...]) -> Use:
        """Return the use that the rule states, else what the source shows of a value that the program itself reads."""
        stated = point.diagnosis.use or Use.UNKNOWN
        if stated is not Use.UNKNOWN or source is None or owner != "user":
            return stated
        if (source, ops) not in self.uses:
            self.uses[source, ops] = use_of(source, ops, self.files)
        return self.uses[source, ops]


__all__ = ["OWN", "SourceFiles", "attribute", "diagnosed_by_line", "kept_sources", "source_files", "with_excerpts"]
