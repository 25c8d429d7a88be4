"""Analyze the traces of a job on the workers of a Dask cluster.

Each worker opens the traces itself, so they must be readable from all of them: a shared folder or a storage. Each
result takes some kB, and nothing stays on the cluster.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncscan.errors import MissingExtra, ProgramFailed, UsageError, installing
from syncscan.fleet.outcome import TraceOutcome, outcome_of
from syncscan.load.memory_check import PART
from syncscan.load.redaction import redacted
from syncscan.load.stored import reason
from syncscan.version import __version__

_AHEAD = 2
"""Traces submitted per thread of the cluster, one of them waiting, which hides communication."""
_CONNECT_S = 10


def outcomes(
    paths: Sequence[str], options: Mapping[str, Any], scheduler: str, max_memory: int | None
) -> Iterator[tuple[str, TraceOutcome]]:
    """Analyze traces; close the iterator to cancel those in progress.

    A trace whose worker dies is read again by another, as often as the scheduler allows it (`allowed-failures`), and
    then once more with no other beside it.

    Args:
        paths: the paths of the traces, as the workers see them.
        options: the options of `syncscan.analyze`.
        scheduler: its address, `tcp://host:8786`.
        max_memory: bytes that each trace may take; by default most of a worker's limit, divided by its threads.

    Yields:
        Each path once, with what became of it, as soon as it did.

    Raises:
        MissingExtra: Dask isn't installed.
        UsageError: there is no scheduler at this address.
        ProgramFailed: it went away.
    """
    with contextlib.closing(_connected(scheduler)) as client:
        killed: list[str] = []
        for path, outcome in _round(client, paths, options, max_memory, None):
            if outcome.killed:
                killed.append(path)
            else:
                yield path, outcome
        yield from _round(client, killed, options, max_memory, 1)


def _connected(scheduler: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("A scheduler needs dask.distributed.", installing("fleet")) from None
    if "@" in scheduler:  # Dask takes none, and would say them in its errors
        why = f"{redacted(scheduler)} is not a scheduler address: it must not contain a user name."
        raise UsageError(why, "Give it as tcp://host:8786; certificates come from Dask's configuration.")
    try:
        return Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except Exception as e:  # of the address, of the network, of TLS
        why = f"No Dask scheduler answers at {redacted(scheduler)}: {reason(e)}."
        raise UsageError(why, "Start one with `dask scheduler`, and give the address that it prints.") from None


def _round(
    client: Any, paths: Sequence[str], options: Mapping[str, Any], most: int | None, at_once: int | None
) -> Iterator[tuple[str, TraceOutcome]]:
    """Yield the outcomes of all traces, run `at_once` at a time, or as many as the cluster's current threads allow."""
    from distributed import as_completed

    waiting, running = deque(paths), dict[Any, str]()
    done = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def submit() -> None:
        while waiting and len(running) < (at_once or _room(client)):
            path = waiting.popleft()
            future = client.submit(_task, path, dict(options), most, __version__, key=_key(), pure=False)
            running[future] = path
            done.add(future)

    try:
        submit()
        while running:
            future, result = next(done)
            path = running.pop(future)
            submit()
            yield path, _outcome(result, client)
            future.release()
    finally:
        if running:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.cancel(list(running), force=True)


def _key() -> str:
    """Return a key for one task; it names no trace, as the dashboard shows it to everybody."""
    return f"syncscan-rank-{uuid.uuid4().hex}"


def _room(client: Any) -> int:
    threads: int = sum(client.nthreads().values())
    return _AHEAD * max(1, threads)


def _outcome(result: Any, client: Any) -> TraceOutcome:
    """Return the outcome in a future, or one for the error that was raised."""
    if isinstance(result, TraceOutcome):
        return result
    error = result[1] if isinstance(result, tuple) else result
    kind = type(error).__name__
    if kind == "KilledWorker":
        return TraceOutcome(reason="Every worker that read it died, probably because memory ran out.", killed=True)
    if client.status != "running" or kind.endswith("CancelledError"):
        raise ProgramFailed(
            "The connection to the Dask scheduler was lost.", "Run it again: stored results are reused."
        )
    return TraceOutcome(reason=f"A worker failed on it: {kind}: {reason(error)}.")


def _task(path: str, options: dict[str, Any], most: int | None, version: str) -> TraceOutcome:
    """Analyze one trace on a worker."""
    if version != __version__:
        return TraceOutcome(
            reason=f"The worker has syncscan {__version__}, but this is {version}: install the same version on both."
        )
    return outcome_of(path, options, _share() if most is None else most)


def _share() -> int | None:
    """Return the memory for a trace on this worker, below its nanny's limit; None without a limit."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    return int(limit * PART) // max(1, worker.state.nthreads) if limit else None
