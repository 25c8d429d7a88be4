"""Time pairs of processes, one of each program, until their difference is known.

A pair of processes is started, one of each program. Both run until they have warmed up; then one is paused at the end
of a step while the other's are timed, A B B A A B B A, so that what changes on the machine from second to second
changes both. Of each program's turns the median counts, which a pause of the machine doesn't move; a turn is the mean
of its steps, so that what a program does every few steps counts. The next pair begins with the other program.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from syncscan.errors import ProgramFailed
from syncscan.proof import estimate, sameness
from syncscan.proof.outcome import Pair, ProofGain, Side
from syncscan.proof.trial import TooFewSteps, Turn

LIMIT_S = 300.0
MATTERS = 0.005
SEEDED = 10
"""Number of compared steps; enough to recognize the rarest optimizer (`capture.optimizer_hook.RARER`)."""
TURN_S = 0.2
"""How long a turn lasts, about: long beside reading the clock and short beside what changes on a machine."""
FEWEST, MOST = 4, 200
"""Steps of a turn."""
TURNS, SLOW_TURNS, FEWEST_TURNS = 12, 4, 2
SLOW_US = 50_000.0
"""Steps from this on make turns longer than `TURN_S` would have them, so there are fewer."""
WARM = 10
"""Steps that a program makes before its first turn, at most; see `proof.trial_process`."""
ORDER = (0, 1, 1, 0)


class Run(NamedTuple):
    """One run of a program."""

    side: Side
    rounded: bool = False
    """Whether each of its parameters is moved by a rounding error first."""
    delayed: bool = False
    """Whether each of its non-blocking copies is delayed on the device."""


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """Options of a comparison, as in `prove`."""

    limit_s: float = LIMIT_S
    matters: float = MATTERS
    steps: int = SEEDED
    tolerance: float = sameness.TOLERANCE
    apart: bool = False
    progress: Callable[[str], None] = field(default=lambda sentence: None)
    higher: bool = False
    """Whether the larger of two numbers is better."""
    turn_s: float = field(default_factory=lambda: TURN_S)
    fewest: int = FEWEST
    """Steps of a turn, at least."""


class Timed(Protocol):
    """A program that is timed in turns, as `Trial` is."""

    def ready(self) -> int: ...

    def turn(self, steps: int, /) -> Turn: ...

    def close(self, grace_s: float = ...) -> int: ...


TimedProgram = TypeVar("TimedProgram", bound=Timed, covariant=True)


class Opens(Protocol[TimedProgram]):
    """Starts one of two programs, as `Trials` does."""

    def open(self, side: Side, **options: Any) -> TimedProgram: ...


@contextlib.contextmanager
def running(trials: Opens[TimedProgram], runs: Sequence[Run], seeded: int = 0) -> Iterator[list[TimedProgram]]:
    """Start programs in processes of their own until the context ends; an error kills them."""
    opened: list[TimedProgram] = []
    try:
        for side, rounded, delayed in runs:
            opened.append(trials.open(side, seeded=seeded, rounded=rounded, delayed=delayed))
        yield opened
    except BaseException:
        for trial in opened:
            trial.close(grace_s=0)
        raise
    for trial in opened:
        trial.close()


class PairedTiming:
    """Measures pair after pair until the gain is known, or the time is over."""

    def __init__(
        self, trials: Opens[Timed], options: ProofOptions, clock: Callable[[], float], deadline: float
    ) -> None:
        self._trials, self._options, self._now, self._deadline = trials, options, clock, deadline
        self.apart = options.apart
        self.pairs: list[Pair] = []
        self.stopped, self.clock = "", ""
        self.notes: list[str] = []
        self._turns, self._steps, self._lead, self._fitted = 0, 0, 2, False
        self._pair_s = 0.0

    @property
    def steps(self) -> int:
        return self._turns // 2 * self._steps

    def run(self) -> None:
        """Measure until `stopped` says why not to go on.

        Raises:
            ProgramFailed: a program fails, or makes too few steps.
        """
        while not self.stopped:
            began = self._now()
            try:
                self.pairs.append(self._pair())
            except TimeoutError:
                self.stopped = self._over()
                return
            self._pair_s = self._now() - began
            higher = self._options.higher
            self._tell(estimate.gain_of(self.pairs, higher=higher))
            self.stopped = estimate.enough(self.pairs, self._options.matters, higher=higher)
            if not self.stopped and self._now() + self._pair_s > self._deadline:
                self.stopped = self._over()

    def _over(self) -> str:
        limit, wanted = f"the limit of {self._options.limit_s:g} s", self._outlook()
        if not self.pairs:
            return f"{limit} came before the first pair ended: give them more time with --limit"
        return f"{limit} leaves no time for another pair{wanted and '; ' + wanted}"

    def _outlook(self) -> str:
        """Return how long ±2 % takes, by the pairs so far; empty for none, or where that is reached."""
        if not self.pairs:
            return ""
        needed = estimate.pairs_needed(self.pairs)
        if needed is None:
            return f"a pair takes {self._pair_s:.0f} s, and {estimate.MIN_PAIRS} are needed"
        if needed <= len(self.pairs):
            return ""
        return f"±2 % takes about {max(1, round(needed * self._pair_s / 60))} min, {needed} pairs"

    def _tell(self, gain: ProofGain | None) -> None:
        so_far = f", {gain.share:.1%} ({gain.low:.1%} to {gain.high:.1%})" if gain else ""
        share, better = self.pairs[-1].gain(self._options.higher), "more" if self._options.higher else "less"
        wanted = self._outlook()
        self._options.progress(f"pair {len(self.pairs)}: {share:.1%} {better}{so_far}{wanted and '; ' + wanted}")

    def _pair(self) -> Pair:
        """Measure a pair: again if a script has fewer steps, and one after the other if both can't run at once."""
        while True:
            try:
                return self._pair_apart() if self.apart else self._pair_together()
            except TooFewSteps as short:
                self._fit(short)
            except ProgramFailed as failed:
                if self.apart:
                    raise
                self.apart = True
                self.notes.append(f"Both can't run at the same time, so they ran one after the other. {failed.message}")

    def _pair_together(self) -> Pair:
        with running(self._trials, [Run(side) for side in self._sides()]) as opened:
            self._lead = max(trial.ready() for trial in opened)
            self._plan(opened)
            taken: tuple[list[float], list[float]] = ([], [])
            for k in range(self._turns):
                which = ORDER[k % 4]
                taken[which].append(self._turn(opened[which], self._steps).mean)
        return self._as_pair([statistics.median(times) for times in taken])

    def _pair_apart(self) -> Pair:
        means: list[float] = []
        for side in self._sides():
            with running(self._trials, [Run(side)]) as (trial,):
                self._lead = trial.ready()
                self._plan((trial,), anew=not means)
                means.append(self._turn(trial, self.steps).mean)
        return self._as_pair(means)

    def _turn(self, trial: Timed, steps: int) -> Turn:
        turn = trial.turn(steps)
        self.clock = turn.clock
        return turn

    def _sides(self) -> tuple[Side, Side]:
        """Return the program to run first, alternating between pairs."""
        return (Side.BEFORE, Side.AFTER) if len(self.pairs) % 2 == 0 else (Side.AFTER, Side.BEFORE)

    def _as_pair(self, means: Sequence[float]) -> Pair:
        by_side = dict(zip(self._sides(), means, strict=True))
        return Pair(by_side[Side.BEFORE], by_side[Side.AFTER])

    def _plan(self, opened: Sequence[Timed], *, anew: bool = True) -> None:
        """Let each warm up alone, and decide how many steps the turns of this pair have: both make the same ones."""
        fewest = self._options.fewest
        turns = [self._turn(trial, fewest) for trial in opened]
        step_us = max(turn.took_us or turn.mean for turn in turns)
        if anew and not self._fitted:
            self._turns = TURNS if step_us < SLOW_US else SLOW_TURNS
            self._steps = max(fewest, min(MOST, math.ceil(self._options.turn_s * 1e6 / max(step_us, 1.0))))

    def _fit(self, short: TooFewSteps) -> None:
        """Make do with the steps that a script has.

        Raises:
            TooFewSteps: that isn't possible.
        """
        fewest = self._options.fewest
        warm, lead = WARM + self._lead + fewest, self._lead
        for turns in (TURNS, SLOW_TURNS, FEWEST_TURNS):
            each = 1 if self.apart else turns // 2
            steps = (short.steps - warm - each * lead) // (turns // 2)
            if steps >= fewest and turns * steps < (self._turns or math.inf) * (self._steps or math.inf):
                self._turns, self._steps, self._fitted = turns, steps, True
                return
        needed = warm + lead + fewest
        raise TooFewSteps(f"{short.message} Timing needs {needed}.", short.steps)
