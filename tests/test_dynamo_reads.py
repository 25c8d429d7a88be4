"""The installed torch treats a read as the page says."""

from __future__ import annotations

import json

import pytest

from benchmarks import dynamo_reads

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["Straight", "Loop", "BreakThenLoop"])
def test_this_torch_does_as_the_newest_recorded(name: str) -> None:
    """Two graphs or more of a read in a function, none of a loop's, and one of what lies before it."""
    lines = [json.loads(line) for line in dynamo_reads.RECORDED.read_text().splitlines()]
    newest = next(line for line in reversed(lines) if line["case"] == name and not line["config"])
    assert dynamo_reads.case(name, dynamo_reads.networks()[name], {})["graphs"] == newest["graphs"]


def test_every_case_is_recorded_of_every_version() -> None:
    """Four versions, thirteen networks."""
    lines = [json.loads(line) for line in dynamo_reads.RECORDED.read_text().splitlines()]
    assert {(line["case"], line["torch"]) for line in lines} == {
        (name, version) for name in dynamo_reads.CASES for version in {line["torch"] for line in lines}
    }
