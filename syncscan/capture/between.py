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

    Args:
        order: the order of the capture.
        watch: over its run.
        make: makes the course of a phase.
        guarded: runs a part of the capture so that nothing of its failures reaches the program.

    `written` leads from a phase's number to the name of its trace, `missing` to why there is none.
    """

    def __init__(
        self, order: CaptureOrder, watch: RunWatch, make: Make, guarded: Callable[[Callable[[], None]], None]
    ) -> None:
        self._order, self._watch, self._make, self._guarded = order, watch, make, guarded
        self.written: dict[tuple[Any, ...], str] = {}
        self.missing: dict[tuple[Any, ...], str] = {}
        self._left = list(self._wanted(watch.seen()))
        self._at: _LoopRounds | _Piece | None = None
        self._until = 0.0
        self._next()

    @property
    def over(self) -> bool:
        """Return whether there is nothing more to record."""
        return self._at is None

    @property
    def profiling(self) -> bool:
        """Return whether the profiler is on."""
        return self._at is not None and self._at.course is not None and self._at.course.profiling

    def step(self) -> None:
        """Handle the end of one of the program's steps."""
        at = self._at
        if at is None:
            return
        at.step()
        if at.over:
            self._took(at)
        elif isinstance(at, _LoopRounds) and at.few:
            at.close()
            self._begin(_Piece(at.wanted, self._order, self._watch, self._make, self._guarded))
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
            self._begin(kind(wanted, self._order, self._watch, self._make, self._guarded))

    def _begin(self, at: _LoopRounds | _Piece) -> None:
        if at.start():
            self._at, self._until = at, time.monotonic() + at.wanted.patience_s
        else:
            self.missing[key_of(at.wanted.phase)] = OLD
            self._at = None

    def _wanted(self, seen: KnownRun) -> Iterator[WantedPhase]:
        """Yield the phases to record, longest first."""
        whole = self._watch.took(seen, seen.samples)
        loops, able = Loops(), can_watch()
        worth = [(self._watch.took(seen, phase.samples), phase) for phase in seen.phases if phase.kind not in UNTOUCHED]
        worth = [(ns, phase) for ns, phase in worth if whole and ns >= LEAST * whole]
        for _, phase in sorted(worth, key=lambda pair: -pair[0])[:MOST]:
            once = self._watch.once_us(seen, phase)
            rounds = rounds_of(phase, loops)
            if not able:
                self.missing[key_of(phase)] = OLD
            elif rounds is None and once > PIECE_S * 1e6:
                self.missing[key_of(phase)] = LONG
            else:
                again = AGAIN * self._watch.again_s(phase)
                yield WantedPhase(phase, rounds, once, min(max(PATIENCE_S, again), MOST_PATIENCE_S))


@dataclass(frozen=True, slots=True)
class WantedPhase:
    """A phase to record: its own loop, its duration per occurrence, and how long to wait for it."""

    phase: SeenPhase
    rounds: Any
    once_us: float
    patience_s: float


class _LoopRounds:
    """Records rounds of a phase that is a loop."""

    def __init__(
        self,
        wanted: WantedPhase,
        order: CaptureOrder,
        watch: RunWatch,
        make: Make,
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        self.wanted, self._order, self._watch, self._make, self._guarded = wanted, order, watch, make, guarded
        self.course: CaptureRun | None = None
        self.path: Path | None = None
        self.over = False
        self._count = 0
        self._once: int | None = None
        self._piece: _Piece | None = None
        self._rounds = Rounds([wanted.rounds], self._round)

    def start(self) -> bool:
        """Start counting its rounds; return False where that isn't possible."""
        return self._rounds.start()

    def step(self) -> None:
        """Handle the end of a program step: the phase, if it was active, is over."""
        if self._count:
            self._once = self._count
        self._count = 0
        if self.course is not None:
            self._ended(cut=True)

    def close(self) -> None:
        """Stop counting, and switch everything off."""
        self._rounds.close()
        course, self.course = self.course, None
        if course is not None:
            course.abandon()
            self._watch.settle()

    @property
    def few(self) -> bool:
        """Return whether it has too few rounds to be timed, so that it is recorded whole."""
        return self._once is not None and self._once < FEW

    def _round(self, number: int) -> None:
        self._guarded(self._ended_round)

    def _ended_round(self) -> None:
        self._count += 1
        course = self.course
        if course is not None:
            course.step()
            if course.over:
                self._ended(cut=False)
        elif not self.over and self._due():
            self._watch.disturb("profiler")
            self.course = self._make(_order_of(self._order, self.wanted.phase, self._plan()), self._as_stored())
            self.course.start()

    def _due(self) -> bool:
        return self._count >= MANY or (self._count == 1 and self._once is not None and self._once >= FEW)

    def _plan(self) -> Plan:
        """Return a plan that fits into the phase's number of rounds."""
        rounds = (self._once or MANY) - 2
        active = max(1, min(self._order.plan.active, rounds // 3))
        warmup = max(1, min(self._order.plan.warmup, (rounds - active) // 2))
        timed = min(self._order.plan.calibrate, rounds - active - warmup - 1)
        return Plan(wait=0, warmup=warmup, active=active, calibrate=timed if timed > 2 else 0, settle=1)

    def _as_stored(self) -> dict[str, Any]:
        return {
            **self._watch.place_of(self.wanted.phase),
            "rounds": self._once,
            "once_us": round(self.wanted.once_us, 1),
        }

    def _ended(self, *, cut: bool) -> None:
        """Handle the end of the course or the phase; what was recorded by then is kept."""
        course, self.course = self.course, None
        if course is None:
            return
        if cut:
            course.cut() if course.profiling else course.abandon()
        self._watch.settle()
        self.over = bool(course.paths)
        self.path = course.paths[-1] if course.paths else None


class _Piece:
    """Records a phase that isn't a loop, whole."""

    def __init__(
        self,
        wanted: WantedPhase,
        order: CaptureOrder,
        watch: RunWatch,
        make: Make,
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        self.wanted, self._order, self._watch, self._make, self._guarded = wanted, order, watch, make, guarded
        self.course: CaptureRun | None = None
        self.path: Path | None = None
        self.over = False
        place = wanted.phase.place
        self._passes = LinePasses(
            place.code, place.first, place.last, lambda: guarded(self._began), lambda: guarded(self._left)
        )

    def start(self) -> bool:
        """Start watching for it; return False where that isn't possible."""
        return self._passes.start()

    def step(self) -> None:
        """Handle the end of one of the program's steps."""

    def close(self) -> None:
        """Stop watching, and switch everything off."""
        self._passes.close()
        course, self.course = self.course, None
        if course is not None:
            course.abandon()
            self._watch.settle()

    def _began(self) -> None:
        if self.over or self.course is not None:
            return
        self._watch.disturb("profiler")
        plan = Plan(wait=0, warmup=1, active=1, calibrate=0)
        once = round(self.wanted.once_us, 1)
        order = _order_of(self._order, self.wanted.phase, plan)
        self.course = self._make(order, {**self._watch.place_of(self.wanted.phase), "rounds": None, "once_us": once})
        self.course.start()
        self.course.step()  # there is nothing before it that could warm the profiler up

    def _left(self) -> None:
        course, self.course = self.course, None
        if course is None:
            return
        course.step()
        self._watch.settle()
        self.over = course.over
        self.path = course.paths[-1] if course.paths else None


def _order_of(order: CaptureOrder, phase: SeenPhase, plan: Plan) -> CaptureOrder:
    kind = phase.kind.value if phase.kind is not PhaseKind.OTHER else phase.name.rstrip("()")
    return replace(order, plan=plan, name=f"{order.name}_{''.join(c if c.isalnum() else '_' for c in kind)}")
