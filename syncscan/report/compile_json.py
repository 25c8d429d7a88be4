"""Write dynamo's graph breaks, skipped frames and recompiles as a part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.facts.compile_breaks import CompileBreak
from syncscan.model.analysis import Analysis
from syncscan.model.compiled import CompileKind
from syncscan.report.compile_breaks import joined, sentence
from syncscan.report.document import about


class CompileBreakDocument(Struct, frozen=True):
    """A graph break, a skipped frame or a recompile."""

    kind: CompileKind
    reason: Annotated[str, about("from dynamo")]
    hint: Annotated[str | None, about("dynamo's hints")]
    file: str
    line: Annotated[int, about("line that stopped the compiler; -1 if dynamo doesn't state it")]
    function: str
    frame: Annotated[str, about("function that dynamo compiled")]
    frame_file: str
    frame_line: Annotated[int, about("its first")]
    count: int
    findings: Annotated[tuple[str, ...], about("ids of the waits at its line")]
    findings_in_frame: Annotated[tuple[str, ...], about("ids of other waits in a frame that runs eagerly")]


class CompileDocument(Struct, frozen=True):
    """Graph breaks, skipped frames and recompiles of torch.compile, as dynamo reports them."""

    torch: str
    tried: Annotated[bool, about("the program compiles nothing: a dry run gave its modules to dynamo")]
    frames: int
    graphs: int
    breaks: Annotated[tuple[CompileBreakDocument, ...], about("where the host waits first")]
    sentence: str
    notes: Annotated[tuple[str, ...], about("what is unknown about it, and why")]


def compile_document(analysis: Analysis) -> CompileDocument | None:
    """Return what JSON says of dynamo; None where it wasn't asked."""
    record = analysis.trace.info.capture.compiled
    if record is None:
        return None
    return CompileDocument(
        torch=record.torch,
        tried=record.tried,
        frames=record.frames,
        graphs=record.graphs,
        breaks=tuple(_break(broken) for broken in joined(analysis)),
        sentence=sentence(analysis),
        notes=record.notes,
    )


def _break(broken: CompileBreak) -> CompileBreakDocument:
    event = broken.event
    return CompileBreakDocument(
        kind=event.kind,
        reason=event.reason,
        hint=event.hint or None,
        file=event.file,
        line=event.line,
        function=event.function,
        frame=event.frame,
        frame_file=event.frame_file,
        frame_line=event.frame_line,
        count=event.count,
        findings=broken.findings,
        findings_in_frame=broken.in_frame,
    )
