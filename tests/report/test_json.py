"""JSON: the contract that other programs rely on, for anything a trace can hold."""

from __future__ import annotations

import json as stdlib
from collections.abc import Callable

from msgspec.structs import replace

from syncscan.model.finding import Phase
from syncscan.model.host import Host, HostNode, SampledHost
from syncscan.report import json
from tests.each import each
from tests.report.example import HOSTILE, analysis, hostile, typical

FINDING = (
    "id rule name cause severity confidence op op_stack call scope module source phase thread count per_step wait_us "
    "bubble_us moved_us recoverable_us recoverable_range_us title why fix when_fine"
).split()
"""The keys of the published schema; a version may add some, none may go."""
STEP = (
    "count observed_us host_us wait_us device_busy_us device_idle_us bound recoverable_us recoverable_range_us".split()
)
TRACE = "path size_bytes events vendor devices rank world_size has warnings".split()


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.json", json.render(typical()))


def test_the_schema_keeps_its_keys():
    """Every key of `syncscan.analysis/2` is there."""
    document = stdlib.loads(json.render(typical()))
    assert document["schema"] == "syncscan.analysis/2"
    assert set(TRACE) <= set(document["trace"])
    assert set(STEP) <= set(document["step"])
    assert all(set(FINDING) <= set(f) for f in document["findings"])


def test_what_was_not_projected_is_null():
    """A finding without a gain has nulls, not zeros."""
    findings = stdlib.loads(json.render(typical()))["findings"]
    assert [findings[2][k] for k in ("moved_us", "recoverable_us", "recoverable_range_us")] == [None, None, None]


def test_where_the_host_is_is_null_or_a_tree():
    """Callers by their place in the list; phases and owners add up to the step."""
    assert stdlib.loads(json.render(typical()))["host"] is None
    main = HostNode(
        parent=-1, function="main", file="a.py", line=3, owner="user", phase=Phase.OTHER, us=10.0, self_us=4.0
    )
    call = replace(main, parent=0, function="f", owner="torch", phase=Phase.FORWARD, us=6.0, self_us=6.0)
    host = Host(sampled=SampledHost(step_us=10.0, steps=5, samples=100, overhead=None, nodes=(main, call)))
    document = stdlib.loads(json.render(replace(typical(), host_time=host)))["host"]["sampled"]
    assert document["phases"] == [
        {"name": "forward", "us": 6.0, "share": 0.6},
        {"name": "other", "us": 4.0, "share": 0.4},
    ]
    assert [owner["name"] for owner in document["owners"]] == ["torch", "user"]
    assert document["nodes"][1] == {
        "parent": 0,
        "function": "f",
        "file": "a.py",
        "line": 3,
        "owner": "torch",
        "phase": "forward",
        "us": 6.0,
        "self_us": 6.0,
    }
    assert (document["step_us"], document["steps"], document["samples"]) == (10.0, 5, 100)
    assert document["overhead"] is None


def test_no_findings():
    """Nothing found is an empty list."""
    assert stdlib.loads(json.render(analysis()))["findings"] == []


@each("text", HOSTILE)
def test_hostile_text_is_valid_json(text: str):
    """The output is UTF-8 and parses, lone surrogates included."""
    out = json.render(hostile(text)).encode()
    assert len(stdlib.loads(out)["findings"]) == 1
