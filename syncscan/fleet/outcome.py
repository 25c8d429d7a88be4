"""Analyze a trace to an encoded rank, or to the reason why not; any process or machine may run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.errors import SyncscanError, TraceTooLarge
from syncscan.fleet.rank import read_rank
from syncscan.load.redaction import redacted
from syncscan.load.unpack import reason
from syncscan.model.rank import encoded


class TraceOutcome(msgspec.Struct, frozen=True):
    """Outcome of one trace."""

    rank: bytes = b""
    """The rank, encoded by `model.rank.encoded`; empty where the trace can't be read."""
    reason: str = ""
    """Why the trace can't be read."""
    too_large: bool = False
    """Whether memory was insufficient."""
    killed: bool = False
    """Whether the reading process was killed."""


def outcome_of(path: str, options: Mapping[str, Any], most: int | None) -> TraceOutcome:
    """Analyze one trace; only errors that end the process are raised.

    Args:
        path: the path, as `syncscan.analyze` takes it.
        options: the further ones of `syncscan.analyze`.
        most: bytes that this may take, about; None for most of what is free.
    """
    try:
        return TraceOutcome(rank=encoded(read_rank(path, **{**options, "max_memory": most})))
    except TraceTooLarge as e:
        return TraceOutcome(reason=redacted(str(e)), too_large=True)
    except MemoryError:
        return TraceOutcome(reason="it needs more memory than is available or allowed.", too_large=True)
    except SyncscanError as e:
        return TraceOutcome(reason=redacted(str(e)))
    except Exception as e:  # one trace doesn't stop the rest
        return TraceOutcome(reason=f"syncscan failed on it: {type(e).__name__}: {reason(e)}. Please report this.")
