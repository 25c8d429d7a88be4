"""Files of other tools are named; nothing false is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from syncscan import analyze
from syncscan.errors import TraceEmpty, TraceUnreadable
from syncscan.load import written_by_another
from tests.builder import TraceBuilder
from tests.each import each


def slices(count: int = 8, **fields: Any) -> list[dict[str, Any]]:
    """So many slices with these fields, as any tool may write them."""
    return [{"ph": "X", "name": f"f{i}", "pid": 1, "tid": 1, "ts": 10.0 * i, "dur": 5, **fields} for i in range(count)]


def label(name: str, pid: int = 1) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


PAIRS = [{"ph": phase, "name": "op", "pid": 1, "tid": 1, "ts": i} for i in range(20) for phase in "BE"]
ASCEND = [
    label("Ascend Hardware", 800),
    label("CANN", 900),
    *slices(cat="cpu_op"),
    *slices(pid=800),
    {"ph": "X", "name": "AscendCL@aclrtSynchronizeStream", "pid": 900, "tid": 7, "ts": "30.5", "dur": 40},
]
NSYS = (
    '{"data": ["cudaLaunchKernel"]}\n{"Type": 48, "TraceProcessEvent": {"startNs": "1", "endNs": "2", "name": "0"}}\n'
)
TOOLS: dict[str, tuple[Any, str]] = {
    "viztracer": ({"traceEvents": slices(cat="FEE"), "viztracer_metadata": {"version": "1.1.1"}}, "VizTracer"),
    "autograd profiler": (slices(pid="CPU functions", args={}), "torch.autograd.profiler"),
    "begin and end": ({"traceEvents": PAIRS}, "without a category"),
    "xplane": ({"displayTimeUnit": "ns", "traceEvents": [label("/device:GPU:0"), *slices()]}, "XPlane"),
    "nsys": (NSYS, "Nsight Systems or nvprof"),
    "nsys2json": (slices(cat="cuda", tid="Stream 7"), "Nsight Systems or nvprof"),
    "ascend": (ASCEND, "Ascend"),
    "ascend, with a category of Kineto's": ([{**event, "cat": "Kernel"} for event in ASCEND], "Ascend"),
    "paddle": (slices(cat="Operator") + slices(cat="CudaRuntime") + slices(cat="Kernel"), "PaddlePaddle"),
    "rocprof": ({"traceEvents": [label("CPU HIP API"), *slices()]}, "rocprof"),
    "browser": ({"traceEvents": slices(cat="disabled-by-default-devtools.timeline")}, "disabled-by-default"),
    "of any category": ({"traceEvents": slices(cat="mine")}, "of the categories mine"),
    "without a category": ({"traceEvents": slices()}, "without a category"),
}


def write(folder: Path, content: Any) -> Path:
    path = folder / "t.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@each("tool", TOOLS)
def test_another_tools_file_is_named(tmp_path: Path, tool: str) -> None:
    """The error says whose it is and what to record instead; never that nothing was recorded."""
    content, named = TOOLS[tool]
    path = write(tmp_path, content)
    with pytest.raises(TraceUnreadable, match=named) as raised:
        analyze(path)
    assert raised.value.exit_code == 3
    assert "torch.profiler" in str(raised.value)
    assert "nothing was recorded" not in str(raised.value)
    if tool != "nsys":
        assert str(written_by_another(str(path))) == str(raised.value)


def test_a_trace_in_an_archive_is_called_one(tmp_path: Path) -> None:
    """And not a trace of another tool."""
    path = tmp_path / "t.json"
    path.write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(64))
    with pytest.raises(TraceUnreadable, match="archive"):
        analyze(path)


def test_a_trace_of_torch_profiler_is_not_taken_for_anothers(tmp_path: Path) -> None:
    """Whatever its names hold, and without a device too."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.op('viztracer_metadata "cat": "FEE" /device:GPU:0', start + 1, start + 5)
        t.sync("aten::item", at=start + 10, wait=300)
    assert analyze(t.write(tmp_path / "gpu.json")).findings
    assert written_by_another(str(tmp_path / "gpu.json")) is None
    cpu = TraceBuilder(vendor="none")
    for start in cpu.steps(2, lasts=1000):
        cpu.op("aten::add", start + 1, start + 5)
    assert analyze(cpu.write(tmp_path / "cpu.json")).step.bound.value == "unknown"


def test_a_trace_without_a_slice_is_empty(tmp_path: Path) -> None:
    """Labels, and slices of Kineto's without a time, are no other tool's."""
    for events in ([label("python")], [{**event, "ts": None} for event in slices(cat="cpu_op")]):
        with pytest.raises(TraceEmpty, match="nothing was recorded"):
            analyze(write(tmp_path, {"traceEvents": events}))
