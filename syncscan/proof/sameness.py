"""Decide by fingerprints whether two programs compute the same.

How far floating-point results may lie apart depends on the program: what sums in another order differs by some rounding
errors, an optimizer that divides by small numbers makes much of them, and a device that adds in any order differs from
itself. So the measure is taken from the program: its first run once more, and a run in which each parameter was moved
by one rounding error before the first step. What both leave behind is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from msgspec.structs import replace

from syncscan.proof.outcome import Difference, Fingerprint, Result, Same, Tensors

TOLERANCE = 1e-5
"""Losses no farther apart than this part of the largest are the same; ten rounding errors of float32 or so."""
MOVED = 100.0
"""Parameters may differ by this many tolerances of how far they moved: a thousandth of an update."""
OWN, ROUNDING = 3.0, 10.0
"""How many times as far as the first program from itself, and from itself with rounding errors, the second may lie. Two
differences of one kind: the larger of many draws is rarely three times another's; rounding errors of a sum in another
order are a few, and the run with them has one."""
UNTELLABLE = 0.01
"""A program that differs from itself by more than this can't tell whether another one computes the same."""
FLOOR = 1.0
"""Rounding errors of a parameter's own type that one step may leave in it; those of several add up as their root."""

NOTHING = "there was no loss, output or parameter to compare: let the function return its result"
BEGINS = "they start with different parameters despite the same seed, so nothing else can be compared"


def judge(
    first: Fingerprint,
    other: Fingerprint,
    again: Fingerprint | None = None,
    rounded: Fingerprint | None = None,
    tolerance: float = TOLERANCE,
) -> Result:
    """Say whether two programs compute the same.

    Args:
        other: the second program's fingerprint.
        again: the first program's from another process; not needed if the two are equal.
        rounded: the first program's, with each parameter moved by one rounding error; also several.
        tolerance: relative, of losses.
    """
    distances = _Distances.between(first, other)
    repeated, noise = (_Distances.between(first, run) if run is not None else NONE for run in (again, rounded))

    def result(same: Same, why: str = "") -> Result:
        itself, rounding = (None if d is NONE else d.largest for d in (repeated, noise))
        left_out = _not_compared(first, other, distances)
        return Result(same, len(first.losses), distances.largest, itself, rounding, first.source, why, left_out)

    if not distances.losses and not distances.parameters:
        return result(Same.UNKNOWN, NOTHING)
    if not all(map(math.isfinite, (x for step in first.losses for loss in step.numbers for x in loss))):
        return result(Same.UNKNOWN, "the first program computes infinity or NaN")
    if (repeated.largest.losses or 0.0) > max(tolerance, UNTELLABLE):
        return result(Same.UNKNOWN, "two runs of the first program differ too much to compare")
    if _begin(first, other) > max(tolerance, OWN * (_begin(first, again) if again is not None else 0.0)):
        return result(Same.NO, BEGINS)
    wrong = [what for what in ("losses", "parameters") if _apart(what, distances, repeated, noise, tolerance)]
    return result(Same.NO, f"the {' and '.join(wrong)} differ") if wrong else result(Same.YES)


def by_timing(result: Result, delayed: Result) -> Result:
    """Return a result that takes into account what a run with delayed copies computed."""
    if delayed.same is not Same.NO:
        return replace(result, delayed=delayed.difference)
    why = f"{delayed.why} once each non-blocking copy is delayed: a race that its own timing wins"
    return replace(result, same=Same.NO, why=why, delayed=delayed.difference)


@dataclass(frozen=True, slots=True)
class _Distances:
    """Relative differences of two fingerprints: of each loss over the steps, and of each parameter."""

    losses: tuple[float, ...]
    parameters: tuple[float, ...]

    @classmethod
    def between(cls, one: Fingerprint, other: Fingerprint) -> _Distances:
        return cls(tuple(_losses(one.losses, other.losses)), tuple(_parameters(one, other)))

    @property
    def largest(self) -> Difference:
        return Difference(max(self.losses, default=None), max(self.parameters, default=None))


NONE = _Distances((), ())


def _not_compared(first: Fingerprint, other: Fingerprint, distances: _Distances) -> str:
    """Return why the losses or the parameters alone decide, where both programs have both."""
    if distances.losses and not distances.parameters and first.end.shapes and other.end.shapes:
        return f"their parameters differ in number or shape, so only the {first.source} were compared"
    if distances.parameters and not distances.losses and first.losses and other.losses:
        return f"their {first.source} differ in number or shape, so only the parameters were compared"
    return ""


def _apart(kind: str, distances: _Distances, repeated: _Distances, noise: _Distances, tolerance: float) -> bool:
    """Return whether a loss or a parameter differs by more than the first program's own noise."""
    limit = tolerance if kind == "losses" else MOVED * tolerance
    values = getattr(distances, kind)
    itself, rounded = (_fitting(getattr(run, kind), len(values)) for run in (repeated, noise))
    return any(v > max(limit, OWN * o, ROUNDING * r) for v, o, r in zip(values, itself, rounded, strict=True))


def _fitting(values: Sequence[float], count: int) -> Sequence[float]:
    """Return the noise of this many losses or parameters; none if it is of others, or wasn't measured."""
    return values if len(values) == count else [0.0] * count


def _losses(first: Sequence[Tensors], other: Sequence[Tensors]) -> list[float]:
    """Return, per loss, the largest difference relative to the largest value; nothing if the losses don't match."""
    if [t.shapes for t in first] != [t.shapes for t in other]:
        return []
    steps = [zip(a.numbers, b.numbers, strict=True) for a, b in zip(first, other, strict=True)]
    return [_relative([pair for pair in column if pair]) for column in zip_longest(*steps)]


def _relative(column: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    largest = max((_norm(a) for a, _ in column if math.isfinite(_norm(a))), default=0.0)
    return max(_ratio(_distance(a, b), largest) for a, b in column)


def _parameters(first: Fingerprint, other: Fingerprint) -> list[float]:
    """Return the final difference of each parameter, relative to its change; empty if shapes don't match."""
    if first.end.shapes != other.end.shapes:
        return []
    rows = zip(
        first.end.numbers, other.end.numbers, first.begin.numbers, other.begin.numbers, first.end.epsilons, strict=True
    )
    return [_moved_apart(*row, steps=max(len(first.losses), 1)) for row in rows]


def _moved_apart(
    a: Sequence[float],
    b: Sequence[float],
    a0: Sequence[float],
    b0: Sequence[float],
    epsilon: float,
    steps: int,
) -> float:
    apart = max(0.0, _distance(a, b) - FLOOR * math.sqrt(steps) * epsilon * _norm(a))
    return _ratio(apart, max(_distance(a, a0), _distance(b, b0)))


def _begin(first: Fingerprint, other: Fingerprint) -> float:
    """Return the largest relative difference of a parameter before the first step; 0 if shapes don't match."""
    if first.begin.shapes != other.begin.shapes:
        return 0.0
    return max(
        (_ratio(_distance(a, b), _norm(a)) for a, b in zip(first.begin.numbers, other.begin.numbers, strict=True)),
        default=0.0,
    )


def _ratio(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / whole if whole > 0 and math.isfinite(part) else math.inf


def _norm(numbers: Sequence[float]) -> float:
    return math.sqrt(sum(x * x for x in numbers))


def _distance(first: Sequence[float], other: Sequence[float]) -> float:
    """Return the Euclidean distance; 0 for values that are non-finite in the same way in both."""
    total = 0.0
    for a, b in zip(first, other, strict=True):
        if a == b or (math.isnan(a) and math.isnan(b)):
            continue
        total += (a - b) ** 2
    return math.inf if math.isnan(total) else math.sqrt(total)
