"""Read the job that a command is given, from its traces or a saved job, with progress on stderr."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscan.cli.analysis_options import AnalysisOptions
from syncscan.cli.output import warn
from syncscan.cli.progress import counting
from syncscan.errors import TraceNotFound, TraceUnreadable, UsageError
from syncscan.fleet.saved import fleet_of, named_as_fleet

if TYPE_CHECKING:
    from syncscan.model.fleet import Fleet

WARNINGS = 5
"""Most different warnings about traces that are printed."""


def is_saved(paths: Sequence[str]) -> bool:
    """Return whether this names a saved fleet, and not traces; a UsageError where it names both."""
    saved = [name for name in paths if named_as_fleet(name)]
    if saved and len(paths) > 1:
        raise UsageError(f"{saved[0]} already holds a whole job.", "Give it alone.")
    return bool(saved)


def fleet_from(
    paths: Sequence[str],
    analysis_options: AnalysisOptions,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Fleet:
    """Return the job of these folders, globs, URLs or traces, or the saved one."""
    if is_saved(paths):
        return _read_saved(paths[0])
    from syncscan.fleet import analyze_fleet

    with counting("analyzing", "traces") as progress:
        fleet = analyze_fleet(
            paths,
            jobs=jobs,
            scheduler=scheduler,
            max_memory=analysis_options.max_memory,
            progress=progress,
            **analysis_options.of_each(),
        )
    warn(_warnings(fleet))
    return fleet


def _read_saved(path: str) -> Fleet:
    from pathlib import Path

    again = "Write it with `syncscan fleet … -o NAME.fleet.json`."
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise TraceNotFound(f"{path} doesn't exist.", again) from None
    except (OSError, ValueError) as e:
        raise TraceUnreadable(f"{path} can't be read: {getattr(e, 'strerror', None) or e}.", again) from None
    try:
        return fleet_of(text)
    except (ValueError, RecursionError) as e:
        raise TraceUnreadable(
            f"{path} is not a saved job that this version of syncscan can read: {str(e)[:200]}.", again
        ) from None


def _warnings(fleet: Fleet) -> list[str]:
    """Return the warnings of the traces, each once with its ranks."""
    from syncscan.report.fleet_story import rank_phrase

    ranks: defaultdict[str, list[int]] = defaultdict(list)
    for rank in fleet.ranks:
        for warning in rank.of.warnings:
            ranks[warning].append(rank.number)
    count = len(fleet.ranks)
    sentences = [f"{rank_phrase(numbers, count)}: {warning}" for warning, numbers in ranks.items()]
    more = len(sentences) - WARNINGS
    return sentences[:WARNINGS] + ([f"{more} more; `syncscan analyze` shows them for each trace."] if more > 0 else [])
