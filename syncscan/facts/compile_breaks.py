"""Join dynamo's graph breaks and skipped frames with the waits at the same lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from syncscan.model.compiled import CompileEvent, CompileKind, CompileRecord
from syncscan.model.finding import Finding, Source


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
