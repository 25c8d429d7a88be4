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
    root = program_root(origin.frames for origin in origins)
    return tuple(attributor.attributions(points, origins, root))


class _Origin(msgspec.Struct, frozen=True):
    """Where a sync point was asked for: itself, or in the forward pass."""

    forward: int
    """Row of the forward op that it is led to, NONE for a sync point outside backward."""
    home: int
    """The row whose surroundings tell the place: the forward op, or the call itself."""
    names: tuple[str, ...]
    """The profiler's Python frames around it, outermost first; empty without stacks."""
    recorded: RecordedStack | None
    """The stack that capture recorded."""
    frames: tuple[Frame, ...]
    """The frames that tell the place: recorded, warned of, or the profiler's; outermost first."""
    warned: bool
    """Whether torch's debug mode warned of it."""


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
        self.stacks.prepare([(point.calls, point.ops) for point in points])
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
        forward = [self.forward.of(point) for point in points]
        homes = [op if op != NONE else self._host_row(point) for op, point in zip(forward, points, strict=True)]
        names = self._frames_around(np.array(homes, np.int64))
        return list(map(self._origin, points, forward, homes, names, self._recorded(points, forward)))

    def _origin(
        self, point: SyncPoint, forward: int, home: int, names: tuple[str, ...], recorded: RecordedStack | None
    ) -> _Origin:
        warned = () if recorded else self.warned.of(point)
        return _Origin(
            forward, home, names, recorded, recorded.frames if recorded else warned or self.parse(names), bool(warned)
        )

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
        # Stacks are told apart as objects, which `origins` keeps: of one site they are the same.
        stack = id(origin.names), id(origin.recorded), id(origin.frames), origin.warned
        asked = (*stack, ops, scopes, led, point.api, point.diagnosis.use)
        site = self.sites.get(asked)
        if site is None:
            site = self.sites[asked] = self._site(point, origin, ops, scopes, root)
        return site

    def _site(
        self, point: SyncPoint, origin: _Origin, ops: tuple[str, ...], scopes: tuple[str, ...], root: str
    ) -> _Site:
        place = self.pick(origin.frames, exact=origin.recorded is not None)
        source = self._guessed(place.user, point, origin, ops)
        module = origin.recorded.module if origin.recorded and origin.recorded.module else self.modules(origin.names)
        confidence = Confidence.HIGH if origin.recorded or place.user else Confidence.MEDIUM
        path = self.path_in_program(place.user.file, root) if place.user else ""
        return _Site(
            (program_op(ops), ops, scopes, module, source, place.framework, place.owner),
            (confidence, path, place.in_loop, self._use(point, source, place.owner, ops)),
        )

    def _frames_around(self, rows: Int64) -> list[tuple[str, ...]]:
        s = self.trace.slices
        return self.trace.frames_around_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])

    def _host_row(self, point: SyncPoint) -> int:
        """The row whose surroundings tell the place: the call, or its op where only a sync row shows the wait."""
        own = self.trace.slices.track.item(point.calls[0]) == point.track
        return point.calls[0] if own or not point.ops else point.ops[-1]

    def _guessed(self, source: Source | None, point: SyncPoint, origin: _Origin, ops: tuple[str, ...]) -> Source | None:
        """The source with the lines that can be it; with a single one, that line (still a guess)."""
        if source is None or source.exact:
            return source
        if origin.warned:
            return replace(source, candidates=(source.line,))
        called = (self.trace.name(origin.forward),) if origin.forward != NONE else ops
        lines = self.candidates(source, called, point.api)
        return replace(source, line=lines[0] if len(lines) == 1 else source.line, candidates=lines)

    def _recorded(self, points: Sequence[SyncPoint], forward: Sequence[int]) -> list[RecordedStack | None]:
        """The recorded stack of each; for autograd's own ops, which have no frames, that of a sync in the forward op.

        Args:
            points: of the trace.
            forward: the row of each one's forward op, or NONE.
        """
        found = [self.stacks.of(point.calls, point.ops) for point in points]
        places = [at for at, own in enumerate(found) if forward[at] != NONE and (own is None or own.borrowed)]
        s, rows = self.trace.slices, np.array([forward[at] for at in places], np.int64)
        led = self.stacks.between_each(s.track[rows], s.ts[rows], s.ts[rows] + s.dur[rows])
        for at, stack in zip(places, led, strict=True):
            if stack or len(self.trace.frames):
                found[at] = stack
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
