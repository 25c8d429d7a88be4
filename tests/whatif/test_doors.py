"""An analysis answers questions about a step without syncs: errors, selectors, steps in detail."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from tests.builder import TraceBuilder
from tests.whatif.story import profiled

KINDS = "Use all, scope:GLOB, rule:ID, op:GLOB or id:ID; give each with its own `--remove`."


def three_scopes() -> Analysis:
    """Steps of 1,000 µs: an encoder of 300 µs, a head of 200 and a decoder of 400, each waited for."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        for name, at, lasts in (("encoder", 0, 300), ("head", 310, 200), ("decoder", 520, 400)):
            with t.scope(name, start + at, start + at + lasts + 8):
                t.launch(name, at=start + at + 1, lasts=lasts)
                t.synchronize(at=start + at + 3)
    return profiled(analyze_trace(t.trace()))


@pytest.mark.parametrize(
    ("selector", "message", "hint"),
    [
        ("everything", "'everything' isn't a selector.", KINDS),
        ("scope:", "'scope:' isn't a selector.", KINDS),
        ("color:red", "'color:red' isn't a selector.", KINDS),
        (
            "scope:decode",
            "The selector 'scope:decode' matches no sync in this trace.",
            "Did you mean scope:decoder or scope:encoder or scope:head?",
        ),
        (
            "scope:zzz",
            "The selector 'scope:zzz' matches no sync in this trace.",
            "Did you mean scope:decoder or scope:encoder or scope:head?",
        ),
        ("op:aten::item", "The selector 'op:aten::item' matches no sync in this trace.", "No sync in it has any op."),
    ],
)
def test_a_selector_that_names_nothing_is_reported_with_what_would(selector: str, message: str, hint: str) -> None:
    """The error names the selector; its hint lists what is near, or what there is."""
    with pytest.raises(UsageError) as raised:
        three_scopes().whatif(selector)
    assert message in str(raised.value)
    assert raised.value.hint == hint


def test_a_trace_without_syncs_says_so() -> None:
    """There is nothing near to name."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("kernel", at=start + 1, lasts=10)
    with pytest.raises(UsageError) as raised:
        analyze_trace(t.trace()).whatif("scope:loss")
    assert raised.value.hint == "It has no syncs."


def test_a_selector_matches_one_scope_or_all_joined() -> None:
    """Globs are of whole names, in the case that they have."""
    analysis = three_scopes()
    assert len(analysis.whatif("scope:*coder").removed) == 2
    assert len(analysis.whatif("scope:*coder", "scope:head").removed) == 3
    with pytest.raises(UsageError):
        analysis.whatif("scope:HEAD")
