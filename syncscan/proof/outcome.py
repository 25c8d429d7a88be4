"""A proof: the measured pairs, the gain with its interval, whether both programs compute the same; and its JSON."""

from __future__ import annotations

import enum
import statistics
from typing import Annotated

import msgspec
from msgspec import Struct

from syncscan.model.json_text import Document, Range, about, indented, written
from syncscan.model.projection import Projection
from syncscan.version import __version__


class Side(enum.Enum):
    """One of the two programs."""

    BEFORE = "before"
    AFTER = "after"


class Pair(msgspec.Struct, frozen=True):
    """A process of each program, run in turns: the number of each, the median of its turns."""

    before: float
    after: float

    def gain(self, higher: bool = False) -> float:
        """Fraction by which the number got better: smaller, or with `higher` larger; negative where it got worse."""
        return (1 if higher else -1) * (self.after / self.before - 1)


class Measured(enum.Enum):
    """The kind of number that is compared."""

    STEP = "step"
    """The time of a step, in µs."""
    RUN = "run"
    """The time of a whole run, in seconds."""
    PRINTED = "printed"
    """A number that a command prints."""


class ProofGain(msgspec.Struct, frozen=True):
    """How much better the number is, as a fraction of the first, such as how much shorter a step is.

    The range holds the truth in 95 of 100 proofs.
    """

    share: float
    range: Range

    @property
    def low(self) -> float:
        return self.range[0]

    @property
    def high(self) -> float:
        return self.range[1]

    def within(self, limit: float) -> bool:
        """Return whether the whole interval lies within `limit` of zero."""
        return -limit <= self.low and self.high <= limit


class Tensors(msgspec.Struct, frozen=True):
    """A sketch of a list of tensors: a few numbers each, whose distance approximates that of the tensors.

    `shapes` are the tensors' shapes, `numbers` the sketches, `epsilons` the relative rounding error of each dtype.
    """

    shapes: tuple[tuple[int, ...], ...] = ()
    numbers: tuple[tuple[float, ...], ...] = ()
    epsilons: tuple[float, ...] = ()


class Fingerprint(msgspec.Struct, frozen=True):
    """Results that a program computed in some seeded steps.

    `losses` holds, for each step, what `backward` was called on, or what the step returned; `begin` and `end` are the
    parameters before the first step and after the last. `source` says what the losses are.
    """

    losses: tuple[Tensors, ...] = ()
    begin: Tensors = Tensors()
    end: Tensors = Tensors()
    source: str = "losses"


class Difference(msgspec.Struct, frozen=True):
    """The largest relative differences between two fingerprints.

    `losses` is relative to the largest loss, `parameters` to how far a parameter moved in these steps. None where there
    was nothing to compare.
    """

    losses: float | None
    parameters: float | None

    @property
    def nothing(self) -> bool:
        """Return whether everything compared is bitwise equal, as far as a sketch tells."""
        return not self.losses and not self.parameters


class Same(enum.Enum):
    """Whether two programs compute the same."""

    YES = "same"
    NO = "different"
    UNKNOWN = "unknown"
    NOT_COMPARED = "not compared"


class Result(msgspec.Struct, frozen=True):
    """Whether both programs compute the same, and how that is known.

    `own` is how the first program differs from itself in a second run, `rounding` from itself with each parameter moved
    by one rounding error before the first step; both None where the two programs are bitwise equal.
    """

    same: Same
    steps: int
    difference: Difference
    own: Difference | None
    rounding: Difference | None
    source: str
    why: str = ""
    """Why it is unknown, or where they differ; empty where they are the same."""
    not_compared: str = ""
    """Parts that weren't compared, and why; empty where everything was."""
    delayed: Difference | None = None
    """How the second program differs from the first with each of its non-blocking copies delayed on the device; None
    where that makes no difference, or wasn't run."""

    @property
    def deterministic(self) -> bool:
        """Return whether the first program, or an equivalent one, is bitwise reproducible."""
        return self.own is None or self.own.nothing


class ProofVerdict(enum.Enum):
    """Outcome of a proof."""

    PROVEN = "proven"
    DIFFERENT = "different result"
    NO_GAIN = "no gain"
    SLOWER = "slower"
    UNKNOWN = "unknown"


class Proof(msgspec.Struct, frozen=True):
    """Whether a change is a real gain and computes the same: the result of `syncscan.prove`.

    `gain` is None where too few pairs were measured; `matters` is the fraction of a step below which a difference
    doesn't matter. Times of steps are in µs.
    """

    before: str
    after: str
    device: str
    verdict: ProofVerdict
    gain: ProofGain | None
    matters: float
    pairs: tuple[Pair, ...]
    result: Result
    steps: int
    """Timed steps per process."""
    clock: str
    """Clock that timed them: `device` or `host`."""
    together: bool
    """Whether the two processes of a pair took turns; else one ran after the other."""
    seconds: float
    stopped: str
    """Why no further pair was measured."""
    projected: Projection | None = None
    notes: tuple[str, ...] = ()
    measured: Measured = Measured.STEP
    metric: str = ""
    """Expression that finds the number, where a command prints it."""
    higher: bool = False
    """Whether a larger number is better."""

    @property
    def proven(self) -> bool:
        """Return whether the gain is real and the result the same."""
        return self.verdict is ProofVerdict.PROVEN

    @property
    def before_value(self) -> float:
        """The first program's number, the mean over the pairs; 0 without any."""
        return statistics.fmean(p.before for p in self.pairs) if self.pairs else 0.0

    @property
    def after_value(self) -> float:
        """The second program's number, derived from the first one's and the gain, so that the three agree."""
        if self.gain is None:
            return 0.0
        return self.before_value * (1 + (self.gain.share if self.higher else -self.gain.share))

    @property
    def projected_gain(self) -> ProofGain | None:
        """The projected gain as a fraction of the step, with its range; None without a projection."""
        p = self.projected
        if p is None or p.baseline_us <= 0:
            return None
        low, high = (1 - us / p.baseline_us for us in (p.range_us[1], p.range_us[0]))
        return ProofGain(p.saving_us / p.baseline_us, (low, high))


SCHEMA = "syncscan.prove/2"


class ResultDocument(Struct, frozen=True):
    """Whether both programs compute the same."""

    same: Same
    why: str
    steps: int
    compared: str
    deterministic: bool | None
    difference: Difference | None
    own_difference: Difference | None
    rounding_difference: Difference | None
    not_compared: str | None
    delayed_difference: Annotated[
        Difference | None,
        about("of the second program with each non-blocking copy delayed; null if that changes nothing"),
    ]


class PairDocument(Struct, frozen=True):
    """One pair of processes."""

    before: float
    after: float
    gain: float


class ProofDocument(Document, frozen=True):
    """Whether a change is a real gain and computes the same."""

    before: str
    after: str
    device: str
    verdict: ProofVerdict
    proven: bool
    measured: Annotated[Measured, about("what the numbers are: a step in µs, a run in seconds, or what is printed")]
    metric: Annotated[str, about("expression that finds a printed number")]
    higher: Annotated[bool, about("whether a larger number is better")]
    before_value: float | None
    after_value: float | None
    gain: Annotated[ProofGain | None, about("by how much the number got better, as a part of the first")]
    confidence: Annotated[float, about("of the interval")]
    matters: Annotated[float, about("smallest gain that matters")]
    projected: Annotated[ProofGain | None, about("set if a trace of the earlier state was given")]
    result: ResultDocument
    pairs: tuple[PairDocument, ...]
    steps: int
    clock: str
    together: Annotated[bool, about("whether both ran alternately")]
    seconds: float
    stopped: Annotated[str, about("why measuring stopped")]
    notes: tuple[str, ...]


def render(proof: Proof) -> str:
    """Return the proof as indented JSON; times in µs, gains and differences as fractions."""
    return indented(document(proof))


def document(proof: Proof) -> ProofDocument:
    """Return the proof as its JSON document; numbers that aren't finite are null."""
    p = proof
    return written(
        ProofDocument,
        p,
        schema=SCHEMA,
        syncscan=__version__,
        before_value=p.before_value if p.pairs else None,
        after_value=p.after_value if p.gain else None,
        confidence=0.95,
        projected=p.projected_gain,
        result=_result_document(p.result),
        pairs=tuple(written(PairDocument, pair, gain=pair.gain(p.higher)) for pair in p.pairs),
    )


def _result_document(result: Result) -> ResultDocument:
    return written(
        ResultDocument,
        result,
        compared=result.source,
        own_difference=result.own,
        rounding_difference=result.rounding,
        not_compared=result.not_compared or None,
        delayed_difference=result.delayed,
    )
