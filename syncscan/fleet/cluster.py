"""Analyze the traces of a job on the workers of a Dask cluster.

Each worker opens the traces itself, so they must be readable from all of them: a shared folder or a storage. Each
result takes some kB, and nothing stays on the cluster. Dask decides which worker reads a trace, and how often it is
read again where workers die.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncscan.errors import MissingExtra, ProgramFailed, UsageError, installing
from syncscan.fleet.worker import TraceOutcome, outcome_of
from syncscan.load.unpack import reason, redacted
from syncscan.version import __version__

_CONNECT_S = 10


def outcomes(
    paths: Sequence[str], options: Mapping[str, Any], scheduler: str, max_memory: int | None
) -> Iterator[tuple[str, TraceOutcome]]:
    """Yield each path, as the workers see it, with its trace's outcome; close the iterator to cancel those in progress.

    Outcomes come as soon as there are any. `scheduler` is an address, `tcp://host:8786`; `max_memory` is bytes per
    trace.
    """
    with contextlib.closing(_connected(scheduler)) as client:
        from distributed import as_completed

        submitted = {client.submit(_task, p, dict(options), max_memory, __version__, pure=False): p for p in paths}
        for future, result in as_completed(list(submitted), loop=client.loop, with_results=True, raise_errors=False):
            yield submitted.pop(future), _outcome(result, client)
            future.release()


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


def _outcome(result: Any, client: Any) -> TraceOutcome:
    """Return the outcome in a future, or one for the error that was raised."""
    if isinstance(result, TraceOutcome):
        return result
    error = result[1] if isinstance(result, tuple) else result
    if client.status != "running" or type(error).__name__.endswith("CancelledError"):
        raise ProgramFailed(
            "The connection to the Dask scheduler was lost.", "Run it again: stored results are reused."
        )
    return TraceOutcome(reason=f"A worker failed on it: {type(error).__name__}: {reason(error)}.")


def _task(path: str, options: dict[str, Any], most: int | None, version: str) -> TraceOutcome:
    """Analyze one trace on a worker."""
    if version != __version__:
        return TraceOutcome(
            reason=f"The worker has syncscan {__version__}, but this is {version}: install the same version on both."
        )
    return outcome_of(path, options, most)
