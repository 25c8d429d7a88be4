"""Text is cut between events."""

from __future__ import annotations

import io
import json

import pytest

from syncscan.load.split import Splitter


@pytest.mark.parametrize("longest", [10, 3_000, 40_000])
def test_pieces_are_the_list(longest: int) -> None:
    """Also where a cut lies far before a piece's end, behind which an event is longer than what is looked at first."""
    events = [{"ph": "X", "name": "n" * (i * 7919 % longest), "args": {"i": [i, {}]}} for i in range(500)]
    text = json.dumps({"traceEvents": events}).encode()
    splitter = Splitter(io.BytesIO(text), 50_000)
    head = splitter.head()
    assert head is not None
    pieces = [piece.inner for piece in splitter.pieces()]
    assert len(pieces) > 1
    assert head.text + b"[" + b",".join(pieces) == text
    assert all(json.loads(b"[" + piece + b"]") for piece in pieces[:-1])
    assert splitter.bytes_read == len(text)
