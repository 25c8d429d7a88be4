"""The watches of a job's ranks are joined: which rank the others wait for, and since when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from syncscan.cli import group
from syncscan.errors import UsageError
from syncscan.watching.ranks import Ranks, joined
from syncscan.watching.reading import WatchRecords, of_records
from syncscan.watching.record import Journal
from tests import schemas
from tests.watching.example import AT, begin, window


def rank(number: int, shares: Sequence[float], world: int = 3, peers: float = 0.0) -> WatchRecords:
    """Return a rank's watch whose windows of 20 s wait for these shares."""
    windows = [window(k, share, peers=peers) for k, share in enumerate(shares, start=1)]
    return of_records(f"rank{number}.watch.jsonl", [replace(begin(number, world), pid=100 + number), *windows])


def job(slow_from: int = 6, until: int = 12) -> Ranks:
    """Return three ranks; from a window on rank 1 waits for nothing, and the others for it."""
    slow = [slow_from <= k for k in range(1, until + 1)]
    others = [0.5 if late else 0.1 for late in slow]
    return joined([rank(0, others), rank(1, [0.02 if late else 0.1 for late in slow]), rank(2, others)])


def test_the_rank_that_waits_least_is_the_one_that_is_waited_for() -> None:
    """It is since the sixth window, at the line where it works for longer."""
    waited = job().waited
    assert waited is not None
    assert (waited.rank, waited.waits, waited.others_wait) == (1, 0.02, 0.5)
    assert abs(waited.since - (AT + 100)) <= 20
    assert abs(waited.seconds - 140) <= 20
    assert (waited.file, waited.line, waited.more) == ("/job/train.py", 12, 0.48)


def test_a_job_s_last_windows_may_be_shorter_and_of_one_rank() -> None:
    """Ranks whose watches began 6.5 s apart end together: the last windows take 7 s and 13.5 s."""
    ranks = []
    for number, (offset, seconds) in enumerate(((0.0, 7.0), (-6.5, 13.5))):
        share = (0.5, 0.02)[number]
        windows = [replace(window(k, share), at=AT + offset + 20 * k) for k in range(1, 9)]
        last = replace(window(9, share), at=AT + 167, seconds=seconds)
        ranks.append(of_records(f"rank{number}.watch.jsonl", [begin(number, 2), *windows, last]))
    waited = joined(ranks).waited
    assert waited is not None
    assert waited.rank == 1


def test_equal_ranks_wait_for_nobody() -> None:
    """Nor do some windows of noise count."""
    assert job(slow_from=99).waited is None
    assert joined([rank(0, [0.1, 0.3, 0.1, 0.1]), rank(1, [0.1] * 4)]).waited is None


def test_a_rank_that_was_waited_for_earlier_is_listed() -> None:
    others = [0.5] * 5 + [0.1] * 5
    ranks = joined([rank(0, others), rank(1, [0.1] * 10), rank(2, others)])
    assert (ranks.waited, [one.rank for one in ranks.earlier]) == (None, [1])


def test_waits_in_collectives_count_as_waits_for_the_device() -> None:
    """Gloo's wait on the host."""
    waited = joined([rank(0, [0.0] * 5, 2, peers=0.6), rank(1, [0.1] * 5, 2)]).waited
    assert waited is not None
    assert (waited.rank, waited.others_wait) == (1, 0.6)


def test_a_rank_without_a_file_and_one_that_is_silent_are_named() -> None:
    """Rank 2 has none, and rank 1 wrote nothing in the last ten windows."""
    ranks = joined([rank(0, [0.1] * 14), rank(1, [0.1] * 4)])
    assert (ranks.world, ranks.missing) == (3, (2,))
    assert [row.silent for row in ranks.rows] == [False, True]


def test_files_without_a_window_are_refused() -> None:
    with pytest.raises(UsageError, match="No window has ended yet"):
        joined([rank(0, [])])


def test_the_command_prints_text_and_json(tmp_path: Path) -> None:
    """JSON follows its schema."""
    for number, shares in enumerate(([0.5] * 6, [0.02] * 6)):
        journal = Journal(tmp_path / f"train.rank{number}.1.watch.jsonl")
        for record in (begin(number, 2), *(window(k, share) for k, share in enumerate(shares, start=1))):
            journal.write(record)
        journal.close()
    words = ["fleet", "--watch", str(tmp_path)]
    shown = CliRunner().invoke(group, words, catch_exceptions=False).output
    assert "The other ranks wait for rank 1 since" in shown
    assert "it spends 48% more of its time at train.py:12 (main)" in " ".join(shown.split())
    document = json.loads(CliRunner().invoke(group, [*words, "--format", "json"], catch_exceptions=False).stdout)
    jsonschema.validate(document, schemas.schema("watch-ranks"))
    assert document["waited"]["rank"] == 1
    with pytest.raises(UsageError, match="doesn't support watches"):
        CliRunner().invoke(group, [*words, "--format", "csv"], catch_exceptions=False)
