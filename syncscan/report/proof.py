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
from syncscan.model.proof import Difference, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.report.document import Document, Range, about
from syncscan.report.markup import escaped
from syncscan.report.printable import printable
from syncscan.report.proof_story import facts_of, percent, programs_of, verdict_of
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
    verdict: ProofVerdict
    proven: bool
    before_us: float | None
    after_us: float | None
    gain: Annotated[GainDocument | None, about("parts of the step")]
    confidence: Annotated[float, about("of the interval")]
    matters: Annotated[float, about("smallest gain that matters")]
    projected: Annotated[GainDocument | None, about("set if a trace of the earlier state was given")]
    result: ResultDocument
    pairs: tuple[PairDocument, ...]
    steps: int
    clock: str
    together: Annotated[bool, about("whether both ran alternately")]
    seconds: float
    stopped: Annotated[str, about("why measuring stopped")]
    notes: tuple[str, ...]


def render_text(proof: Proof, width: int = 100, color: bool = False) -> str:
    """Return the verdict, the gain beside its projection, whether both compute the same, and each pair, as text."""
    return written(_parts(proof), width, color)


def render_markdown(proof: Proof) -> str:
    """Return the proof as Markdown for a pull request, without the pairs."""
    rows = [f"| {name} | {escaped(text, 500)} |" for name, text in facts_of(proof)]
    lines = [
        f"### {escaped(verdict_of(proof), 300)}",
        "",
        f"{escaped(programs_of(proof), 300)}",
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


def _gain_document(gain: ProofGain | None) -> GainDocument | None:
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
    yield Text(printable(programs_of(proof)))
    style = "bold green" if proof.proven else "bold"
    yield Text(printable(verdict_of(proof)), style=style)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in facts_of(proof):
        facts.add_row(f"  {name}", printable(text))
    yield facts
    if proof.pairs:
        yield _pairs(proof)
    for note in proof.notes:
        yield Text(f"note: {printable(note)}", style="dim")


def _pairs(proof: Proof) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name in ("pair", "before", "after", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, pair in enumerate(proof.pairs[:SHOWN], 1):
        table.add_row(str(number), duration(pair.before_us), duration(pair.after_us), percent(pair.gain))
    if len(proof.pairs) > SHOWN:
        table.add_row(f"… {len(proof.pairs) - SHOWN} more", "", "", "")
    return table
