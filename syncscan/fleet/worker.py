"""Analyze traces to encoded ranks, or to the reasons why not, in any process or on any machine."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.errors import SyncscanError, TraceTooLarge
from syncscan.fleet.rank import read_rank
from syncscan.load import memory_check
from syncscan.load.redaction import redacted
from syncscan.load.unpack import reason
from syncscan.model.rank import encoded


class TraceOutcome(msgspec.Struct, frozen=True):
    """Outcome of one trace."""

    rank: bytes = b""
    """The rank, encoded by `model.rank.encoded`; empty where the trace can't be read."""
    reason: str = ""
    too_large: bool = False
    killed: bool = False


def outcome_of(path: str, options: Mapping[str, Any], most: int | None) -> TraceOutcome:
    """Analyze one trace; only errors that end the process are raised."""
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


def main() -> None:
    """Work for a pool until stdin ends: first comes the memory limit in bytes or None, then (path, options) pairs."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        most = pickle.load(sys.stdin.buffer)
        if most is not None:
            memory_check.hold_to(most)
        while True:
            try:
                path, options = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(outcome_of(path, options, most), answers)
            answers.flush()
