"""The inputs that once went wrong, as code: `python -m tests.fuzz.regressions` writes them into tests/fuzz/inputs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

FOLDER = Path(__file__).parent / "inputs"


def event(name: str, ts: Any, dur: Any = 1, cat: str = "cpu_op", tid: Any = 1, **args: Any) -> dict[str, Any]:
    """A complete event."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def waiting(scale: float = 1.0) -> list[dict[str, Any]]:
    """A step whose host waits for a kernel, its times scaled."""
    return [
        event("ProfilerStep#1", 0, 1000 * scale, "user_annotation"),
        event("cudaLaunchKernel", 5 * scale, 3 * scale, "cuda_runtime", correlation=1),
        event("aten::item", 10 * scale, 200 * scale),
        event("cudaStreamSynchronize", 20 * scale, 150 * scale, "cuda_runtime", correlation=2),
        event("kernel", 30 * scale, 130 * scale, "kernel", 7, correlation=1, device=0, stream=7),
    ]


def ops(count: int) -> list[dict[str, Any]]:
    """Ops whose times and names pack badly, so that damage lies where it is put."""
    r = Random(count)
    return [event(f"op{r.randrange(10**9)}", r.randrange(10**9)) for _ in range(count)]


def trace(events: list[Any], **members: Any) -> bytes:
    """The text of a trace."""
    return json.dumps({"traceEvents": events, **members}).encode()


def table(**parts: Any) -> bytes:
    """A trace with a table of capture's that lies."""
    lines = {"source": "callbacks", "frames": [["a.py", 3, "f"]], "stacks": [[0]], "modules": ["N"], "syncs": []}
    return trace(
        waiting(), syncscan={"unprofiled_step_us": 900.0, "lines": {**lines, **parts.pop("lines", {})}, **parts}
    )


def damaged(text: bytes, at: float) -> bytes:
    """Packed text with a byte flipped at this part of it."""
    packed = bytearray(gzip.compress(text, 1, mtime=0))
    packed[int(len(packed) * at)] ^= 0x55
    return bytes(packed)


def members_at_border() -> bytes:
    """Two gzip members, the first of which ends a byte before 64 KiB."""
    text, r = trace(ops(900)), Random(7)
    half = len(text) // 2
    first = gzip.compress(text[:half], 1, mtime=0)
    comment = bytes(r.randrange(1, 255) for _ in range((1 << 16) - 2 - len(first)))
    padded = first[:3] + bytes([first[3] | 0x10]) + first[4:10] + comment + b"\0" + first[10:]
    return padded + gzip.compress(text[half:], 1, mtime=0)


def nested(depth: int, *inside: dict[str, Any]) -> list[dict[str, Any]]:
    """Ops in ops in ops, a µs apart, and at the begin of each what is inside of it alone."""
    return [{**one, "ts": i} for i in range(depth) for one in (event("nested", 0, 3 * depth - 2 * i), *inside)]


def behind_nested(depth: int) -> bytes:
    """As many ops behind nested ones, packed."""
    behind = [event("behind", 3 * depth + i) for i in range(depth)]
    return gzip.compress(trace([*nested(depth), *behind]), mtime=0)


def calls_in_nested(depth: int) -> bytes:
    """A call in each of nested ops, below a frame, packed."""
    frame = event("a.py(1): f", 0, 3 * depth, "python_function")
    call = event("cudaStreamGetPriority", 0, 0, "cuda_runtime")
    return gzip.compress(trace([frame, *nested(depth, call)]), mtime=0)


def begun_in_turn(count: int) -> bytes:
    """Ops of one length that each begin 2 ns after the last: no two fit on one row, packed."""
    return gzip.compress(trace([event("op", k / 500, 100) for k in range(count)]), mtime=0)


INPUTS: dict[str, Callable[[], bytes]] = {
    "two_documents.json": lambda: trace(waiting()) + b"\n" + trace(waiting()),
    "list_twice.json": lambda: (
        b'{"traceEvents": %b, "traceEvents": %b}' % (json.dumps(waiting()).encode(), json.dumps(ops(5)).encode())
    ),
    "keys_in_the_head.json": lambda: b'{"a": {' + b'"traceEvents": [], ' * 900 + b'"z": 1}, ' + trace(waiting())[1:],
    "deep_metadata.json": lambda: trace(waiting())[:-1] + b', "a": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    "deep_event.json": lambda: trace([*waiting(), "X"]).replace(
        b'"X"]', b'{"ph":"X","args":' * 900 + b"1" + b"}" * 900 + b"]"
    ),
    "spot.json.gz": lambda: damaged(trace(ops(400)), 0.5),
    "early.json.gz": lambda: damaged(trace(ops(200)), 0.02),
    "late.json.gz": lambda: damaged(trace(ops(200)), 0.98),
    "border.json.gz": members_at_border,
    "no_time.json": lambda: trace(waiting(0)),
    "far.json": lambda: trace([*waiting(), event("far", 1e308), event("farther", "1e999"), event("late", 4.6e15)]),
    "infinite.json": lambda: trace([*waiting(), event("x", float("inf"), float("nan"))], a=float("-inf")),
    "endless_number.json": lambda: trace([*waiting(), event("x", 1, n="@")], z="@").replace(b'"@"', b"9" * 5000),
    "endless_line.json": lambda: trace(
        [*waiting(), event(f"train.py({'9' * 5000}): step", 0, 1000, "python_function")]
    ),
    "half_characters.json": lambda: trace([event("\ud800", 1), *waiting()], a={"\udfff": "\ud83d"}),
    "tid_of_another_kind.json": lambda: trace([*waiting(), event("x", 1, tid=[1]), event("y", 2, tid=1e30)]),
    "table_no_object.json": lambda: trace(waiting(), syncscan=5),
    "table_frames.json": lambda: table(lines={"frames": [5, ["a.py"], ["a.py", 2**70, "f"], ["\ud800", 1, "f"]]}),
    "table_guilty_file.json": lambda: table(
        lines={"frames": [["\ud800", 3, "f"]], "syncs": [[25_000, 1, "stream", 0, -1, 0, 1]]}
    ),
    "table_stacks.json": lambda: table(lines={"stacks": [[0] * 3000, [-1], [2**63]]}),
    "table_syncs.json": lambda: table(lines={"syncs": [[2**80, 1, "stream", 0, 0, 0, 1], [None] * 7, []]}),
    "table_step.json": lambda: table(unprofiled_step_us=float("inf"), unfinished_step="x"),
    "table_events.json": lambda: table(events=[[1, 2, "record", 3, 4], [1e400] * 5]),
    "step_numbers.json": lambda: trace(
        [event(f"ProfilerStep#{n}", 0, 9, "user_annotation") for n in ("٣", "-1", "9" * 40)]
    ),
    "launches_elsewhere.json": lambda: trace(
        [*waiting(), *(event(f"ProfilerStep#{n}", 1000 * n, 900, "user_annotation") for n in (2, 3, 4))]
    ),
    "work_of_no_time.json": lambda: trace([{**e, "dur": 0} if e["cat"] == "kernel" else e for e in waiting()]),
    "tail_cut.json": lambda: trace(waiting(), a={"b": 5}, with_stack=1)[:-8].replace(b'"b": 5', b'"b" 5'),
    "numbers_in_the_list.json": lambda: b"[1, 2, 3]",
    "behind_nested.json.gz": lambda: behind_nested(12_000),
    "calls_in_nested.json.gz": lambda: calls_in_nested(12_000),
    "begun_in_turn.json.gz": lambda: begun_in_turn(12_000),
}
"""Name → bytes. Each stands for a class of inputs; none is longer than 100 kB."""


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in INPUTS.items():
        (FOLDER / name).write_bytes(make())


if __name__ == "__main__":
    main()
