"""Describe a Proof in words and figures: its verdict, the change, how each was measured, and the pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import msgspec

from syncscan.proof.outcome import Difference, Measured, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.report import svg
from syncscan.report.blocks import Block, Figure, Fold, Grid, GridColumn, Heading, Sentence, facts, notes
from syncscan.report.page import template
from syncscan.report.step_picture import StepPicture
from syncscan.report.units import duration

_SUBJECTS = {Measured.STEP: "a step takes", Measured.RUN: "a run takes", Measured.PRINTED: "the number is"}
_FIGURES = {
    Measured.STEP: "How much less a step takes",
    Measured.RUN: "How much less a run takes",
    Measured.PRINTED: "How much better the number is",
}
SHOWN = 12
"""Pairs that are listed, except on a page."""

_STYLES = ("proof.css",)


def blocks(proof: Proof, picture: StepPicture | None = None) -> Iterator[Block]:
    yield Heading(verdict_of(proof), 1, "good" if proof.proven else "")
    yield Sentence(" · ".join(filter(None, (f"{proof.before} → {proof.after}", proof.device))))
    yield facts(facts_of(proof))
    yield from notes(proof.notes)
    if proof.pairs:
        yield Figure(_FIGURES[proof.measured], partial(gains, proof), _STYLES)
    if picture:
        yield svg.figure(picture, "The step that was projected")
    if proof.pairs:
        yield Fold("Each pair of processes", (_pairs(proof),))


def _pairs(proof: Proof) -> Grid:
    rows = (
        (str(n), value(proof, p.before), value(proof, p.after), percent(p.gain(proof.higher)))
        for n, p in enumerate(proof.pairs, 1)
    )
    return Grid(tuple(GridColumn(name, right=True) for name in ("pair", "before", "after", "gain")), tuple(rows), SHOWN)


def verdict_of(proof: Proof) -> str:
    return {
        ProofVerdict.PROVEN: f"Proven: {_change(proof)}.",
        ProofVerdict.DIFFERENT: f"Not proven: the results differ. {_change(proof, capital=True)}.",
        ProofVerdict.NO_GAIN: f"Not proven: {_nothing(proof)}. {_change(proof, capital=True)}.",
        ProofVerdict.SLOWER: f"Not proven: it is slower. {_change(proof, capital=True)}.",
        ProofVerdict.UNKNOWN: f"Not proven{_unknown(proof)}. {_change(proof, capital=True)}.",
    }[proof.verdict]


def _nothing(proof: Proof) -> str:
    """Return what is ruled out where there is no gain: any difference, or only a gain."""
    known = proof.gain is None or proof.gain.within(proof.matters)
    return "no difference that matters" if known else "no gain that matters"


def _unknown(proof: Proof) -> str:
    """Return what isn't known where no gain was proven; empty without a measured gain."""
    if proof.gain is None:
        return ""
    if proof.gain.low > proof.matters:
        return ": whether the results match is unknown"
    return ": the uncertainty is too large"


def _change(proof: Proof, capital: bool = False) -> str:
    if proof.gain is None:
        text = f"too few pairs of processes to measure a gain: {len(proof.pairs)} of 3"
    else:
        g = proof.gain
        word = "less" if (g.share >= 0) is not proof.higher else "more"
        ends = (g.low, g.high) if g.share >= 0 else (-g.high, -g.low)
        text = (
            f"{_SUBJECTS[proof.measured]} {value(proof, proof.after_value)} instead of "
            f"{value(proof, proof.before_value)}, "
            f"{percent(abs(g.share))} {word} ({percent(ends[0])} to {percent(ends[1])})"
        )
    return text[0].upper() + text[1:] if capital else text


def facts_of(proof: Proof) -> Iterator[tuple[str, str]]:
    """Yield what else is known, as name and text: projection, results, how it was measured, why it stopped."""
    if proof.projected_gain is not None:
        yield "projected", _projected_text(proof.projected_gain, proof.gain)
    yield "result", _result(proof.result)
    if proof.pairs:
        yield "measured", _measured_text(proof)
    yield "stopped", f"after {proof.seconds:.0f} s: {proof.stopped}"


def _measured_text(proof: Proof) -> str:
    pairs = "1 pair" if len(proof.pairs) == 1 else f"{len(proof.pairs)} pairs"
    how = "alternating" if proof.together else "one after the other"
    if proof.measured is Measured.STEP:
        taken = f"{proof.steps} steps in each, by the {proof.clock}'s clock, without a profiler"
    elif proof.measured is Measured.RUN:
        taken = "each from its start to its end"
    else:
        taken = "numbers of about a second a turn" if proof.together else "a run each"
    return f"{pairs} of fresh processes, {how}, {taken}; 95% interval over the pairs"


def _projected_text(projected: ProofGain, gain: ProofGain | None) -> str:
    text = f"{percent(projected.share)} ({percent(projected.low)} to {percent(projected.high)})"
    if gain is None:
        return text
    if gain.high < projected.low:
        return f"{text}: more than measured"
    return f"{text}: less than measured" if gain.low > projected.high else f"{text}: as measured"


def _result(result: Result) -> str:
    if result.source == "output":
        return _output(result)
    kind = "losses" if result.source == "losses" else "outputs"
    steps = f"{result.steps} seeded {'step' if result.steps == 1 else 'steps'}"
    parts = [_compared_text(result.difference, kind)]
    if result.own is not None and not result.own.nothing:
        parts.append(f"not deterministic: two runs of the first version differ, {_compared_text(result.own, kind)}")
    if result.rounding is not None:
        parts.append(f"rounding errors only: {_compared_text(result.rounding, kind)}")
    if result.delayed is not None:
        parts.append(f"with its copies delayed: {_compared_text(result.delayed, kind)}")
    if result.not_compared:
        parts.append(result.not_compared)
    head = {Same.YES: "the same", Same.NO: f"different: {result.why}", Same.UNKNOWN: f"unknown: {result.why}"}
    return f"{head[result.same]}. After {steps} {'; '.join(parts)}"


def _output(result: Result) -> str:
    if result.same is Same.NOT_COMPARED:
        return "not compared; --same-output compares what they print besides the number"
    lines = f"{result.steps} {'line' if result.steps == 1 else 'lines'} printed besides the number"
    return f"the same: {lines}" if result.same is Same.YES else f"different: {result.why}"


def _compared_text(difference: Difference, kind: str) -> str:
    parts = []
    if difference.losses is not None:
        parts.append(f"{kind} {_apart(difference.losses)}")
    if difference.parameters is not None:
        parts.append(f"updates of parameters {_apart(difference.parameters)}")
    return ", ".join(parts) or "nothing could be compared"


def _apart(difference: float) -> str:
    return f"{difference:.1g} apart" if difference else "equal"


WIDTH = 760
"""Width of the drawing between its margins, in drawing units."""
MAX_PAIRS = 400
"""Most pairs in the drawing; JSON has all."""


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


def _bar(name: str, gain: ProofGain, scale: Scale) -> dict[str, str | float]:
    text = f"{name}: {percent(gain.share)} ({percent(gain.low)} to {percent(gain.high)})"
    ends = {"begin": scale.at(gain.low), "end": scale.at(gain.high), "best": scale.at(gain.share)}
    return {"name": name, "text": text, **ends}


def value(proof: Proof, number: float) -> str:
    """Return the number of a side with its unit."""
    if proof.measured is Measured.PRINTED:
        return f"{number:.4g}"
    return duration(number * 1e6 if proof.measured is Measured.RUN else number)
