"""Describe a Proof in sentences: its verdict, the change, and how each was measured."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.model.proof import Difference, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.report.units import duration


def programs_of(proof: Proof) -> str:
    """Return both programs and the device they ran on."""
    return f"{proof.before} → {proof.after} · {proof.device}"


def verdict_of(proof: Proof) -> str:
    """Return the verdict with the change, as a sentence."""
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
        word = "less" if g.share >= 0 else "more"
        ends = (g.low, g.high) if g.share >= 0 else (-g.high, -g.low)
        text = (
            f"a step takes {duration(proof.after_us)} instead of {duration(proof.before_us)}, "
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
    return (
        f"{pairs} of fresh processes, {how}, {proof.steps} steps in each, by the {proof.clock}'s clock, without a"
        " profiler; 95% interval over the pairs"
    )


def _projected_text(projected: ProofGain, gain: ProofGain | None) -> str:
    text = f"{percent(projected.share)} ({percent(projected.low)} to {percent(projected.high)})"
    if gain is None:
        return text
    if gain.high < projected.low:
        return f"{text}: more than measured"
    return f"{text}: less than measured" if gain.low > projected.high else f"{text}: as measured"


def _result(result: Result) -> str:
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


def _compared_text(difference: Difference, kind: str) -> str:
    parts = []
    if difference.losses is not None:
        parts.append(f"{kind} {_apart(difference.losses)}")
    if difference.parameters is not None:
        parts.append(f"updates of parameters {_apart(difference.parameters)}")
    return ", ".join(parts) or "nothing could be compared"


def _apart(difference: float) -> str:
    return f"{difference:.1g} apart" if difference else "equal"


def percent(share: float) -> str:
    """Return a share as a percentage, two decimals below one percent."""
    return f"{share:.1%}" if abs(share) >= 0.01 else f"{share:.2%}"


__all__ = ["facts_of", "percent", "programs_of", "verdict_of"]
