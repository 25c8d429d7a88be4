"""A Dask cluster gives the ranks that this machine's processes give."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.errors import UsageError
from syncscan.fleet import cluster as clusters
from syncscan.fleet.run import run
from syncscan.fleet.worker import outcome_of
from syncscan.model.rank import decoded
from tests.fleet.small_ranks import write_ranks


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Start a cluster in this process; messages are packed as between machines."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_finds_what_one_process_finds(tmp_path: Path, scheduler: str) -> None:
    """In the order of the paths; a damaged trace stops none of the others."""
    first, last = write_ranks(tmp_path / "job")
    damaged = tmp_path / "job" / "damaged.json"
    damaged.write_text("no trace")
    ranks, unread = run([first, str(damaged), last], scheduler=scheduler)
    assert ranks == [decoded(outcome_of(path, {}, None).rank) for path in (first, last)]
    assert [u.path for u in unread] == [str(damaged)]


def test_a_worker_of_another_version_is_named(tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its findings would be no part of this job."""
    paths = write_ranks(tmp_path, 1)
    task = clusters._task
    monkeypatch.setattr(clusters, "_task", lambda path, options, most, version: task(path, options, most, "0.0.0"))
    _, (unread,) = run(paths, scheduler=scheduler)
    assert "install the same version on both" in unread.reason


def test_no_scheduler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its address, without what is secret in it."""
    monkeypatch.setattr(clusters, "_CONNECT_S", 0.2)
    with pytest.raises(UsageError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run(["a.json"], scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UsageError) as raised:
        run(["a.json"], scheduler="tcp://ann:s3cr3t@127.0.0.1:9")
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.bench
def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """One of two processes is killed when a quarter is done; all ranks equal those of a run without that."""
    paths = write_ranks(tmp_path / "job", 40)
    expected = [decoded(outcome_of(path, {}, None).rank) for path in paths]
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def kill(done: int, *how: object) -> None:
            if done == 10:
                os.kill(pids[0], signal.SIGKILL)

        assert run(paths, scheduler=cluster.scheduler_address, progress=kill) == (expected, [])
