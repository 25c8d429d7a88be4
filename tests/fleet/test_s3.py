"""Traces and ranks in an S3 server, with credentials of the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import syncscan
from syncscan.errors import SyncscanError
from syncscan.fleet.listing import find
from syncscan.fleet.run import run
from syncscan.fleet.worker import outcome_of
from syncscan.model.rank import decoded
from tests.fleet.small_ranks import write_ranks

KEY, SECRET = "AKIAKEYOFTHETESTS", "s3cr3tOfTheTests"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With two traces and a report in it; the server takes these credentials and no others' requests."""
    s3fs, server = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    metadata = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    metadata |= {"AWS_DEFAULT_REGION": "us-east-1"}
    before = {name: os.environ.get(name) for name in metadata}
    os.environ |= metadata
    s3fs.S3FileSystem.clear_instance_cache()
    storage = s3fs.S3FileSystem()
    storage.mkdir("runs")
    for path in write_ranks(tmp_path_factory.mktemp("job")):
        storage.put_file(path, f"runs/job/{Path(path).name}")
    storage.pipe_file("runs/job/report.json", b'{"schema": "syncscan.analysis/1"}')
    yield "s3://runs"
    running.stop()
    for name, value in before.items():
        os.environ.pop(name)
        os.environ |= {name: value} if value is not None else {}
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_job_in_s3_is_analyzed(bucket: str) -> None:
    """By a process of its own."""
    paths = find(f"{bucket}/job")
    assert paths == [f"{bucket}/job/rank0.pt.trace.json.gz", f"{bucket}/job/rank1.pt.trace.json.gz"]
    assert find(f"{bucket}/job/*.json.gz") == paths
    ranks, unread = run(paths, jobs=1)
    assert ranks == [decoded(outcome_of(path, {}, None).rank) for path in paths]
    assert unread == []


def test_what_goes_wrong_is_reported_without_secrets(bucket: str) -> None:
    """The bucket doesn't exist, or this key has no access to it."""
    for url in ("s3://nobodys/job", f"{bucket}/nothing/*.json"):
        with pytest.raises(SyncscanError) as raised:
            syncscan.analyze_fleet(url, jobs=1)
        assert url in str(raised.value)
        assert SECRET not in str(raised.value)
