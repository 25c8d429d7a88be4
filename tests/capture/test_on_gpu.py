"""Captures on a real device: every blocking call has its row, the fall-back agrees, and nothing stays behind."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.capture import cupti, sync_lines
from syncscan.capture.session import Session, profile

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

SAMPLES = Path(__file__).parents[2] / "sample_traces"
BLOCKING = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def reads(x: Any) -> None:
    """Four waits on four lines, and one in backward."""
    x.sum().item()
    torch.nonzero(x > 0)
    torch.cuda.synchronize()
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    y = x.clone().requires_grad_()
    y[y > 0].sum().backward()


def recorded(tmp_path: Path, **options: Any) -> dict[str, Any]:
    x = torch.randn(256, 256, device="cuda")
    with profile(tmp_path, "steps", calibrate=2, settle=1, warmup=2, active=2, **options) as prof:
        while not prof.done:
            reads(x)
            prof.step()
    trace: dict[str, Any] = json.loads(gzip.decompress(prof.paths[0].read_bytes()))
    return trace


def blocking_calls(trace: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(tid, begin, end in epoch ns) of each blocking call inside the recorded steps."""
    base = trace["baseTimeNanoseconds"]
    slices = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    end = max(e["ts"] + e["dur"] for e in slices if e["name"].startswith("ProfilerStep") and e["pid"] != 0)
    return sorted(
        (e["tid"], base + round(e["ts"] * 1000), base + round((e["ts"] + e["dur"]) * 1000))
        for e in slices
        if e["name"] in BLOCKING and e["ts"] < end
    )


@pytest.fixture(autouse=True)
def restart() -> Iterator[None]:
    yield
    Session.running = None
    sync_lines.end()


def test_every_blocking_call_follows_its_row(tmp_path: Path) -> None:
    """On each thread, the rows and the blocking calls of the trace alternate, a few µs apart."""
    trace = recorded(tmp_path)
    calls = blocking_calls(trace)
    rows = sorted((row[1], row[0]) for row in trace["syncscan"]["lines"]["syncs"])
    assert len(rows) == len(calls) > 10
    assert [tid for tid, _ in rows] == [tid for tid, _, _ in calls]
    gaps = [(begin - at, number) for number, ((_, at), (_, begin, _)) in enumerate(zip(rows, calls, strict=True))]
    assert min(gaps)[0] > -2_000
    assert max(gaps)[0] < 200_000, sorted(gaps)[-4:]


def test_rows_name_the_lines_of_this_file(tmp_path: Path) -> None:
    """The innermost frame in this file of each row lies in `reads`, on the line of the call."""
    table = recorded(tmp_path)["syncscan"]["lines"]
    first = reads.__code__.co_firstlineno
    inner = [
        next((table["frames"][i] for i in table["stacks"][row[3]] if table["frames"][i][0] == __file__), None)
        for row in table["syncs"]
    ]
    assert {frame[1] - first for frame in inner if frame} == {2, 3, 4, 7, 9}


def test_backward_borrows_the_stack_of_the_waiting_thread(tmp_path: Path) -> None:
    """A sync on the engine's thread has no frames of its own: it carries those of the thread in `backward()`."""
    table = recorded(tmp_path)["syncscan"]["lines"]
    borrowed = [row for row in table["syncs"] if row[1] != row[6]]
    assert borrowed
    functions = [table["frames"][i][2] for i in table["stacks"][borrowed[0][3]]]
    assert "backward" in functions


def test_events_are_recorded_with_their_stream(tmp_path: Path) -> None:
    """The event that `reads` records and awaits appears in both tables under one address."""
    own = recorded(tmp_path)["syncscan"]
    recorded_events = {event for _, _, kind, event, _ in own["events"] if kind == "record"}
    awaited = {row[5] for row in own["lines"]["syncs"] if row[2] == "event"}
    assert awaited
    assert awaited <= recorded_events


def test_calls_that_no_callback_reports_have_their_lines(tmp_path: Path) -> None:
    """The allocator's waits and Thrust's, each with the times between which it lies."""
    x = torch.randint(0, 9, (512, 4), device="cuda")
    sparse = torch.eye(64, device="cuda").to_sparse()

    def step() -> None:
        torch.unique(x, dim=0)
        torch.cuda.empty_cache()
        (sparse + sparse).coalesce()

    with profile(tmp_path, "silent", calibrate=0, wait=0, active=1) as prof:
        while not prof.done:
            step()
            prof.step()
    table = json.loads(gzip.decompress(prof.paths[0].read_bytes()))["syncscan"]["lines"]
    stacks = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["calls"]]
    lines_here = [next(line for file, line, _ in stack if file == __file__) for stack in stacks]
    assert [line - step.__code__.co_firstlineno for line in lines_here] == [1, 2, 3]


def test_nobody_is_called_back_after_a_capture(tmp_path: Path) -> None:
    """Torch's switch is off and its lists are as long as before; no CUPTI thread and no variable is left."""
    registries = sync_lines.registries("cuda")
    assert registries is not None
    before = {what: list(functions) for what, functions in registries.items()}
    environment = dict(os.environ)
    recorded(tmp_path)
    switch = sync_lines.switch()
    assert switch is not None
    assert not switch.value
    assert registries == before
    assert dict(os.environ) == environment


def test_cupti_is_let_go_and_comes_back(tmp_path: Path) -> None:
    """A second capture, and a profiler of the program's own afterwards, see the device's work all the same."""
    x = torch.randn(64, 64, device="cuda")
    for name in ("first", "second"):
        trace = recorded(tmp_path / name)
        assert not [note for note in trace["syncscan"]["notes"] if note.startswith("CUPTI")]
        assert [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    with torch.profiler.profile() as own:
        (x @ x).sum().item()
    own.export_chrome_trace(str(tmp_path / "own.json"))
    assert [e for e in json.loads((tmp_path / "own.json").read_text())["traceEvents"] if e.get("cat") == "kernel"]


def test_after_a_profiler_of_the_program_s_own_the_device_is_recorded(tmp_path: Path) -> None:
    """Kineto, told to let CUPTI go when it prepares, would do so in the middle of the capture."""
    x = torch.randn(64, 64, device="cuda")
    with torch.profiler.profile():
        (x @ x).sum().item()
    trace = recorded(tmp_path)
    kernels = [e["ts"] for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    launches = [e["ts"] for e in trace["traceEvents"] if e.get("name") == "cudaLaunchKernel"]
    assert len(kernels) >= len(launches) > 10


@pytest.mark.parametrize("steps", [4, 5, 6, 20])
def test_cupti_is_let_go_after_a_profiler_of_the_program_s_own(steps: int, tmp_path: Path) -> None:
    """Which had attached it; the capture ends while the profiler warms up, in a recorded step, or by itself."""
    x = torch.randn(64, 64, device="cuda")
    with torch.profiler.profile():
        (x @ x).sum().item()
    with profile(tmp_path, "t", settle=1, calibrate=2, wait=1, warmup=2, active=2) as prof:
        for _ in range(steps):
            (x @ x).sum().item()
            prof.step()
    assert len(prof.paths) == (steps >= 6)
    assert cupti.TEARDOWN not in os.environ


def test_graphs_replay_before_between_and_after_captures(tmp_path: Path) -> None:
    """Letting CUPTI go and attaching it again breaks none."""
    x = torch.zeros(64, device="cuda")

    def graph() -> Any:
        built = torch.cuda.CUDAGraph()
        with torch.cuda.graph(built):
            x.add_(1)
        return built

    graphs = [graph()]
    for k in range(3):
        recorded(tmp_path / str(k))
        graphs.append(graph())
        for built in graphs:
            built.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [2.0 + 3.0 + 4.0] * 64


def test_the_unprofiled_step_is_timed_by_the_device(tmp_path: Path) -> None:
    """A step of known device time is measured as that, though launching it takes the host next to nothing."""
    big = torch.randn(8192, 8192, device="cuda")
    with profile(tmp_path, "steps", active=1) as prof:
        while not prof.done:
            torch.mm(big, big)
            prof.step()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(10):
        torch.mm(big, big)
    end.record()
    end.synchronize()
    assert prof.step_us == pytest.approx(begin.elapsed_time(end) * 100, rel=0.25)
