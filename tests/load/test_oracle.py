"""The fast reader against the obvious one: any valid trace, in any shape, order and piece size."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscan.load import reader
from syncscan.load.columns import FRAME_COLUMNS, TYPES
from syncscan.load.fields import CATEGORIES, FIELDS
from syncscan.model.trace import Flows, Trace
from tests.each import each
from tests.load import reference

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("**/*.json.gz"), key=lambda p: -p.stat().st_size)


def _recorded_by(path: Path) -> tuple[Path, str, bool]:
    """A recording's program, and whether it has stacks: all that have the same have fields of the same kinds."""
    return path.parent, path.name.partition(".")[0], ".stacks." in path.name


SMALLEST = sorted({_recorded_by(path): path for path in SAMPLES}.values())
"""The smallest recording of each program."""
QUICK = [path for path in SMALLEST if path.stat().st_size < 40_000 or path.name.startswith("lines.stacks.")]
"""Those that the obvious reader reads in a moment, and one with stacks."""


def assert_equal(actual: Trace, expected: Trace) -> None:
    """All that two traces hold is the same, and what they say about themselves."""
    assert_same_columns(actual, expected)
    a, b = (msgspec.structs.replace(t.info, path="", metadata={}) for t in (actual, expected))
    assert a == b
    assert repr(actual.info.metadata) == repr(expected.info.metadata)


def assert_same_columns(actual: Trace, expected: Trace) -> None:
    """All that two traces hold is the same."""
    assert actual.strings == expected.strings
    assert actual.tracks == expected.tracks
    for part, names in (("slices", (*TYPES, "parent")), ("frames", FRAME_COLUMNS), ("flows", Flows.__slots__)):
        for name in names:
            a, b = getattr(getattr(actual, part), name), getattr(getattr(expected, part), name)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=f"{part}.{name}")
    assert actual.steps == expected.steps


text = st.text(st.characters(codec="utf-8"), max_size=12)
odd = st.none() | st.booleans() | st.floats() | text | st.lists(st.integers(), max_size=2)
ids = st.integers(-2, 9) | st.integers(-(2**70), 2**70) | st.sampled_from(["1", "7", "x", "1.0", "1e2", "", 3.0, 2.5])
times = st.floats(0, 1e4) | st.integers(0, 50) | st.integers(0, 2 * 10**15) | st.sampled_from(["12.5", "3", "now"])
names = st.sampled_from(
    ["aten::item", "cudaLaunchKernel", "cudaStreamSynchronize", "ProfilerStep#3", "Memcpy", "process_name", "a: nan, b"]
)
args = st.dictionaries(
    st.sampled_from([field.key for field in FIELDS]), ids | odd, max_size=4
) | st.fixed_dictionaries(
    {"name": text, "Input Dims": st.lists(st.lists(st.integers(), max_size=2), max_size=2)},
    optional={"copy kind": st.sampled_from(["DtoH", "HtoD", 3]), "src kind": st.just("device"), "list": st.just(
        [{"ph": "X", "name": "no event"}, {"name": 1, "args": {}}]
    )},
)  # fmt: skip
events = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXXMsfiC")},
    optional={
        "cat": st.sampled_from([*CATEGORIES, "python_function", "fwdbwd", "ac2g", "new in 2030"]) | odd,
        "name": names | text | odd,
        "pid": st.integers(0, 3) | text | odd,
        "tid": st.integers(0, 3) | st.sampled_from(["stream 7", "7"]) | odd,
        "ts": times | odd,
        "dur": times | odd,
        "id": st.integers(0, 3) | st.none() | text,
        "args": args | odd,
    },
)
metadata = st.dictionaries(
    st.sampled_from(["cuda_runtime_version", "hip_driver_version", "deviceProperties", "distributedInfo", "x\ty"]),
    st.recursive(
        odd, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=4
    )
    | st.just([{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "B"}])
    | st.just({"rank": 3, "world_size": "8", "traceEvents": [{"ph": "X"}]}),
    max_size=3,
)


def written(events: list[Any], before: dict[str, Any], after: dict[str, Any], indent: int | None, ascii: bool) -> bytes:
    top = {**before, "traceEvents": events, **{k: v for k, v in after.items() if k not in before}}
    return json.dumps(top, indent=indent, ensure_ascii=ascii).encode()


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(events | odd, max_size=12),
    metadata,
    metadata,
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.integers(1, 300),
)
def test_any_valid_trace(
    events: list[Any], before: dict[str, Any], after: dict[str, Any], indent: int | None, ascii: bool, piece: int
) -> None:
    """Both readers give the same trace, whatever the types of its fields and wherever its text is cut."""
    content = written(events, before, after, indent, ascii)
    assert_equal(reader.read(io.BytesIO(content), "t", piece), reference.parse(content, "t"))


@given(events, st.lists(events | odd, max_size=11), st.sampled_from([None, 0, 2]), st.integers(1, 300), st.booleans())
def test_any_bare_list(event: Any, others: list[Any], indent: int | None, piece: int, first: bool) -> None:
    """A list at the top, with an event in it, is read like an object."""
    content = json.dumps([event, *others] if first else [*others, event], indent=indent).encode()
    assert_equal(reader.read(io.BytesIO(content), "t", piece), reference.parse(content, "t"))


@each("path", QUICK, ids=lambda p: p.name)
def test_recorded_traces(path: Path) -> None:
    """Both readers give the same for a program's recording, also in pieces of 10 kB."""
    assert_read_alike(path)


@pytest.mark.slow
@each("path", sorted(set(SMALLEST) - set(QUICK)), ids=lambda p: p.name)
def test_large_recorded_traces(path: Path) -> None:
    """Also for every other program's recording."""
    assert_read_alike(path)


def assert_read_alike(path: Path) -> None:
    content = gzip.decompress(path.read_bytes())
    expected = reference.parse(content, path.name)
    assert_equal(reader.read(io.BytesIO(content), path.name), expected)
    assert_equal(reader.read(io.BytesIO(content), path.name, 10_000), expected)


@given(st.lists(events, min_size=1, max_size=12), st.randoms(use_true_random=False), st.integers(1, 300))
def test_order_of_events_does_not_matter(events: list[Any], rng: random.Random, piece: int) -> None:
    """A trace whose events are shuffled is the same trace."""
    expected = reference.parse(json.dumps(events).encode(), "t")
    rng.shuffle(events)
    actual = reader.read(io.BytesIO(json.dumps(events).encode()), "t", piece)
    assert_same_columns(actual, expected)
    assert actual.info.warnings == expected.info.warnings


@each("pid", ["1e18", "-1e22", "1.0", "7", '"7"', '"1e18"', "1.5", "true", "null"])
def test_a_process_is_named_by_whatever_its_events_say(pid: str) -> None:
    """A number is one however it is written, and its name finds it."""
    label = '{"ph": "M", "name": "process_name", "pid": %s, "args": {"name": "python"}}'
    op = '{"ph": "X", "cat": "cpu_op", "name": "op", "pid": %s, "tid": 1, "ts": 1}'
    content = f"[{label % pid}, {op % pid}]".encode()
    trace = reader.read(io.BytesIO(content), "t")
    assert_equal(trace, reference.parse(content, "t"))
    assert [track.process for track in trace.tracks] == ["python"]
