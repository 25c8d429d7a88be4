"""Add to findings an excerpt of their source: the flagged lines and the lines around them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.attribute.source_file import SourceFiles
from syncscan.model.finding import Attribution, Excerpt, Finding, Source
from syncscan.model.trace import Trace

MOST = 200
"""Number of findings that get an excerpt; readers look at the first ones."""
_SINCE_NS = 1_400_000_000 * 10**9
"""Times before this one (2014) aren't epoch times: old traces count from the boot of the machine."""


def at_hand(trace: Trace, files: SourceFiles) -> SourceFiles:
    """Return the sources saved with the trace of a saved analysis; else `files`, with a cache of resolved paths."""
    saved = trace.info.kept
    return SourceFiles(saved=saved.sources, newer=saved.newer) if saved else replace(files, resolved={})


def with_excerpts(trace: Trace, findings: Iterable[Finding], files: SourceFiles) -> tuple[Finding, ...]:
    """Return the findings, the first `MOST` with an excerpt where their source file is available."""
    recorded_ns, files = _recorded_ns(trace), at_hand(trace, files)
    return tuple(
        replace(f, excerpt=_excerpt(f.where, files, recorded_ns)) if number < MOST else f
        for number, f in enumerate(findings)
    )


def _excerpt(where: Attribution, files: SourceFiles, recorded_ns: int) -> Excerpt | None:
    source = _flagged_line(where)
    return files.excerpt(source, recorded_ns) if source else None


def _flagged_line(where: Attribution) -> Source | None:
    """Return the user's line, or the library's where the user's line only starts a training loop."""
    return where.in_library if where.in_loop else where.source


def _recorded_ns(trace: Trace) -> int:
    """Return when the recording ended, in ns since the epoch; 0 if the trace doesn't state it."""
    ends = trace.slices.end
    ended = trace.info.base_ns + int(ends.max()) if len(ends) else 0
    return ended if ended > _SINCE_NS else 0
