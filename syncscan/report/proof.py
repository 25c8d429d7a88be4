"""Render a Proof as text, JSON (schema `syncscan.prove/1`) or Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.json_text import indented
from syncscan.model.proof import Difference, Gain, Proof, Result, Same, Verdict
from syncscan.report.document import Document, Range, about
from syncscan.report.markup import escaped
from syncscan.report.printable import printable
from syncscan.report.terminal import written
from syncscan.report.units import duration
from syncscan.version import __version__

SCHEMA = "syncscan.prove/1"
SHOWN = 12
"""Pairs in the table of a text report; JSON has them all."""


class GainDocument(Struct, frozen=True):
    """A share of the step, with its interval."""

    share: float
    range: Range


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

    before_us: float
    after_us: float
    gain: float


class ProofDocument(Document, frozen=True):
    """Whether a change is a real gain and computes the same."""

    before: str
    after: str
    device: str
    verdict: Verdict
    proven: bool
    before_us: float | None
    after_us: float | None
    gain: Annotated[GainDocument | None, about("parts of the step")]
    confidence: Annotated[float, about("of the interval")]
    matters: Annotated[float, about("least gain that counts")]
    projected: Annotated[GainDocument | None, about("set if a trace of the earlier state was given")]
    result: ResultDocument
    pairs: tuple[PairDocument, ...]
    steps: int
    clock: str
    together: Annotated[bool, about("whether both ran in turns")]
    seconds: float
    stopped: Annotated[str, about("why measuring stopped")]
    notes: tuple[str, ...]


def render_text(proof: Proof, width: int = 100, color: bool = False) -> str:
    """Return the verdict, the gain beside its projection, whether both compute the same, and each pair, as text."""
    return written(_parts(proof), width, color)


def render_markdown(proof: Proof) -> str:
    """Return the proof as Markdown for a pull request, without the pairs."""
    rows = [f"| {name} | {escaped(text, 500)} |" for name, text in _facts(proof)]
    lines = [
        f"### {escaped(_verdict(proof), 300)}",
        "",
        f"{escaped(_what(proof), 300)}",
        "",
        "| | |",
        "|---|---|",
        *rows,
    ]
    lines += [f"\n{escaped(note, 500)}" for note in proof.notes]
    return "\n".join([*lines, "", f"<sub>syncscan {__version__}</sub>", ""])


def render_json(proof: Proof) -> str:
    """Return the proof as indented JSON; times in µs, gains and differences as fractions."""
    return indented(document(proof))


def document(proof: Proof) -> ProofDocument:
    """Return the proof as its JSON document; numbers that aren't finite are null."""
    p = proof
    return ProofDocument(
        schema=SCHEMA,
        syncscan=__version__,
        before=p.before,
        after=p.after,
        device=p.device,
        verdict=p.verdict,
        proven=p.proven,
        before_us=p.before_us if p.pairs else None,
        after_us=p.after_us if p.gain else None,
        gain=_gain_document(p.gain),
        confidence=0.95,
        matters=p.matters,
        projected=_gain_document(p.projected_gain),
        result=_result_document(p.result),
        pairs=tuple(PairDocument(q.before_us, q.after_us, q.gain) for q in p.pairs),
        steps=p.steps,
        clock=p.clock,
        together=p.together,
        seconds=p.seconds,
        stopped=p.stopped,
        notes=p.notes,
    )


def _gain_document(gain: Gain | None) -> GainDocument | None:
    return GainDocument(gain.share, (gain.low, gain.high)) if gain else None


def _result_document(result: Result) -> ResultDocument:
    return ResultDocument(
        same=result.same,
        why=result.why,
        steps=result.steps,
        compared=result.source,
        deterministic=result.deterministic,
        difference=result.difference,
        own_difference=result.own,
        rounding_difference=result.rounding,
        not_compared=result.not_compared or None,
        delayed_difference=result.delayed,
    )


def _parts(proof: Proof) -> Iterator[RenderableType]:
    yield Text(printable(_what(proof)))
    style = "bold green" if proof.proven else "bold"
    yield Text(printable(_verdict(proof)), style=style)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(proof):
        facts.add_row(f"  {name}", printable(text))
    yield facts
    if proof.pairs:
        yield _pairs(proof)
    for note in proof.notes:
        yield Text(f"note: {printable(note)}", style="dim")


def _what(proof: Proof) -> str:
    return f"{proof.before} → {proof.after} · {proof.device}"


def _verdict(proof: Proof) -> str:
    return {
        Verdict.PROVEN: f"Proven: {_change(proof)}.",
        Verdict.DIFFERENT: f"Not proven: it computes something else. {_change(proof, capital=True)}.",
        Verdict.NO_GAIN: f"Not proven: {_nothing(proof)}. {_change(proof, capital=True)}.",
        Verdict.SLOWER: f"Not proven: it is slower. {_change(proof, capital=True)}.",
        Verdict.UNKNOWN: f"Not proven{_unknown(proof)}. {_change(proof, capital=True)}.",
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
        return ": whether it computes the same can't be told"
    return ": the difference isn't known well enough"


def _change(proof: Proof, capital: bool = False) -> str:
    if proof.gain is None:
        text = f"too few pairs of processes to tell a gain: {len(proof.pairs)} of 3"
    else:
        g = proof.gain
        word = "less" if g.share >= 0 else "more"
        ends = (g.low, g.high) if g.share >= 0 else (-g.high, -g.low)
        text = (
            f"a step takes {duration(proof.after_us)} instead of {duration(proof.before_us)}, "
            f"{_percent(abs(g.share))} {word} ({_percent(ends[0])} to {_percent(ends[1])})"
        )
    return text[0].upper() + text[1:] if capital else text


def _facts(proof: Proof) -> Iterator[tuple[str, str]]:
    if proof.projected_gain is not None:
        yield "projected", _projected(proof.projected_gain, proof.gain)
    yield "result", _result(proof.result)
    if proof.pairs:
        yield "measured", _measured(proof)
    yield "stopped", f"after {proof.seconds:.0f} s: {proof.stopped}"


def _measured(proof: Proof) -> str:
    pairs = "1 pair" if len(proof.pairs) == 1 else f"{len(proof.pairs)} pairs"
    how = "taking turns" if proof.together else "one after the other"
    return (
        f"{pairs} of fresh processes {how}, {proof.steps} steps in each, by the {proof.clock}'s clock, without a"
        " profiler; 95% interval over the pairs"
    )


def _projected(projected: Gain, gain: Gain | None) -> str:
    text = f"{_percent(projected.share)} ({_percent(projected.low)} to {_percent(projected.high)})"
    if gain is None:
        return text
    if gain.high < projected.low:
        return f"{text}: more than measured"
    return f"{text}: less than measured" if gain.low > projected.high else f"{text}: as measured"


def _result(result: Result) -> str:
    what = "losses" if result.source == "losses" else "outputs"
    steps = f"{result.steps} seeded {'step' if result.steps == 1 else 'steps'}"
    parts = [_compared(result.difference, what)]
    if result.own is not None and not result.own.nothing:
        parts.append(f"not deterministic: the first differs from itself, {_compared(result.own, what)}")
    if result.rounding is not None:
        parts.append(f"rounding errors alone: {_compared(result.rounding, what)}")
    if result.delayed is not None:
        parts.append(f"with its copies delayed: {_compared(result.delayed, what)}")
    if result.not_compared:
        parts.append(result.not_compared)
    head = {Same.YES: "the same", Same.NO: f"different: {result.why}", Same.UNKNOWN: f"unknown: {result.why}"}
    return f"{head[result.same]}. After {steps} {'; '.join(parts)}"


def _compared(difference: Difference, what: str) -> str:
    parts = []
    if difference.losses is not None:
        parts.append(f"{what} {_apart(difference.losses)}")
    if difference.parameters is not None:
        parts.append(f"updates of parameters {_apart(difference.parameters)}")
    return ", ".join(parts) or "nothing could be compared"


def _apart(difference: float) -> str:
    return f"{difference:.1g} apart" if difference else "equal"


def _pairs(proof: Proof) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name in ("pair", "before", "after", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, pair in enumerate(proof.pairs[:SHOWN], 1):
        table.add_row(str(number), duration(pair.before_us), duration(pair.after_us), _percent(pair.gain))
    if len(proof.pairs) > SHOWN:
        table.add_row(f"… {len(proof.pairs) - SHOWN} more", "", "", "")
    return table


def _percent(share: float) -> str:
    return f"{share:.1%}" if abs(share) >= 0.01 else f"{share:.2%}"
