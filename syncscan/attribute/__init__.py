"""Attribute each sync point to its op, scope, module, source line, owner, phase, thread and step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

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
    points = tuple(points)
    attributor, columns = _Attributor(trace, points, available_sources(trace, files)), _columns_of(points)
    origins = attributor.origins(points, columns)
    root = program_root(stack.frames for stack in origins.stacks)
    return tuple(attributor.attributed(points, columns, origins, root))


class _Columns(NamedTuple):
    """Columns with one entry per sync point."""

    first: Int64
    last: Int64
    outermost: Int64
    """Row of the outermost op around the sync point, or NONE."""
    tracks: Int64
    begins: Int64


def _columns_of(points: Sequence[SyncPoint]) -> _Columns:
    return _Columns(
        np.array([point.calls[0] for point in points], np.int64),
        np.array([point.calls[-1] for point in points], np.int64),
        np.array([point.ops[0] if point.ops else NONE for point in points], np.int64),
        np.array([point.track for point in points], np.int64),
        np.array([point.ts for point in points], np.int64),
    )


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


class _Origins(NamedTuple):
    """Where sync points come from: their own call, or an op of the forward pass."""

    forward: Int64
    """Row of the forward op that each sync point belongs to; NONE outside of backward."""
    homes: Int64
    """Row around which scopes and frames are looked up: the forward op's, or the call's own."""
    stacks: list[_Stack]


_Names = tuple[str, ...]


class _Attributor:
    def __init__(self, trace: Trace, points: Sequence[SyncPoint], files: SourceFiles) -> None:
        self.trace = trace
        self.files = files
        self.forward = ForwardOps(trace)
        self.stacks = trace.cached(RecordedStacks)
        self.phases = Phases(trace)
        self.threads = [track.thread or f"thread {track.tid}" for track in trace.tracks]
        self.sites: dict[tuple[Any, ...], Attribution] = {}
        """Attributions that sync points of one call site share, all but phase, thread and step."""
        # Sites of one program share frames, so what follows from frames is computed once per frame.
        self.uses: dict[tuple[Source, tuple[str, ...]], Use] = {}
        self.candidates = cache(partial(candidates, files=self.files))
        self.path_in_program = cache(path_in_program)

    def origins(self, points: Sequence[SyncPoint], columns: _Columns) -> _Origins:
        """Find for each sync point the stack that tells where it comes from."""
        forward = self.forward.of_each(points, columns.outermost)
        homes = np.where(forward == NONE, self._host_rows(points, columns), forward)
        names, recorded = self._frames_around(homes), self._recorded(columns, forward)
        stacks_by_key: dict[tuple[_Names, RecordedStack | None], _Stack] = {}
        stacks = []
        for parts in zip(names, recorded, strict=True):
            if parts not in stacks_by_key:
                stacks_by_key[parts] = _Stack(*parts)
            stacks.append(stacks_by_key[parts])
        return _Origins(forward, homes, stacks)

    def attributed(
        self, points: Sequence[SyncPoint], columns: _Columns, origins: _Origins, root: str
    ) -> Iterator[SyncPoint]:
        """Yield each sync point with its attribution, in a program that was started in the folder `root`."""
        path_of, parent = self.trace.cached(Paths).to, self.trace.slices.parent
        paths, home = (list(map(path_of, parent[rows].tolist())) for rows in (columns.first, origins.homes))
        steps, phases = self.trace.steps_at(columns.begins), self.phases.of_each(columns.begins, paths)
        forward = origins.forward.tolist()
        for point, led, stack, path, place, phase, step in zip(
            points, forward, origins.stacks, paths, home, phases, steps, strict=True
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

    def _frames_around(self, rows: Int64) -> list[tuple[str, ...]]:
        s = self.trace.slices
        return frames_around(self.trace, s.track[rows], s.ts[rows], s.end[rows])

    def _host_rows(self, points: Sequence[SyncPoint], columns: _Columns) -> Int64:
        """Return the rows around which to look: the call, or its op where only a sync row shows the wait."""
        calls: Int64 = columns.first.copy()
        elsewhere = self.trace.slices.track[calls] != columns.tracks
        for place in np.flatnonzero(elsewhere).tolist():
            calls[place] = points[place].ops[-1] if points[place].ops else calls[place]
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

    def _recorded(self, columns: _Columns, forward: Int64) -> list[RecordedStack | None]:
        """Return each sync point's recorded stack, or None.

        Autograd's own ops have no frames: they get the stack of a sync inside their forward op.
        """
        stacks = self.stacks.of_each(columns.first, columns.last, columns.outermost)
        led = np.flatnonzero(forward != NONE).tolist()
        places = [place for place in led if (own := stacks[place]) is None or own.borrowed]
        s, rows = self.trace.slices, forward[places]
        instead = self.stacks.between_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])
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
