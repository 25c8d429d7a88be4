"""Text is cut between events, and in the same places whether a piece's text is asked for or left out."""

from __future__ import annotations

import io
import json

import pytest

from syncscan.load.split import Splitter


class Counted(io.BytesIO):
    """Counts the bytes that are read."""

    count = 0

    def readinto(self, buffer: object, /) -> int:
        """As of any file."""
        got = super().readinto(buffer)  # type: ignore[arg-type]
        self.count += got
        return got


def cut(text: bytes, piece: int, wanted: set[int] | None) -> tuple[list[tuple[int, bool]], dict[int, bytes], int]:
    """Where each piece begins and whether it is the last; the wanted ones' texts; how many bytes were read."""
    stream = Counted(text)
    splitter = Splitter(stream, piece)
    splitter.head()
    cuts, texts = [], {}
    for new in splitter.pieces(lambda number: wanted is None or number in wanted):
        cuts.append((new.offset, new.last))
        if wanted is None or new.number in wanted or new.last:
            texts[new.number] = new.inner
    assert splitter.bytes_read == len(text)
    return cuts, texts, stream.count


@pytest.mark.parametrize("longest", [10, 3_000, 9_000, 40_000])
@pytest.mark.parametrize("wanted", [set(), {1, 2}, {0, 3, 4}])
def test_text_that_is_left_out(longest: int, wanted: set[int]) -> None:
    """Also where a cut lies far before a piece's end, behind which an event is longer than what is looked at first."""
    events = [
        {"ph": "X", "name": "n" * (i * 7919 % longest), "args": {"i": [i, {}]}}
        for i in range(2_000_000 // (longest + 90))
    ]
    text = json.dumps({"traceEvents": events}).encode()
    cuts, texts, read = cut(text, 50_000, None)
    others, some, read_of_some = cut(text, 50_000, wanted)
    assert others == cuts
    assert some == {number: inner for number, inner in texts.items() if number in some}
    assert len(some) == len(wanted) + 1
    assert read == len(text)
    if longest <= 3_000:
        assert read_of_some < len(text) // 3
