"""Analyze the traces of a job on one machine or many, reusing stored ranks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

from syncscan.errors import SyncscanError, UsageError
from syncscan.fleet import cluster, pool
from syncscan.fleet.outcome import TraceOutcome
from syncscan.fleet.store import Store, named_as_rank, read_stored
from syncscan.load.redaction import redacted
from syncscan.model.fleet import Unread
from syncscan.model.rank import RankAnalysis, decoded

Progress = Callable[[int, int, int, str], None]
"""Callback with the number of finished traces, of unreadable ones among them, of all traces, and the last path."""


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
    """Analyze the traces of a job, each once, in any order.

    Args:
        paths: the paths of the traces; saved analyses and stored ranks may be among them.
        store: folder or URL where each rank is written as soon as there is one, and taken from the next time.
        jobs: processes on this machine; by default one a processor, as far as there is memory for them.
        scheduler: address of a Dask scheduler whose workers do it instead.
        max_memory: bytes that the processes may take together; of a cluster's worker for one trace.
        progress: see `Progress`.
        options: the further ones of `syncscan.analyze`.

    Returns:
        The ranks and what can't be read, both in the order of the paths.

    Raises:
        UsageError: the store can't be written, no scheduler answers, or a trace is standard input.
        MissingExtra: a package for that isn't installed.
        ProgramFailed: no process can be started, or the scheduler went away.
    """
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
        """Read a stored rank that was named directly."""
        try:
            self.add_rank(path, read_stored(path))
        except SyncscanError as e:
            self.lost(path, redacted(str(e)))

    def add(self, path: str, outcome: TraceOutcome, stored: Store | None) -> None:
        """Add the outcome of a trace, and store its rank."""
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
