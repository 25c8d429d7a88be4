"""Phrase dynamo's graph breaks, skipped frames and recompiles as a sentence and a list with the waits at each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Annotated

from msgspec import Struct
from msgspec.structs import asdict

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.json_text import about
from syncscan.model.states import CompileEvent, CompileKind, CompileRecord
from syncscan.report.blocks import Block, Fold, Item, Items, Sentence, code, strong

SHOWN = 20
"""Rows that are shown; JSON has them all."""
TITLE = "Where torch.compile breaks the graph"


class CompileDocument(Struct, frozen=True):
    """Graph breaks, skipped frames and recompiles of torch.compile, as dynamo reports them."""

    torch: str
    frames: int
    graphs: int
    breaks: Annotated[tuple[CompileBreak, ...], about("where the host waits first")]
    sentence: str
    notes: Annotated[tuple[str, ...], about("what is unknown about it, and why")]


def compile_document(analysis: Analysis) -> CompileDocument | None:
    record = analysis.trace.info.capture.compiled
    if record is None:
        return None
    counts = record.torch, record.frames, record.graphs
    return CompileDocument(*counts, joined(analysis), sentence(analysis), record.notes)


def joined(analysis: Analysis) -> tuple[CompileBreak, ...]:
    """Return dynamo's reports with the findings at each; empty where it wasn't asked."""
    record = analysis.trace.info.capture.compiled
    return compile_breaks(record, analysis.findings) if record else ()


def sentence(analysis: Analysis) -> str:
    record = analysis.trace.info.capture.compiled
    if record is None or not (record.frames or record.events):
        return ""
    breaks = joined(analysis)
    counts = [_count_text(record.events, kind, *names) for kind, names in _NAMES.items()]
    totals = ", ".join(count for count in counts if count) or "no graph breaks, no frames run eagerly, no recompiles"
    waits = sum(bool(broken.findings or broken.findings_in_frame) for broken in breaks)
    here = f"; {waits} where the host waits" if waits else ""
    return f"torch {record.torch}: dynamo made {_several(record.graphs, 'graph')}; {totals}{here}."


def blocks(analysis: Analysis) -> Iterator[Block]:
    """Yield dynamo's graph breaks, with the waits at each; nothing unless dynamo was asked."""
    if text := sentence(analysis):
        yield Sentence(text)
    if breaks := joined(analysis):
        titles = {f.id: f.title for f in analysis.findings}
        more = [Item(f"… {len(breaks) - SHOWN} more: --format json")] if len(breaks) > SHOWN else []
        yield Fold(TITLE, (Items((*(_item(broken, titles) for broken in breaks[:SHOWN]), *more)),))
    record = analysis.trace.info.capture.compiled
    yield from (Sentence(note, "dim") for note in (record.notes if record else ()))


def _item(broken: CompileBreak, titles: dict[str, str]) -> Item:
    at = code(f"{PurePath(broken.file).name}:{broken.line}")
    waits = "; ".join(_waits(broken, titles))
    below = (strong(f"the host waits there: {waits}"),) if waits else ()
    return Item((at, f" {_became(broken)}: {broken.reason}"), below)


_NAMES = {
    CompileKind.BREAK: ("graph break", "graph breaks"),
    CompileKind.SKIPPED: ("frame run eagerly", "frames run eagerly"),
    CompileKind.RECOMPILED: ("recompile", "recompiles"),
    CompileKind.NO_CUDA_GRAPH: ("frame without a CUDA graph", "frames without CUDA graphs"),
}


def _count_text(events: Sequence[CompileEvent], kind: CompileKind, one: str, several: str) -> str:
    """Return how many there are: a place counts once however often a graph breaks there, each recompile counts."""
    of_kind = [event for event in events if event.kind is kind]
    count = sum(e.count for e in of_kind) if kind is CompileKind.RECOMPILED else len({_place(e) for e in of_kind})
    return f"{count} {one if count == 1 else several}" if count else ""


def _several(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _waits(broken: CompileBreak, titles: dict[str, str]) -> Iterator[str]:
    yield from dict.fromkeys(titles[id] for id in broken.findings)
    if broken.findings_in_frame:
        besides = " more" if broken.findings else ""
        yield f"{len(broken.findings_in_frame)}{besides} in the frame"


def _became(event: CompileEvent) -> str:
    often = f", {event.count} times" if event.count > 1 else ""
    if event.kind is CompileKind.SKIPPED:
        return f"all of {event.frame}() runs eagerly{often}"
    if event.kind is CompileKind.RECOMPILED:
        return f"{event.frame}() is recompiled{often}"
    if event.kind is CompileKind.NO_CUDA_GRAPH:
        return f"{event.frame}() gets no CUDA graph{often}"
    return f"the graph of {event.frame}() ends{often}"


def _place(event: CompileEvent) -> tuple[str, int]:
    return event.file, event.line


class CompileBreak(CompileEvent, frozen=True, kw_only=True):
    """A graph break, a skipped frame or a recompile, with the findings that stand there."""

    findings: tuple[str, ...] = ()
    """Ids of those at its line."""
    findings_in_frame: tuple[str, ...] = ()
    """Ids of those at other lines of a frame that runs eagerly."""


_ORDER = {CompileKind.SKIPPED: 0, CompileKind.BREAK: 1, CompileKind.RECOMPILED: 2, CompileKind.NO_CUDA_GRAPH: 3}


def compile_breaks(record: CompileRecord, findings: Sequence[Finding]) -> tuple[CompileBreak, ...]:
    """Return dynamo's reports with the findings at each, the costliest first; reports without findings come last."""
    joined = [_join(event, findings) for event in record.events]
    place = {finding.id: number for number, finding in enumerate(findings)}

    def order(found: CompileBreak) -> tuple[int, int]:
        here = [place[id] for id in (*found.findings, *found.findings_in_frame)]
        return min(here, default=len(place)), _ORDER[found.kind]

    return tuple(sorted(joined, key=order))


def _join(event: CompileEvent, findings: Sequence[Finding]) -> CompileBreak:
    if event.kind in (CompileKind.RECOMPILED, CompileKind.NO_CUDA_GRAPH):
        return CompileBreak(**asdict(event))
    ids = tuple(f.id for f in findings if any(_is_at(source, event) for source in _sources(f)))
    if event.kind is CompileKind.BREAK:
        return CompileBreak(**asdict(event), findings=ids)
    inside = (f.id for f in findings if any(_is_in_frame(source, event) for source in _sources(f)))
    in_frame = tuple(id for id in inside if id not in ids)
    return CompileBreak(**asdict(event), findings=ids, findings_in_frame=in_frame)


def _sources(finding: Finding) -> Iterator[Source]:
    yield from (source for source in (finding.source, finding.in_library) if source is not None)


def _is_at(source: Source, event: CompileEvent) -> bool:
    if source.file != event.file:
        return False
    return source.line == event.line if source.exact else event.line in source.candidates


def _is_in_frame(source: Source, event: CompileEvent) -> bool:
    """Return whether a line is the frame's own; without the frame's last line its name has to do."""
    if source.file != event.frame_file:
        return False
    if event.frame_last >= 0:
        return event.frame_line <= source.line <= event.frame_last
    return source.function == event.frame
