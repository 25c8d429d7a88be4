"""Events decoded by their category are those that are decoded without knowing it."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.load import reader
from syncscan.load.damage import Damage
from syncscan.load.event import typed_events
from syncscan.load.event_list import EventList, head_of
from syncscan.load.fields import ARROWS, CATEGORIES, FIELDS, PYTHON
from syncscan.load.split import Splitter
from tests.each import each
from tests.load import reference
from tests.load.test_oracle import assert_equal

SAMPLES = Path(__file__).parents[2] / "sample_traces"
numbers = st.integers(-(2**63), 2**64) | st.sampled_from(["1", "7"])
texts = st.text(st.characters(codec="utf-8"), max_size=8)
places = {"pid": st.integers(0, 3) | texts, "tid": st.integers(0, 3) | texts}
times = {"ts": st.floats(0, 1e4) | st.integers(0, 50), "dur": st.floats(0, 1e4) | st.sampled_from(["3", 7, -1])}
arguments = st.dictionaries(
    st.sampled_from([field.key for field in FIELDS] + ["Ev Idx", "Seq", "Src Rank"]), numbers
) | st.fixed_dictionaries(
    {"Process Group Name": texts},
    optional={"Process Group Ranks": st.lists(st.integers(0, 3)), "copy kind": st.just("DtoH"), "src kind": texts},
)


def slices(category: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return slices as kineto writes them for this category, or with less."""
    return st.fixed_dictionaries(
        {"ph": st.just("X"), "cat": st.just(category)},
        optional={"name": texts | st.just("Memcpy"), **places, **times, "args": arguments},
    )


known = (
    st.sampled_from([*CATEGORIES, PYTHON, "gpu_user_annotation", "Trace"]).flatmap(slices)
    | st.fixed_dictionaries(
        {"ph": st.sampled_from("sf"), "cat": st.sampled_from([*ARROWS, "ac2g"])},
        optional={"id": st.integers(0, 3) | texts, "name": texts, **places, "ts": times["ts"], "bp": st.just("e")},
    )
)  # fmt: skip


@given(st.lists(known, min_size=1, max_size=12), st.sampled_from([1, 300, 1 << 19]))
def test_both_ways_lead_to_the_same_rows(events: list[Any], piece: int) -> None:
    """None of what is known is refused, and the oracle, which knows nothing of this, reads the same."""
    content = json.dumps(events).encode()
    assert sum(map(len, typed_events(content).values())) == len(events)
    assert_equal(reader.read(io.BytesIO(content), "t", piece), reference.parse(content, "t"))


@each(
    "other",
    [
        '{"ph": "X", "name": "no category"}',
        '{"ph": "X", "cat": "new in 2030"}',
        '{"ph": "M", "cat": "cpu_op", "name": "process_name"}',
        '{"ph": "M", "cat": "ac2g", "name": "process_name"}',
        '{"cat": "cpu_op"}',
        '{"ph": "X", "cat": "cpu_op", "cat": "kernel"}',
        '{"ph": "X", "cat": "cpu_op", "ts": null}',
        '{"ph": "X", "cat": "kernel", "ts": NaN}',
        "3",
    ],
)
def test_what_is_unknown_is_refused(other: str) -> None:
    """Whatever else stands with it."""
    op = '{"ph": "X", "cat": "cpu_op", "name": "op"}'
    assert list(typed_events(f"[{op}]".encode())) == ["cpu_op"]
    with pytest.raises(msgspec.MsgspecError):
        typed_events(f"[{op}, {other}, {op}]".encode())


@pytest.mark.parametrize("name", ["lines.stacks", "maskedloss.v0"])
def test_of_a_recording_few_pieces_are_refused(name: str) -> None:
    """Refused are pieces with labels, which stand at the begin and at the end."""
    text = gzip.decompress((SAMPLES / f"{name}.pt.trace.json.gz").read_bytes())
    refused = []

    def decode(piece: bytes | memoryview) -> int:
        try:
            typed_events(piece)
        except msgspec.MsgspecError:
            refused.append(piece)
        return 0

    splitter = Splitter(io.BytesIO(text), 1 << 14)
    events = EventList(splitter, head_of(splitter, name, lambda: ""), Damage(), decode, lambda _: 0)
    count = sum(1 for piece in splitter.pieces() for _ in events.read(piece))
    assert count > 50
    assert len(refused) <= 4


def test_a_trace_of_other_events_is_not_tried_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine of 600 pieces are tried, each after twice as many as the one before; after a success the next is tried
    too.
    """
    tried = []

    def counted(text: bytes) -> Any:
        tried.append(text)
        return typed_events(text)

    monkeypatch.setattr(reader, "typed_events", counted)
    other = ['{"ph": "X", "cat": "new in 2030", "ts": 1}'] * 600
    op = ['{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "pid": 1, "tid": 1}'] * 200
    reader.read(io.BytesIO(f"[{','.join(other)}]".encode()), "t", 1)
    assert len(tried) == 9
    tried.clear()
    trace = reader.read(io.BytesIO(f"[{','.join(other[:5] + op)}]".encode()), "t", 1)
    assert len(tried) > 190
    assert len(trace.slices.ts) == 200
