"""Render a Proof as one self-contained HTML page: the pairs as measured, and the gain beside its projection.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

import math

import msgspec

from syncscan.model.proof import Pair, Proof, ProofGain
from syncscan.report import step_picture
from syncscan.report.assets import asset, template
from syncscan.report.before_after import BeforeAfter
from syncscan.report.proof_story import facts_of, percent, programs_of, verdict_of
from syncscan.report.shown_names import shown
from syncscan.report.units import duration
from syncscan.version import __version__

WIDTH = 760
"""Width of the drawings between their margins, in drawing units."""
HEIGHT = 150
"""Height of the drawing of step times, in drawing units."""
MAX_PAIRS = 400
"""Most pairs in drawing and table; JSON has all."""


class Scale(msgspec.Struct, frozen=True):
    """A linear scale that maps `low` to 0 and `high` to `length` drawing units."""

    low: float
    high: float
    length: float

    def at(self, value: float) -> float:
        """Return the position of a value."""
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


def render(proof: Proof, picture: BeforeAfter | None = None) -> str:
    """Return the proof as one HTML document.

    Args:
        proof: the proof of any two programs; without pairs, the page has no drawings of them.
    """
    pairs = proof.pairs[:MAX_PAIRS]
    return template("proof.html.j2").render(
        version=__version__,
        style=asset("page.css") + step_picture.style() + asset("proof.css"),
        picture=step_picture.in_page(picture),
        programs=shown(programs_of(proof), 300),
        verdict=shown(verdict_of(proof), 300),
        proven=proof.proven,
        facts=[(name, shown(text, 600)) for name, text in facts_of(proof)],
        notes=[shown(note, 600) for note in proof.notes],
        gains=_gains(proof, pairs) if pairs else None,
        steps=_steps(pairs) if pairs else None,
        rows=[(n, duration(p.before_us), duration(p.after_us), percent(p.gain)) for n, p in enumerate(pairs, 1)],
        more=len(proof.pairs) - len(pairs),
        width=WIDTH,
    )


def _gains(proof: Proof, pairs: tuple[Pair, ...]) -> dict[str, object]:
    """Return the drawing of each pair's gain, the measured interval and the projected one on one axis."""
    known = {"measured": proof.gain, "projected": proof.projected_gain}
    intervals = {name: gain for name, gain in known.items() if gain}
    ends = [0.0, *(pair.gain for pair in pairs), *(end for gain in intervals.values() for end in (gain.low, gain.high))]
    margin = max(0.002, (max(ends) - min(ends)) * 0.04)
    scale = Scale(min(ends) - margin, max(ends) + margin, WIDTH)
    return {
        "dots": [(scale.at(p.gain), f"pair {n}: {percent(p.gain)}") for n, p in enumerate(pairs, 1)],
        "bars": [_bar(name, gain, scale) for name, gain in intervals.items()],
        "zero": scale.at(0),
        "matters": (scale.at(max(-proof.matters, scale.low)), scale.at(min(proof.matters, scale.high))),
        "ticks": [(scale.at(value), f"{value * 100:.4g}%") for value in scale.ticks()],
    }


def _bar(name: str, gain: ProofGain, scale: Scale) -> GainBar:
    text = f"{name}: {percent(gain.share)} ({percent(gain.low)} to {percent(gain.high)})"
    return GainBar(name, scale.at(gain.low), scale.at(gain.high), scale.at(gain.share), text)


def _steps(pairs: tuple[Pair, ...]) -> dict[str, object]:
    """Return the drawing of both step times of each pair, in the order in which they ran."""
    times = [time for pair in pairs for time in (pair.before_us, pair.after_us)]
    margin = max((max(times) - min(times)) * 0.08, max(times) * 0.002)
    scale = Scale(min(times) - margin, max(times) + margin, HEIGHT)
    apart = WIDTH / len(pairs)
    return {
        "height": HEIGHT,
        "pairs": [
            StepPair(
                round((number - 0.5) * apart, 2),
                HEIGHT - scale.at(pair.before_us),
                HEIGHT - scale.at(pair.after_us),
                f"pair {number}: {duration(pair.before_us)} before, {duration(pair.after_us)} after",
            )
            for number, pair in enumerate(pairs, 1)
        ],
        "ticks": [(HEIGHT - scale.at(value), duration(value)) for value in scale.ticks(4)],
    }
