"""Analyze the traces of a job on one machine or many, and join them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, cast

from syncscan.errors import TraceUnreadable, UsageError
from syncscan.fleet import cluster, pool
from syncscan.fleet.join import join
from syncscan.fleet.listing import find
from syncscan.fleet.worker import TraceOutcome
from syncscan.load.unpack import redacted
from syncscan.model.fleet import Fleet, Unread
from syncscan.model.rank import RankAnalysis, decoded

Progress = Callable[[int, int, int, str], None]
"""Callback with the number of finished traces, of unreadable ones among them, of all traces, and the last path."""


def analyze_fleet(
    where: str | os.PathLike[str] | Iterable[str],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Fleet:
    """Find the cost of each sync to a job of many ranks, and which rank delays the others.

    Args:
        where: a folder, a glob or a URL with the traces of all ranks, or the traces themselves. Saved analyses are
            taken in place of traces.
        jobs: processes on this machine; by default one a processor, as far as there is memory for them.
        scheduler: address of a Dask scheduler, whose workers analyze the traces instead; they must see them too.
        max_memory: bytes that the processes may take together, by default most of what is free; of a cluster's worker
            for one trace.
        progress: called with how many traces are done, how many of these can't be read, how many there are, and the
            path of the last.
        options: the further ones of `syncscan.analyze`, for each trace.

    Raises:
        TraceNotFound: there is no trace.
        TraceUnreadable: none of them can be read, or what is left makes no job.
        UsageError: no scheduler answers.
        MissingExtra: a package for the storage or the scheduler isn't installed.
    """
    paths = find(where) if isinstance(where, (str, os.PathLike)) else [p for path in where for p in find(path)]
    ranks, unread = run(
        paths, jobs=jobs, scheduler=scheduler, max_memory=max_memory, progress=progress, options=options
    )
    if not ranks:
        first = f" The first, {unread[0].path}: {unread[0].reason}" if unread else ""
        raise TraceUnreadable(f"None of {len(unread)} traces can be read.{first}")
    return join(ranks, unread)


def run(
    paths: Sequence[str],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[list[RankAnalysis], list[Unread]]:
    """Analyze the traces of a job, each once, in any order; return ranks and unreadable traces in that of the paths."""
    if "-" in paths:
        raise UsageError("A job's traces can't come from standard input: each rank has its own.", "Give a folder.")
    job = _Job(list(dict.fromkeys(paths)), progress)
    chosen = dict(options or {})
    if scheduler is not None:
        source = cluster.outcomes(job.paths, chosen, scheduler, max_memory)
    else:
        source = pool.outcomes(job.paths, chosen, *pool.workers_for(len(job.paths), jobs, max_memory))
    with contextlib.closing(cast(Generator[tuple[str, TraceOutcome], None, None], source)) as outcomes:
        for path, outcome in outcomes:
            job.add(path, outcome)
    return job.result()


class _Job:
    """State of each trace so far."""

    def __init__(self, paths: list[str], progress: Progress | None) -> None:
        self.paths, self.progress = paths, progress
        self.ranks: dict[str, RankAnalysis] = {}
        self.unread: dict[str, Unread] = {}

    def add(self, path: str, outcome: TraceOutcome) -> None:
        if outcome.rank:
            self.ranks[path] = decoded(outcome.rank)
        else:
            self.unread[path] = Unread(redacted(path), outcome.reason)
        if self.progress is not None:
            failed = len(self.unread)
            self.progress(len(self.ranks) + failed, failed, len(self.paths), redacted(path))

    def result(self) -> tuple[list[RankAnalysis], list[Unread]]:
        """Return both results in the order of the paths."""
        ranks = [self.ranks[path] for path in self.paths if path in self.ranks]
        return ranks, [self.unread[path] for path in self.paths if path in self.unread]
