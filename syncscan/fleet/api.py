"""The pipeline of a job: find → run → join → Fleet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from syncscan.errors import TraceUnreadable
from syncscan.fleet.join import join
from syncscan.fleet.listing import find
from syncscan.fleet.run import Progress, run
from syncscan.model.fleet import Fleet


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
