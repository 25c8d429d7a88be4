"""Render a Proof as the JSON that other programs rely on (schema `syncscan.prove/2`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.json_text import Document, about, indented, written
from syncscan.proof.outcome import Difference, Measured, Proof, ProofGain, ProofVerdict, Result, Same
from syncscan.version import __version__

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
