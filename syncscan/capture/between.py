"""Record traces of the phases of a run that its recorded steps don't contain.

A phase that is a loop is recorded like a training loop: some of its rounds are timed without the profiler, some warm it
up, some are recorded, all while the phase runs once. One that is no loop, as a checkpoint, is recorded whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscan.capture.plan import Plan
from syncscan.capture.rounds import LinePasses, Rounds, can_watch
from syncscan.capture.run_watch import KnownRun, RunWatch, key_of
from syncscan.facts.loops import Loops
from syncscan.facts.program_phases import SeenPhase, rounds_of
from syncscan.model.program_run import PhaseKind

if TYPE_CHECKING:
    from syncscan.capture.capture_run import CaptureOrder, CaptureRun

LEAST = 0.03
"""Least fraction of the run's time from which a phase is recorded."""
MOST = 4
"""Most phases that are recorded, longest first."""
PATIENCE_S, MOST_PATIENCE_S = 4.0, 30.0
"""Least and most time to wait for a phase; in between, `AGAIN` times the interval after which it recurred."""
AGAIN = 2.5
PIECE_S = 3.0
"""Longest phase without a loop that is recorded: more is too much for one trace."""
UNTOUCHED = (PhaseKind.LOADER,)
"""Phases that get no trace, as the device takes no part in them."""
FEW, MANY = 4, 40
"""A loop with fewer rounds is recorded whole; from the second number on, its length needn't be known first."""

LATER = "it didn't recur while the capture waited for it"
LONG = "it isn't a loop, and is too long for one trace"
OLD = "Python reports single loops from 3.12 on"

Make = Callable[["CaptureOrder", dict[str, Any]], "CaptureRun"]
"""Factory of a phase's `CaptureRun`, from the capture's order and the phase's metadata for the trace."""


class PhaseRecording:
    """Records phases while the program's steps continue.

    `order` and `watch` are the capture's, `make` makes the course of a phase, `guarded` runs a part of the capture so
    that nothing of its failures reaches the program. `written` leads from a phase's number to the name of its trace,
    `missing` to why there is none.
    """

    def __init__(
        self, order: CaptureOrder, watch: RunWatch, make: Make, guarded: Callable[[Callable[[], None]], None]
    ) -> None:
        self.order, self.watch, self.make, self.guarded = order, watch, make, guarded
        self.written: dict[tuple[Any, ...], str] = {}
        self.missing: dict[tuple[Any, ...], str] = {}
        self._left = list(self._wanted(watch.seen()))
        self._at: _LoopRounds | _Piece | None = None
        self._until = 0.0
        self._next()

    @property
    def over(self) -> bool:
        return self._at is None

    @property
    def profiling(self) -> bool:
        return self._at is not None and self._at.course is not None and self._at.course.profiling

    def step(self) -> None:
        at = self._at
        if at is None:
            return
        at.step()
        if at.over:
            self._took(at)
        elif isinstance(at, _LoopRounds) and at.few:
            at.close()
            self._begin(_Piece(at.wanted, self))
        elif time.monotonic() > self._until:
            self.missing[key_of(at.wanted.phase)] = LATER
            at.close()
            self._next()

    def close(self) -> None:
        """Stop recording, in any state."""
        at, self._at = self._at, None
        self._left.clear()
        if at is not None:
            at.close()

    def _took(self, at: _LoopRounds | _Piece) -> None:
        self.written[key_of(at.wanted.phase)] = at.path.name if at.path else ""
        at.close()
        self._next()

    def _next(self) -> None:
        self._at = None
        while self._left and self._at is None:
            wanted = self._left.pop(0)
            kind = _Piece if wanted.rounds is None else _LoopRounds
            self._begin(kind(wanted, self))

    def _begin(self, at: _LoopRounds | _Piece) -> None:
        if at.start():
            self._at, self._until = at, time.monotonic() + at.wanted.patience_s
        else:
            self.missing[key_of(at.wanted.phase)] = OLD
            self._at = None

    def _wanted(self, seen: KnownRun) -> Iterator[WantedPhase]:
        """Yield the phases to record, longest first."""
        whole = self.watch.took(seen, seen.samples)
        loops, able = Loops(), can_watch()
        worth = [(self.watch.took(seen, phase.samples), phase) for phase in seen.phases if phase.kind not in UNTOUCHED]
        worth = [(ns, phase) for ns, phase in worth if whole and ns >= LEAST * whole]
        for _, phase in sorted(worth, key=lambda pair: -pair[0])[:MOST]:
            once = self.watch.once_us(seen, phase)
            rounds = rounds_of(phase, loops)
            if not able:
                self.missing[key_of(phase)] = OLD
            elif rounds is None and once > PIECE_S * 1e6:
                self.missing[key_of(phase)] = LONG
            else:
                again = AGAIN * self.watch.again_s(phase)
                yield WantedPhase(phase, rounds, once, min(max(PATIENCE_S, again), MOST_PATIENCE_S))


@dataclass(frozen=True, slots=True)
class WantedPhase:
    """A phase to record: its own loop, its duration per occurrence, and how long to wait for it."""

    phase: SeenPhase
    rounds: Any
    once_us: float
    patience_s: float


class _PhaseRecorder:
    """Records one phase; `over` says that it has, `path` is its trace."""

    passes: Rounds | LinePasses
    """Tells when the phase runs."""

    def __init__(self, wanted: WantedPhase, owner: PhaseRecording) -> None:
        self.wanted, self._owner = wanted, owner
        self.course: CaptureRun | None = None
        self.path: Path | None = None
        self.over = False

    def start(self) -> bool:
        """Start watching for it; return False where that isn't possible."""
        return self.passes.start()

    def step(self) -> None:
        """Handle the end of one of the program's steps."""

    def close(self) -> None:
        self.passes.close()
        course, self.course = self.course, None
        if course is not None:
            course.abandon()
            self._owner.watch.settle()

    def _begin(self, plan: Plan, rounds: int | None) -> CaptureRun:
        watch, phase = self._owner.watch, self.wanted.phase
        watch.disturb("profiler")
        stored = {**watch.place_of(phase), "rounds": rounds, "once_us": round(self.wanted.once_us, 1)}
        self.course = self._owner.make(_order_of(self._owner.order, phase, plan), stored)
        self.course.start()
        return self.course

    def _end(self, *, cut: bool) -> None:
        """Handle the end of the course or the phase; what was recorded by then is kept."""
        course, self.course = self.course, None
        if course is None:
            return
        if cut:
            course.cut() if course.profiling else course.abandon()
        self._owner.watch.settle()
        self.over = bool(course.paths)
        self.path = course.paths[-1] if course.paths else None


class _LoopRounds(_PhaseRecorder):
    """Records rounds of a phase that is a loop."""

    def __init__(self, wanted: WantedPhase, owner: PhaseRecording) -> None:
        super().__init__(wanted, owner)
        self._count = 0
        self._once: int | None = None
        self.passes = Rounds([wanted.rounds], lambda number: owner.guarded(self._ended_round))

    def step(self) -> None:
        """Handle the end of a program step: the phase, if it was active, is over."""
        if self._count:
            self._once = self._count
        self._count = 0
        self._end(cut=True)

    @property
    def few(self) -> bool:
        """Return whether it has too few rounds to be timed, so that it is recorded whole."""
        return self._once is not None and self._once < FEW

    def _ended_round(self) -> None:
        self._count += 1
        course = self.course
        if course is not None:
            course.step()
            if course.over:
                self._end(cut=False)
        elif not self.over and self._due():
            self._begin(self._plan(), self._once)

    def _due(self) -> bool:
        return self._count >= MANY or (self._count == 1 and self._once is not None and self._once >= FEW)

    def _plan(self) -> Plan:
        """Return a plan that fits into the phase's number of rounds."""
        plan, rounds = self._owner.order.plan, (self._once or MANY) - 2
        active = max(1, min(plan.active, rounds // 3))
        warmup = max(1, min(plan.warmup, (rounds - active) // 2))
        timed = min(plan.calibrate, rounds - active - warmup - 1)
        return Plan(wait=0, warmup=warmup, active=active, calibrate=timed if timed > 2 else 0, settle=1)


class _Piece(_PhaseRecorder):
    """Records a phase that isn't a loop, whole."""

    def __init__(self, wanted: WantedPhase, owner: PhaseRecording) -> None:
        super().__init__(wanted, owner)
        place, guarded = wanted.phase.place, owner.guarded
        self.passes = LinePasses(
            place.code, place.first, place.last, lambda: guarded(self._began), lambda: guarded(self._left)
        )

    def _began(self) -> None:
        if not self.over and self.course is None:
            # A step at once: there is nothing before it that could warm the profiler up.
            self._begin(Plan(wait=0, warmup=1, active=1, calibrate=0), None).step()

    def _left(self) -> None:
        if self.course is not None:
            self.course.step()
        self._end(cut=False)


def _order_of(order: CaptureOrder, phase: SeenPhase, plan: Plan) -> CaptureOrder:
    kind = phase.kind.value if phase.kind is not PhaseKind.OTHER else phase.name.rstrip("()")
    return replace(order, plan=plan, name=f"{order.name}_{''.join(c if c.isalnum() else '_' for c in kind)}")
