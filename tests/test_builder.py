"""The builder's traces are what torch.profiler would write: consistent in time, and refused where they can't be."""

from __future__ import annotations

import gzip
import json

import pytest

from syncscan.api import analyze_trace
from syncscan.load import load
from tests.builder import TraceBuilder, names


def test_a_step_in_six_lines():
    """A step with a scope and a sync gives one finding with the wait that was told."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("mask", start + 10, start + 400):
            t.sync("aten::nonzero", at=start + 20, wait=300)
    (finding,) = analyze_trace(t.trace()).findings
    assert (finding.op, finding.scope, finding.count) == ("aten::nonzero", ("mask",), 3)
    assert finding.wait_us == 300


def test_work_queues_on_its_stream():
    """A kernel starts after its launch and after the work before it on its stream."""
    t = TraceBuilder()
    assert t.launch(at=10, lasts=100) == 111
    assert t.launch(at=20, lasts=5) == 116
    assert t.launch(at=30, lasts=5, stream=8) == 36


def test_a_sync_waits_for_the_work_before_it():
    """Without a told wait, a read-back holds the host until its stream is done."""
    t = TraceBuilder()
    t.launch(at=0, lasts=100)
    assert t.sync("aten::item", at=10) == 105
    assert t.free_at() == 103


def test_a_sync_cannot_wait_less_than_the_work_before_it():
    """A wait that the stream's work forbids is refused."""
    t = TraceBuilder()
    t.launch(at=0, lasts=100)
    with pytest.raises(ValueError, match="can't wait only"):
        t.sync("aten::item", at=10, wait=5)


def test_what_is_added_inside_must_lie_inside():
    """A child outside its range is refused."""
    t = TraceBuilder()
    with t.step(0, 100), pytest.raises(ValueError, match="lies outside"):
        t.op("aten::add", 90, 110)


def test_a_thread_has_its_name_and_its_own_nesting():
    """Slices on another thread aren't bound to the main thread's range, and carry the thread's name."""
    t = TraceBuilder()
    with t.step(0, 100), t.thread("pt_autograd_0"), t.backward("MulBackward0", 50, 150):
        t.launch(at=60, lasts=5)
    trace = t.trace()
    assert [k.thread for k in trace.tracks if k.tid == "101"] == ["thread 101 (pt_autograd_0)"]


def test_hip_writes_hip():
    """The HIP flavour has one blocking copy and no CUDA name."""
    t = TraceBuilder(vendor="rocm")
    t.sync("aten::item", at=0, wait=50)
    trace = t.trace()
    assert not [s for s in trace.strings if s.startswith("cuda")]
    (finding,) = analyze_trace(trace).findings
    assert finding.call == "hipMemcpyWithStream"


def test_written_files_load(tmp_path):
    """A written trace reads back the same, plain and gzipped."""
    t = TraceBuilder()
    t.op("aten::add", 0, 5)
    plain, zipped = t.write(tmp_path / "a.json"), t.write(tmp_path / "a.json.gz")
    assert json.loads(gzip.decompress(zipped.read_bytes())) == json.loads(plain.read_bytes())
    trace = load(zipped)
    assert names(trace, range(len(trace.slices))) == ["aten::add"]
