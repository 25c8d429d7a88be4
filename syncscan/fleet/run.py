"""Analyze the traces of a job on one machine or many, reusing stored ranks, and join them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, cast

from syncscan.errors import SyncscanError, TraceUnreadable, UsageError
from syncscan.fleet import cluster, pool
from syncscan.fleet.join import join
from syncscan.fleet.listing import find
from syncscan.fleet.store import Store, named_as_rank, read_stored
from syncscan.fleet.worker import TraceOutcome
from syncscan.load.redaction import redacted
from syncscan.model.fleet import Fleet, Unread
from syncscan.model.rank import RankAnalysis, decoded

Progress = Callable[[int, int, int, str], None]
"""Callback with the number of finished traces, of unreadable ones among them, of all traces, and the last path."""


def analyze_fleet(
    where: str | os.PathLike[str] | Iterable[str],
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Fleet:
    """Find the cost of each sync to a job of many ranks, and which rank delays the others.

    Args:
        where: a folder, a glob or a URL with the traces of all ranks, or the traces themselves. Saved analyses, and
            ranks that were stored before, are taken in place of traces.
        out: folder or URL where what is kept of each rank is written as soon as there is one, 3 kB or so; given again,
            only what is new or has changed is analyzed.
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
        UsageError: `out` can't be written, or no scheduler answers.
        MissingExtra: a package for the storage or the scheduler isn't installed.
    """
    paths = find(where) if isinstance(where, (str, os.PathLike)) else [p for path in where for p in find(path)]
    ranks, unread = run(
        paths, store=out, jobs=jobs, scheduler=scheduler, max_memory=max_memory, progress=progress, options=options
    )
    if not ranks:
        first = f" The first, {unread[0].path}: {unread[0].reason}" if unread else ""
        raise TraceUnreadable(f"None of {len(unread)} traces can be read.{first}")
    return join(ranks, unread)


def run(
    paths: Sequence[str],
    *,
    store: str | os.PathLike[str] | None = None,
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
    for path in filter(named_as_rank, job.paths):
        job.read(path)
    traces = [path for path in job.paths if not named_as_rank(path)]
    stored = None if store is None else Store(store, traces, chosen)
    if stored is not None:
        for path, rank in stored.taken().items():
            job.add_rank(path, rank)
    left = [path for path in traces if path not in job.ranks]
    if not left:
        return job.result()
    if scheduler is not None:
        source = cluster.outcomes(left, chosen, scheduler, max_memory)
    else:
        source = pool.outcomes(left, chosen, pool.workers_for(len(left), jobs, max_memory))
    for path in left if stored is not None else ():
        cast(Store, stored).expect(path)
    with contextlib.closing(cast(Generator[tuple[str, TraceOutcome], None, None], source)) as outcomes:
        for path, outcome in outcomes:
            job.add(path, outcome, stored)
    return job.result()


class _Job:
    """State of each trace so far."""

    def __init__(self, paths: list[str], progress: Progress | None) -> None:
        self.paths, self.progress = paths, progress
        self.ranks: dict[str, RankAnalysis] = {}
        self.unread: dict[str, Unread] = {}

    def read(self, path: str) -> None:
        try:
            self.add_rank(path, read_stored(path))
        except SyncscanError as e:
            self.lost(path, redacted(str(e)))

    def add(self, path: str, outcome: TraceOutcome, stored: Store | None) -> None:
        if not outcome.rank:
            self.lost(path, outcome.reason)
            return
        rank = decoded(outcome.rank)
        if stored is not None:
            stored.put(path, rank)
        self.add_rank(path, rank)

    def add_rank(self, path: str, rank: RankAnalysis) -> None:
        self.ranks[path] = rank
        self._tell(path)

    def lost(self, path: str, reason: str) -> None:
        self.unread[path] = Unread(redacted(path), reason)
        self._tell(path)

    def result(self) -> tuple[list[RankAnalysis], list[Unread]]:
        """Return both results in the order of the paths."""
        ranks = [self.ranks[path] for path in self.paths if path in self.ranks]
        return ranks, [self.unread[path] for path in self.paths if path in self.unread]

    def _tell(self, path: str) -> None:
        if self.progress is not None:
            failed = len(self.unread)
            self.progress(len(self.ranks) + failed, failed, len(self.paths), redacted(path))
