"""Save an Analysis: its JSON report with one more key, `saved`, from which it can be rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.json_text import strict_value
from syncscan.model.saved import Asked, Saved, SavedTrace, packed
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import Flows, Frames, Slices, Trace


def render(analysis: Analysis, report: str, sources: Mapping[str, str]) -> str:
    """Return the saved analysis as JSON: the report indented, the saved data on one line."""
    saved = msgspec.json.encode(_collect(analysis, sources)).decode()
    return f'{report.rstrip().removesuffix("}").rstrip()},\n  "saved": {saved}\n}}\n'


def _collect(analysis: Analysis, sources: Mapping[str, str]) -> Saved:
    trace = analysis.whole or analysis.trace
    source_texts = trace.info.stored.sources if trace.info.stored else sources
    newer = {f.source.file for f in analysis.findings if f.source and f.excerpt and f.excerpt.newer}
    return Saved(
        asked=_options(analysis),
        sources=strict_value(dict(source_texts)),
        newer=tuple(sorted(newer & source_texts.keys())),
        trace=saved_trace(trace),
    )


def _options(analysis: Analysis) -> Asked:
    steps, step = analysis.trace.steps_found, analysis.step
    given = step.unprofiled_us if step.unprofiled_us != analysis.trace.info.capture.unprofiled_step_us else None
    return Asked(
        step_ms=given / 1e3 if given else None,
        step_scope=steps.name if steps.by is FoundBy.SCOPE else None,
        steps="none" if steps.asked else "auto",
        process=step.processes[0] if step.processes else None,
        chosen=steps.chosen,
    )


def saved_trace(trace: Trace, level: int = 6) -> SavedTrace:
    """Return the parts of a linked trace that analyses read, compressed by zlib at `level`."""
    info = trace.info
    return SavedTrace(
        path=strict_value(info.path),
        size_bytes=info.size_bytes,
        events=info.events,
        vendor=info.vendor.value,
        complete=info.complete,
        warnings=strict_value(info.warnings),
        metadata=strict_value(dict(info.metadata)),
        strings=trace.strings,
        tracks=tuple(trace.tracks),
        slices=packed({name: column for name, column in _columns(trace.slices) if name != "parent"}, level),
        frames=packed(dict(_columns(trace.drawn_frames)), level),
        flows=packed(dict(_columns(trace.flows)), level),
    )


def _columns(of: Slices | Frames | Flows) -> list[tuple[str, Any]]:
    return [(name, getattr(of, name)) for name in of.__struct_fields__]
