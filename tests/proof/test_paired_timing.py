"""Pairs of programs that take no time are measured as real ones are: in turn, until their difference is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from syncscan.errors import ProgramFailed
from syncscan.proof.outcome import Fingerprint, ProofGain, ProofVerdict, Same, Side, Tensors
from syncscan.proof.paired_timing import ProofOptions
from syncscan.proof.prove import measured, verdict
from syncscan.proof.trial import TooFewSteps, Turn

NAMES = ("before.py", "after.py")
EMPTY = Tensors((), (), ())


def print_of(loss: float) -> Fingerprint:
    step = Tensors(((1,),), ((loss,),), (1e-7,))
    return Fingerprint((step,) * 5, EMPTY, EMPTY, "losses")


@dataclass
class Fakes:
    """Programs whose steps take a time that is told for each turn; a clock that goes on with them.

    `log` holds what was started (+), given a turn (its letter) and ended (-).
    """

    step_us: Callable[[Side, int], float]
    loss: Callable[[Side, int], float] = field(default=lambda side, run: 1.0)
    most_steps: int = 10**9
    at_a_time: int = 2
    start_s: float = 1.0
    race: float = 0.0
    """By how much losses differ where copies are delayed."""
    device: str = "a device"
    now: float = 0.0
    running: int = 0
    runs: int = 0
    turns: int = 0
    log: str = ""

    def open(self, side: Side, *, seeded: int = 0, rounded: bool = False, delayed: bool = False) -> Fake:
        self.now += self.start_s
        self.running += 1
        self.runs += 1
        return Fake(self, side, self.runs, delayed)

    def clock(self) -> float:
        return self.now


@dataclass
class Fake:
    world: Fakes
    side: Side
    run: int
    delayed: bool = False
    made: int = 10
    open: bool = True

    def ready(self) -> int:
        if self.world.running > self.world.at_a_time:
            raise ProgramFailed("no memory left for it.")
        return 2

    def turn(self, steps: int) -> Turn:
        self.made += 2 + steps
        if self.made > self.world.most_steps:
            raise TooFewSteps("too few.", self.world.most_steps)
        self.world.turns += 1
        us = self.world.step_us(self.side, self.world.turns)
        self.world.now += us * steps / 1e6
        self.world.log += "A" if self.side is Side.BEFORE else "B"
        return Turn(us, "device")

    def fingerprint(self) -> tuple[Fingerprint, str]:
        if self.world.running > self.world.at_a_time:
            raise ProgramFailed("no memory left for it.")
        return print_of(self.world.loss(self.side, self.run) + self.delayed * self.world.race), self.world.device

    def close(self, grace_s: float = 10.0) -> None:
        self.world.running -= self.open
        self.open = False


def steady(before: float, after: float) -> Callable[[Side, int], float]:
    return lambda side, turn: before if side is Side.BEFORE else after


def test_a_real_gain_is_proven_with_three_pairs() -> None:
    """Where every pair says the same, and all processes are ended."""
    world = Fakes(steady(10_000.0, 7_000.0))
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, len(proof.pairs), world.running) == (ProofVerdict.PROVEN, 3, 0)
    assert proof.gain is not None
    assert proof.gain.share == pytest.approx(0.3)
    assert (proof.before_value, proof.after_value) == pytest.approx((10_000, 7_000))
    assert proof.stopped == "the uncertainty is a tenth of the difference"
    assert (proof.steps, proof.together, proof.device) == (120, True, "a device")


def test_they_take_turns_and_each_next_pair_begins_with_the_other() -> None:
    """The first turn of each is its warm-up alone, and counts for nothing."""
    world = Fakes(steady(10_000.0, 7_000.0))
    measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert world.log[:14] == "AB" + "ABBA" * 3
    assert world.log[14:28] == "BA" + "BAAB" * 3


def test_a_drift_of_the_machine_cancels() -> None:
    """A step that takes 1 % longer in each turn than in the one before is as long in both programs."""
    world = Fakes(lambda side, turn: 10_000.0 * (1 + 0.01 * turn))
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert all(abs(pair.gain()) < 1e-9 for pair in proof.pairs)
    assert proof.verdict is ProofVerdict.NO_GAIN


def test_a_pause_of_the_machine_moves_nothing() -> None:
    """Neither one that falls into a turn of each program."""
    world = Fakes(lambda side, turn: (10_000.0 if side is Side.BEFORE else 7_000.0) * (9 if turn % 14 in (3, 8) else 1))
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert [round(pair.gain(), 9) for pair in proof.pairs] == [0.3] * 3


@pytest.mark.parametrize(
    ("after", "verdict"),
    [(10_000.0, ProofVerdict.NO_GAIN), (9_970.0, ProofVerdict.NO_GAIN), (10_500.0, ProofVerdict.SLOWER)],
)
def test_no_gain_is_not_proven(after: float, verdict: ProofVerdict) -> None:
    """None, one that doesn't matter, and a loss."""
    world = Fakes(steady(10_000.0, after))
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.proven) == (verdict, False)


def test_a_gain_with_another_result_is_not_proven() -> None:
    """However large it is."""
    world = Fakes(steady(10_000.0, 5_000.0), lambda side, run: 1.0 if side is Side.BEFORE else 1.1)
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.result.same) == (ProofVerdict.DIFFERENT, Same.NO)
    assert world.runs == 4 + 2 * 3  # the first program twice more


def test_no_further_pair_is_measured_where_a_gain_is_ruled_out() -> None:
    """The loss isn't known to a tenth, but that it is one; a slower program is told apart from one that only may be."""
    steps = (10_200.0, 10_300.0, 10_400.0)
    world = Fakes(lambda side, turn: 10_000.0 if side is Side.BEFORE else steps[(turn - 1) // 14 % 3])
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.stopped) == (ProofVerdict.SLOWER, "a gain of more than 0.5% is ruled out")
    assert verdict(ProofGain(-0.014, (-0.037, 0.004)), 0.005, Same.YES) is ProofVerdict.NO_GAIN


def test_noise_goes_on_until_the_limit() -> None:
    """The result is then reported as unknown."""
    slower = (0.8, 1.2)
    world = Fakes(lambda side, turn: 10_000.0 * (slower[(turn - 1) // 14 % 2] if side is Side.BEFORE else 1.0))
    proof = measured(world, NAMES, ProofOptions(limit_s=60.0), clock=world.clock)
    assert proof.verdict is ProofVerdict.UNKNOWN
    assert "60 s" in proof.stopped
    assert world.now <= 60


def test_too_short_a_limit_tells_no_gain() -> None:
    """One pair is no interval; what was compared is said all the same."""
    world = Fakes(steady(10_000.0, 7_000.0), start_s=5.0)
    proof = measured(world, NAMES, ProofOptions(limit_s=20.0), clock=world.clock)
    assert (proof.gain, proof.verdict, proof.result.same) == (None, ProofVerdict.UNKNOWN, Same.YES)


def test_a_limit_within_the_first_pair_says_what_to_do() -> None:
    """As with a server that takes half a minute to start."""

    def out_of_time(side: Side, turn: int) -> float:
        raise TimeoutError

    proof = measured(Fakes(out_of_time), NAMES, ProofOptions(limit_s=60.0))  # type: ignore[arg-type]
    assert proof.pairs == ()
    assert proof.stopped == "the limit of 60 s came before the first pair ended: give them more time with --limit"


def test_two_that_can_not_run_at_a_time_run_one_after_the_other() -> None:
    """As where the device has memory for one; a note says so."""
    world = Fakes(steady(10_000.0, 7_000.0), at_a_time=1)
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.together, world.running) == (ProofVerdict.PROVEN, False, 0)
    assert len(proof.notes) == 1
    assert "AABB" in world.log


def test_pairs_that_were_measured_are_kept_where_later_ones_can_not_run_at_a_time() -> None:
    """As where another program takes the device's memory meanwhile."""

    def filling(side: Side, turn: int) -> float:
        world.at_a_time = 1
        return 10_000.0 if side is Side.BEFORE else 7_000.0

    world = Fakes(filling)
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, len(proof.pairs), proof.together) == (ProofVerdict.PROVEN, 3, False)
    assert "no memory left for it." in proof.notes[0]


def test_a_short_script_has_shorter_turns() -> None:
    """As many steps as it has; one with too few is told how many are needed."""
    world = Fakes(steady(10_000.0, 7_000.0), most_steps=60)
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.steps) == (ProofVerdict.PROVEN, 30)
    with pytest.raises(ProgramFailed, match="Timing needs 22"):
        measured(Fakes(steady(1.0, 1.0), most_steps=20), NAMES, ProofOptions(), clock=world.clock)


def test_slow_steps_have_fewer_turns() -> None:
    """Two of each program, of at least four steps."""
    world = Fakes(steady(1e6, 7e5))
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.steps, world.log[:6]) == (8, "AB" + "ABBA")


def test_a_race_shows_where_copies_are_delayed() -> None:
    """The second program computes the same at its own timing, and something else in the run with delays."""
    world = Fakes(steady(10_000.0, 7_000.0), race=0.5)
    proof = measured(world, NAMES, ProofOptions(), clock=world.clock)
    assert (proof.verdict, proof.result.same) == (ProofVerdict.DIFFERENT, Same.NO)
    assert (
        proof.result.why == "the losses differ once each non-blocking copy is delayed: a race that its own timing wins"
    )
    assert proof.result.delayed is not None


def test_a_program_on_a_cpu_is_not_delayed() -> None:
    world = Fakes(steady(10_000.0, 7_000.0), race=0.5, device="CPU, 2 threads")
    assert measured(world, NAMES, ProofOptions(), clock=world.clock).result.same is Same.YES
