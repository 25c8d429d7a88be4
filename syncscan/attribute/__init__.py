"""From sync points to where they belong: op, scope, module, source line, owner, phase, thread and step of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.attribute.backward import ForwardOps
from syncscan.attribute.excerpts import at_hand, with_excerpts
from syncscan.attribute.guess import candidates
from syncscan.attribute.phase import Phases
from syncscan.attribute.place import modules, parse, pick
from syncscan.attribute.program import path_in_program, program_root
from syncscan.attribute.source_file import OWN, SourceFiles, kept_sources, source_files
from syncscan.attribute.use import use_of
from syncscan.attribute.warned import WarnedLines
from syncscan.model.arrays import Int64
from syncscan.model.capture import Frame
from syncscan.model.finding import Attribution, Confidence, Source, SyncPoint, Use
from syncscan.model.names import program_op
from syncscan.model.paths import Path
from syncscan.model.recorded_stacks import RecordedStack, RecordedStacks
from syncscan.model.trace import NONE, Trace


def attribute(trace: Trace, points: Iterable[SyncPoint], files: SourceFiles = OWN) -> tuple[Attribution, ...]:
    """Say where each sync point belongs.

    One on an autograd thread is led to the forward op that made it, and takes scope, module and line from there.

    Args:
        trace: linked.
        points: of the trace.
        files: the source files that may be read, for lines that nobody recorded and for what a value is used for.

    Returns:
        One attribution a sync point, in their order.
    """
    points = tuple(points)
    attributor = _Attributor(trace, points, at_hand(trace, files))
    origins = attributor.origins(points)
    root = program_root(origin.stack.frames for origin in origins)
    return tuple(attributor.attributions(points, origins, root))


class _Stack(msgspec.Struct, frozen=True, eq=False):
    """A stack that tells where a sync point was asked for; those of one site share the object."""

    names: tuple[str, ...]
    """The profiler's Python frames, outermost first; empty without stacks."""
    recorded: RecordedStack | None
    """The stack that capture recorded."""
    frames: tuple[Frame, ...]
    """The frames that tell the place: recorded, warned of, or the profiler's; outermost first."""
    warned: bool
    """Whether torch's debug mode warned of it."""


class _Origin(NamedTuple):
    """Where a sync point was asked for: itself, or in the forward pass."""

    forward: int
    """Row of the forward op that it is led to, NONE for a sync point outside backward."""
    home: int
    """The row whose surroundings tell the place: the forward op, or the call itself."""
    stack: _Stack


_Names = tuple[str, ...]


class _Site(NamedTuple):
    """What is the same of all sync points of one call site: the fields of `Attribution` before and behind its times."""

    first: tuple[str, _Names, _Names, _Names, Source | None, Source | None, str]
    """From `op` to `owner`."""
    last: tuple[Confidence, str, bool, Use]
    """From `confidence` on."""


class _Attributor:
    def __init__(self, trace: Trace, points: Sequence[SyncPoint], files: SourceFiles) -> None:
        self.trace = trace
        self.files = files
        self.forward = ForwardOps(trace)
        self.stacks = trace.kept(RecordedStacks)
        self.warned = WarnedLines(trace, points)
        self.phases = Phases(trace)
        self.threads = [track.thread or f"thread {track.tid}" for track in trace.tracks]
        self.sites: dict[tuple[Any, ...], _Site] = {}
        # Sites of one program share frames, and what follows from them is found once for each.
        self.uses: dict[tuple[Source, tuple[str, ...]], Use] = {}
        self.pick = cache(pick)
        self.parse = cache(parse)
        self.modules = cache(modules)
        self.candidates = cache(partial(candidates, files=self.files))
        self.path_in_program = cache(path_in_program)

    def origins(self, points: Sequence[SyncPoint]) -> list[_Origin]:
        """Find for each sync point the stack that tells where it comes from."""
        forward = self.forward.of_each(points)
        homes = np.where(forward == NONE, self._host_rows(points), forward)
        names, recorded = self._frames_around(homes), self._recorded(points, forward)
        stacks: dict[tuple[int, int, int], _Stack] = {}
        found = []
        for point, led, home, around, own in zip(points, forward.tolist(), homes.tolist(), names, recorded, strict=True):
            warned = () if own else self.warned.of(point)
            parts = id(around), id(own), id(warned)  # `names` and `recorded` keep them, and of one site they are the same
            stack = stacks.get(parts)
            if stack is None:
                frames = own.frames if own else warned or self.parse(around)
                stack = stacks[parts] = _Stack(around, own, frames, bool(warned))
            found.append(_Origin(led, home, stack))
        return found

    def attributions(self, points: Sequence[SyncPoint], origins: Sequence[_Origin], root: str) -> Iterator[Attribution]:
        """Say where each sync point belongs, in a program that was started from the folder `root`."""
        parent = self.trace.slices.parent
        calls = np.array([point.calls[0] for point in points], np.int64)
        own = self.trace.paths.to_each(parent[calls])
        home = self.trace.paths.to_each(parent[np.array([origin.home for origin in origins], np.int64)])
        steps = self.trace.steps_at(np.array([point.ts for point in points], np.int64))
        phases = self.phases.of_each(points, own)
        for point, origin, path, place, phase, step in zip(points, origins, own, home, phases, steps, strict=True):
            site = self._site_of(point, origin, path, place.names.scopes, root)
            number = step.number if step else None
            yield Attribution(*site.first, phase, self.threads[point.track], number, *site.last)

    def _site_of(self, point: SyncPoint, origin: _Origin, path: Path, scopes: tuple[str, ...], root: str) -> _Site:
        ops = path.names.ops if path.ops == point.ops else tuple(map(self.trace.name, point.ops))
        led = "" if origin.forward == NONE else self.trace.name(origin.forward)
        asked = origin.stack, ops, scopes, led, point.api, id(point.diagnosis.use)
        site = self.sites.get(asked)
        if site is None:
            site = self.sites[asked] = self._site(point, origin, ops, scopes, root)
        return site

    def _site(
        self, point: SyncPoint, origin: _Origin, ops: tuple[str, ...], scopes: tuple[str, ...], root: str
    ) -> _Site:
        recorded = origin.stack.recorded
        place = self.pick(origin.stack.frames, exact=recorded is not None)
        source = self._guessed(place.user, point, origin, ops)
        module = recorded.module if recorded and recorded.module else self.modules(origin.stack.names)
        confidence = Confidence.HIGH if recorded or place.user else Confidence.MEDIUM
        path = self.path_in_program(place.user.file, root) if place.user else ""
        return _Site(
            (program_op(ops), ops, scopes, module, source, place.framework, place.owner),
            (confidence, path, place.in_loop, self._use(point, source, place.owner, ops)),
        )

    def _frames_around(self, rows: Int64) -> list[tuple[str, ...]]:
        s = self.trace.slices
        return self.trace.frames_around_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])

    def _host_rows(self, points: Sequence[SyncPoint]) -> Int64:
        """The row whose surroundings tell the place: the call, or its op where only a sync row shows the wait."""
        calls = np.array([point.calls[0] for point in points], np.int64)
        elsewhere = self.trace.slices.track[calls] != np.array([point.track for point in points], np.int64)
        for place in np.flatnonzero(elsewhere).tolist():
            calls[place] = points[place].ops[-1] if points[place].ops else calls[place]
        return calls

    def _guessed(self, source: Source | None, point: SyncPoint, origin: _Origin, ops: tuple[str, ...]) -> Source | None:
        """The source with the lines that can be it; with a single one, that line (still a guess)."""
        if source is None or source.exact:
            return source
        if origin.stack.warned:
            return replace(source, candidates=(source.line,))
        called = (self.trace.name(origin.forward),) if origin.forward != NONE else ops
        lines = self.candidates(source, called, point.api)
        return replace(source, line=lines[0] if len(lines) == 1 else source.line, candidates=lines)

    def _recorded(self, points: Sequence[SyncPoint], forward: Int64) -> list[RecordedStack | None]:
        """The recorded stack of each; for autograd's own ops, which have no frames, that of a sync in the forward op.

        Args:
            points: of the trace.
            forward: the row of each one's forward op, or NONE.
        """
        found = self.stacks.of_each([point.calls for point in points], [point.ops for point in points])
        led = np.flatnonzero(forward != NONE).tolist()
        places = [place for place in led if (own := found[place]) is None or own.borrowed]
        s, rows = self.trace.slices, forward[places]
        instead = self.stacks.between_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])
        for place, stack in zip(places, instead, strict=True):
            if stack or len(self.trace.frames):
                found[place] = stack
        return found

    def _use(self, point: SyncPoint, source: Source | None, owner: str, ops: tuple[str, ...]) -> Use:
        """What the rule says of the value, else what the source of a program's own read does."""
        said = point.diagnosis.use
        if said is not Use.UNKNOWN or source is None or owner != "user":
            return said
        if (source, ops) not in self.uses:
            self.uses[source, ops] = use_of(source, ops, self.files)
        return self.uses[source, ops]


__all__ = ["OWN", "SourceFiles", "attribute", "kept_sources", "source_files", "with_excerpts"]
