"""From findings to the same with their flagged lines and those around, as their source files have them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.attribute.source_file import SourceFiles
from syncscan.model.finding import Attribution, Excerpt, Finding, Source
from syncscan.model.trace import Trace

MOST = 200
"""Findings whose lines are read: a reader looks at the first of them."""
_SINCE_NS = 1_400_000_000 * 10**9
"""A time of the epoch before this, 2014, is none: old traces count from when the machine was started."""


def at_hand(trace: Trace, files: SourceFiles) -> SourceFiles:
    """The sources that were saved with the trace, where it comes of a saved analysis; else these, each found once."""
    kept = trace.info.kept
    return SourceFiles(kept=kept.sources, newer=kept.newer) if kept else replace(files, found={})


def with_excerpts(trace: Trace, findings: Iterable[Finding], files: SourceFiles) -> tuple[Finding, ...]:
    """Read the lines that the first findings are about; a finding whose file isn't at hand stays as it is."""
    recorded_ns, files = _recorded_ns(trace), at_hand(trace, files)
    return tuple(
        replace(f, excerpt=_excerpt(f.where, files, recorded_ns)) if number < MOST else f
        for number, f in enumerate(findings)
    )


def _excerpt(where: Attribution, files: SourceFiles, recorded_ns: int) -> Excerpt | None:
    source = _flagged(where)
    return files.excerpt(source, recorded_ns) if source else None


def _flagged(where: Attribution) -> Source | None:
    """The user's line; the library's, where the user's only starts a training loop."""
    return where.in_library if where.in_loop else where.source


def _recorded_ns(trace: Trace) -> int:
    """When the recording ended, in ns of the epoch; 0 where the trace doesn't tell."""
    ends = trace.slices.end
    ended = trace.info.base_ns + int(ends.max()) if len(ends) else 0
    return ended if ended > _SINCE_NS else 0
