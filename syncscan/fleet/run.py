"""From the traces of a job to its ranks and to what can't be read, by one machine or many; what is stored is taken."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

from syncscan.errors import SyncscanError, UsageError
from syncscan.fleet import cluster, pool
from syncscan.fleet.outcome import Outcome
from syncscan.fleet.store import Store, named_as_rank, read_stored
from syncscan.load.redaction import redacted
from syncscan.model.fleet import Unread
from syncscan.model.rank import RankAnalysis, decoded

Progress = Callable[[int, int, int, str], None]
"""Called with how many traces are done, how many of these can't be read, how many there are, and the last's path."""


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
    """Analyse the traces of a job, each once, in whatever order they are done in.

    Args:
        paths: of the traces; saved analyses and stored ranks may be among them.
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
        raise UsageError("A job's traces can't come from standard input: each rank has its own.", "Name a folder.")
    job = _Job(list(dict.fromkeys(paths)), progress)
    chosen = dict(options or {})
    for path in filter(named_as_rank, job.paths):
        job.read(path)
    traces = [path for path in job.paths if not named_as_rank(path)]
    kept = None if store is None else Store(store, traces, chosen)
    if kept is not None:
        for path, rank in kept.taken().items():
            job.found(path, rank)
    left = [path for path in traces if path not in job.ranks]
    if not left:
        return job.result()
    if scheduler is not None:
        source = cluster.outcomes(left, chosen, scheduler, max_memory)
    else:
        source = pool.outcomes(left, chosen, pool.workers_for(len(left), jobs, max_memory))
    for path in left if kept is not None else ():
        cast(Store, kept).expect(path)
    with contextlib.closing(cast(Generator[tuple[str, Outcome], None, None], source)) as outcomes:
        for path, outcome in outcomes:
            job.add(path, outcome, kept)
    return job.result()


class _Job:
    """What is known of each trace so far."""

    def __init__(self, paths: list[str], progress: Progress | None) -> None:
        self.paths, self.progress = paths, progress
        self.ranks: dict[str, RankAnalysis] = {}
        self.unread: dict[str, Unread] = {}

    def read(self, path: str) -> None:
        """Take a stored rank that is named itself."""
        try:
            self.found(path, read_stored(path))
        except SyncscanError as e:
            self.lost(path, redacted(str(e)))

    def add(self, path: str, outcome: Outcome, kept: Store | None) -> None:
        """Take what became of a trace, and store its rank."""
        if not outcome.rank:
            self.lost(path, outcome.reason)
            return
        rank = decoded(outcome.rank)
        if kept is not None:
            kept.put(path, rank)
        self.found(path, rank)

    def found(self, path: str, rank: RankAnalysis) -> None:
        self.ranks[path] = rank
        self._tell(path)

    def lost(self, path: str, reason: str) -> None:
        self.unread[path] = Unread(redacted(path), reason)
        self._tell(path)

    def result(self) -> tuple[list[RankAnalysis], list[Unread]]:
        """Both in the order of the paths, whoever was first."""
        ranks = [self.ranks[path] for path in self.paths if path in self.ranks]
        return ranks, [self.unread[path] for path in self.paths if path in self.unread]

    def _tell(self, path: str) -> None:
        if self.progress is not None:
            failed = len(self.unread)
            self.progress(len(self.ranks) + failed, failed, len(self.paths), redacted(path))
