"""Describe a Proof: its verdict, the change, how each was measured, and the pairs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from syncscan.proof import figures
from syncscan.proof.figures import percent, value
from syncscan.proof.outcome import Difference, Measured, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.report import svg
from syncscan.report.blocks import Block, Figure, Fold, Grid, GridColumn, Heading, Sentence, facts, notes
from syncscan.report.step_picture import StepPicture

_SUBJECTS = {Measured.STEP: "a step takes", Measured.RUN: "a run takes", Measured.PRINTED: "the number is"}
_EACH = {Measured.STEP: "The step", Measured.RUN: "The run", Measured.PRINTED: "The number"}
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
        yield Figure(_FIGURES[proof.measured], partial(figures.gains, proof), _STYLES)
    if picture:
        yield svg.figure(picture, "The step that was projected")
    if proof.pairs:
        steps = partial(figures.steps, proof)
        yield Figure(f"{_EACH[proof.measured]} of each pair, in the order in which they ran", steps, _STYLES)
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
