"""What a proof says: the pairs that were measured, the gain with its interval, and whether both compute the same."""

from __future__ import annotations

import enum
import statistics

import msgspec

from syncscan.model.projection import Projection


class Side(enum.Enum):
    """Which of the two programs."""

    BEFORE = "before"
    AFTER = "after"


class Pair(msgspec.Struct, frozen=True):
    """A process of each program, that took turns: the time of a step in each, the median of its turns, in µs."""

    before_us: float
    after_us: float

    @property
    def gain(self) -> float:
        """The part of the step that is gone; negative where it has grown."""
        return 1 - self.after_us / self.before_us


class Gain(msgspec.Struct, frozen=True):
    """How much shorter a step is, as a part of the step before; `low` to `high` holds the truth in 95 of 100 proofs."""

    share: float
    low: float
    high: float

    def within(self, limit: float) -> bool:
        """Whether the whole interval lies no farther from nothing than `limit`."""
        return -limit <= self.low and self.high <= limit


class Tensors(msgspec.Struct, frozen=True):
    """A sketch of a list of tensors, each as a few numbers whose distance is about that of the tensors.

    `shapes` are theirs, `numbers` the sketches, `epsilons` the relative rounding error of each one's type.
    """

    shapes: tuple[tuple[int, ...], ...]
    numbers: tuple[tuple[float, ...], ...]
    epsilons: tuple[float, ...]


class Fingerprint(msgspec.Struct, frozen=True):
    """What a program had computed after some seeded steps.

    `losses` holds, for each step, what `backward` was called on, or what the step returned; `begin` and `end` are the
    parameters before the first step and after the last. `source` says what the losses are.
    """

    losses: tuple[Tensors, ...]
    begin: Tensors
    end: Tensors
    source: str


class Difference(msgspec.Struct, frozen=True):
    """The largest relative differences between two fingerprints.

    `losses` is relative to the largest of them, `parameters` to how far a parameter moved in these steps. None where
    there was nothing to compare.
    """

    losses: float | None
    parameters: float | None

    @property
    def nothing(self) -> bool:
        """Whether all that was compared is equal to the last bit, as far as a sketch tells."""
        return not self.losses and not self.parameters


class Same(enum.Enum):
    """Whether two programs compute the same."""

    YES = "same"
    NO = "different"
    UNKNOWN = "unknown"


class Result(msgspec.Struct, frozen=True):
    """Whether both programs compute the same, and how that is known.

    `own` is what the first differs from itself in a second run, `rounding` from itself with each parameter moved by one
    rounding error before the first step; both None where the two programs are equal to the last bit, which says enough.
    """

    same: Same
    steps: int
    difference: Difference
    own: Difference | None
    rounding: Difference | None
    source: str
    why: str = ""
    """What keeps it from being known, or where they differ; empty where they are the same."""
    not_compared: str = ""
    """What wasn't compared, and why; empty where all was."""

    @property
    def deterministic(self) -> bool:
        """Whether the first program, or one that computes the same, does so when it runs again, to the last bit."""
        return self.own is None or self.own.nothing


class Verdict(enum.Enum):
    """What came of a proof."""

    PROVEN = "proven"
    DIFFERENT = "different result"
    NO_GAIN = "no gain"
    SLOWER = "slower"
    UNKNOWN = "unknown"


class Proof(msgspec.Struct, frozen=True):
    """Whether a change is a real gain, and computes the same: what `syncscan.prove` returns.

    `gain` is None where too few pairs were measured to tell; `matters` is the part of a step below which a difference
    doesn't matter. Times are in µs.
    """

    before: str
    after: str
    device: str
    verdict: Verdict
    gain: Gain | None
    matters: float
    pairs: tuple[Pair, ...]
    result: Result
    steps: int
    """Steps that were timed in each process."""
    clock: str
    """Who timed them: `device` or `host`."""
    together: bool
    """Whether the two processes of a pair took turns; else one ran after the other."""
    seconds: float
    stopped: str
    """Why no further pair was measured."""
    projected: Projection | None = None
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the gain is real and the result the same."""
        return self.verdict is Verdict.PROVEN

    @property
    def before_us(self) -> float:
        """A step of the first program: the mean over the pairs; 0 without any."""
        return statistics.fmean(p.before_us for p in self.pairs) if self.pairs else 0.0

    @property
    def after_us(self) -> float:
        """A step of the second program, from the first one's and the gain, so that the three fit together."""
        return self.before_us * (1 - self.gain.share) if self.gain else 0.0

    @property
    def projected_gain(self) -> Gain | None:
        """What the projection had promised, as a part of the step, with its range; None where there is none."""
        p = self.projected
        if p is None or p.baseline_us <= 0:
            return None
        low, high = (1 - us / p.baseline_us for us in (p.range_us[1], p.range_us[0]))
        return Gain(p.saving_us / p.baseline_us, low, high)
