"""Facts about what is told of the one list of remedies."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.finding import Severity
from syncscan.model.habit import Basis
from syncscan.report import remedies as report
from syncscan.report.json import document as json_document
from tests.report.example import LAUNCHES, STEP, UNPROJECTED, analysis, finding, of_habit, typical
from tests.whatif.test_remedies import step


def test_each_says_what_and_where_how_much_within_which_range_and_what_is_left():
    """Numbered, the largest gain first; what it gains after the fixes above stands behind each but the first."""
    first, habit, together = report.describe(typical())
    assert (first.number, first.saves, first.doubt) == (1, "9.0 ms (34%)", "8.1 to 9.9 ms")
    assert (habit.saves, habit.doubt) == ("3.0 ms (11%)", "2.0 to 3.5 ms; 1.0 ms after the fixes above; likely")
    assert together.doubt == (
        "0 to 500 µs; nothing measurable after the fixes above; each alone at most 310 µs; likely"
    )


def test_an_upper_bound_is_called_one():
    """No promise is made of it."""
    bound = replace(of_habit(LAUNCHES), basis=Basis.UPPER_BOUND, after_us=None)
    (answer,) = report.describe(replace(analysis(), habits=(LAUNCHES,), remedies=(bound,)))
    assert (answer.saves, answer.doubt) == ("at most 3.00 ms (11%)", "not projected")


def test_syncs_that_go_together_are_each_named_and_each_fix_once():
    """Their places, and ways to their findings."""
    answer = report.describe(typical())[2]
    assert [m.id for m in answer.members] == ["item-00aa11bb", "mask-22cc33dd"]
    assert answer.what.endswith(", and 1 more, removed together")
    assert answer.where.count("train/loss.py") == 2
    assert answer.fix == "Use torch.where(mask, a, b), which keeps the shape."


def test_where_nothing_was_projected_the_costliest_findings_stand_in():
    """With what they cost, and no word of what they would save."""
    bare = replace(STEP, recoverable_us=None, recoverable_range_us=None, outlook=None)
    low = finding("low-1", severity=Severity.LOW, **UNPROJECTED)
    (answer,) = report.describe(analysis(finding(**UNPROJECTED), low, step=bare))
    assert (answer.saves, answer.doubt) == ("waits 8.21 ms, then the device is idle for 8.90 ms", "not projected")


def test_the_json_holds_all_of_it():
    """Ids lead to the findings and habits of the same document."""
    analysis = step()
    document = json_document(analysis).remedies
    ids = {f.id for f in analysis.findings} | {h.id for h in analysis.habits}
    assert {r.habit or r.findings[0] for r in document} <= ids
    assert [r.alone_us for r in document] == [r.alone_us for r in analysis.remedies]
