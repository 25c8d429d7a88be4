"""A watch holds no more memory after many samples than after few: `benchmarks/watch_memory.py` feeds it a day's."""

from __future__ import annotations

import pytest

from benchmarks.watch_memory import FILES, MOST_BYTES, day


@pytest.mark.slow
def test_memory_and_files_are_bounded() -> None:
    """New functions, lines and threads without end: 14,000 samples later, less than 2 MB have come to it."""
    (_, _), *later = day(900.0, 3)
    assert len(later) == 2
    assert max(held for held, _ in later) < 2_000_000
    assert max(files for _, files in later) < (FILES + 1) * (MOST_BYTES + 100_000)
