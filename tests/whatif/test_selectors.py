"""Which findings a selector names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Severity
from syncscan.whatif.selectors import select
from tests.whatif.story import analyzed, real


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """A step with a read-back and an explicit synchronize."""
    outcome = analyzed([("launch", 100.0), ("read", 0.0), ("work", 50.0), ("launch", 100.0), ("wait", 0.0)])
    return replace(outcome, findings=tuple(real(outcome)))


@pytest.mark.parametrize(
    ("selector", "rules"),
    [
        ("all", {"item", "explicit-sync"}),
        ("rule:item", {"item"}),
        ("op:aten::*", {"item"}),
        ("scope:wait?", {"explicit-sync"}),
        ("scope:read*", {"item"}),
    ],
)
def test_selectors_name_findings(analysis: Analysis, selector: str, rules: set[str]) -> None:
    """Globs match scopes, ops and rules."""
    assert {f.rule for f in select(analysis.findings, [selector])} == rules


def test_an_id_names_one_finding(analysis: Analysis) -> None:
    """`id:` takes a finding's id."""
    last = analysis.findings[-1]
    assert select(analysis.findings, [f"id:{last.id}"]) == (last,)


def test_a_scope_glob_matches_the_whole_path(analysis: Analysis) -> None:
    """Nested scopes can be named by their path."""
    f = analysis.findings[0]
    nested = replace(f, scope=("loss", "mask"))
    assert select((nested,), ["scope:loss/mask"]) == (nested,)


def test_all_leaves_out_intended_waits(analysis: Analysis) -> None:
    """A wait that is meant goes only if it is named."""
    f = analysis.findings[0]
    meant = replace(f, severity=Severity.INFO)
    assert select((meant,), ["all"]) == ()
    assert select((meant,), [f"id:{f.id}"]) == (meant,)


def test_a_selector_that_names_nothing_lists_close_ones(analysis: Analysis) -> None:
    """A slip of the pen is answered with what was meant."""
    with pytest.raises(UsageError) as raised:
        select(analysis.findings, ["rule:explicit-sink"])
    assert "rule:explicit-sync" in raised.value.hint


@pytest.mark.parametrize("selector", ["everything", "scope:", "color:red"])
def test_what_is_no_selector_is_refused(analysis: Analysis, selector: str) -> None:
    """The message says what a selector looks like."""
    with pytest.raises(UsageError, match="isn't a selector"):
        select(analysis.findings, [selector])
