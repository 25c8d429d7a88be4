"""Draw a Proof's pairs as measured, and the gain beside its projection, as SVG."""

from __future__ import annotations

import math
from functools import partial

import msgspec

from syncscan.proof.outcome import Measured, Proof, ProofGain
from syncscan.report.page import template
from syncscan.report.units import duration

WIDTH = 760
"""Width of the drawings between their margins, in drawing units."""
HEIGHT = 150
"""Height of the drawing of step times, in drawing units."""
MAX_PAIRS = 400
"""Most pairs in a drawing; JSON has all."""


class Scale(msgspec.Struct, frozen=True):
    """A linear scale that maps `low` to 0 and `high` to `length` drawing units."""

    low: float
    high: float
    length: float

    def at(self, value: float) -> float:
        return round((value - self.low) / (self.high - self.low) * self.length, 2)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values on the scale, about `most`."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


class GainBar(msgspec.Struct, frozen=True):
    """An interval of the gain: its ends and best value in drawing units, and its sentence."""

    name: str
    begin: float
    end: float
    best: float
    text: str


class StepPair(msgspec.Struct, frozen=True):
    """Both step times of a pair in drawing units, and its sentence."""

    x: float
    before: float
    after: float
    text: str


def percent(share: float) -> str:
    """Return a share as a percentage, two decimals below one percent."""
    return f"{share:.1%}" if abs(share) >= 0.01 else f"{share:.2%}"


def gains(proof: Proof) -> str:
    """Draw each pair's gain, the measured interval and the projected one on one axis."""
    shares = [pair.gain(proof.higher) for pair in proof.pairs[:MAX_PAIRS]]
    known = {"measured": proof.gain, "projected": proof.projected_gain}
    intervals = {name: gain for name, gain in known.items() if gain}
    ends = [0.0, *shares, *(end for gain in intervals.values() for end in (gain.low, gain.high))]
    margin = max(0.002, (max(ends) - min(ends)) * 0.04)
    scale = Scale(min(ends) - margin, max(ends) + margin, WIDTH)
    return template("proof_gains.html.j2").render(
        width=WIDTH,
        dots=[(scale.at(share), f"pair {n}: {percent(share)}") for n, share in enumerate(shares, 1)],
        bars=[_bar(name, gain, scale) for name, gain in intervals.items()],
        zero=scale.at(0),
        matters=(scale.at(max(-proof.matters, scale.low)), scale.at(min(proof.matters, scale.high))),
        ticks=[(scale.at(value), f"{value * 100:.4g}%") for value in scale.ticks()],
    )


def _bar(name: str, gain: ProofGain, scale: Scale) -> GainBar:
    text = f"{name}: {percent(gain.share)} ({percent(gain.low)} to {percent(gain.high)})"
    return GainBar(name, scale.at(gain.low), scale.at(gain.high), scale.at(gain.share), text)


def value(proof: Proof, number: float) -> str:
    """Return the number of a side with its unit."""
    if proof.measured is Measured.PRINTED:
        return f"{number:.4g}"
    return duration(number * 1e6 if proof.measured is Measured.RUN else number)


def steps(proof: Proof) -> str:
    pairs, shown = proof.pairs[:MAX_PAIRS], partial(value, proof)
    times = [time for pair in pairs for time in (pair.before, pair.after)]
    margin = max((max(times) - min(times)) * 0.08, max(times) * 0.002)
    scale = Scale(min(times) - margin, max(times) + margin, HEIGHT)
    apart = WIDTH / len(pairs)
    return template("proof_steps.html.j2").render(
        width=WIDTH,
        height=HEIGHT,
        pairs=[
            StepPair(
                round((number - 0.5) * apart, 2),
                HEIGHT - scale.at(pair.before),
                HEIGHT - scale.at(pair.after),
                f"pair {number}: {shown(pair.before)} before, {shown(pair.after)} after",
            )
            for number, pair in enumerate(pairs, 1)
        ],
        ticks=[(HEIGHT - scale.at(number), shown(number)) for number in scale.ticks(4)],
    )
