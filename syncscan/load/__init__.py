"""From bytes to a linked Trace: any shape a torch trace comes in, whole or broken."""

from __future__ import annotations

import gzip
import os

from syncscan.errors import TraceEmpty, TraceNotFound, TraceUnreadable
from syncscan.load import reference
from syncscan.model.trace import Trace


def load(path: str | os.PathLike[str]) -> Trace:
    """Read one trace.

    Args:
        path: a file, plain or gzipped.

    Raises:
        TraceNotFound, TraceEmpty, TraceUnreadable: nothing can be read there.
    """
    try:
        with open(path, "rb") as f:
            raw = f.read()
    except FileNotFoundError:
        raise TraceNotFound(f"{path}: no such file.", "Check the path.") from None
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    if not text.strip():
        raise TraceEmpty(f"{path} is empty.", "Record it again.")
    try:
        return reference.parse(text, os.fspath(path))
    except ValueError as e:
        raise TraceUnreadable(f"{path} isn't a trace: {e}.", "Give a Chrome trace written by torch.profiler.") from None
