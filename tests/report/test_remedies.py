"""Facts about what is told of the one list of remedies."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.finding import Severity
from syncscan.model.habit import Basis
from syncscan.report import remedies as report
from syncscan.report import render
from syncscan.report.json import document as json_document
from tests.report.example import LAUNCHES, STEP, TIMED, UNPROJECTED, analysis, finding, of_habit, remedy, typical
from tests.whatif.test_remedies import step


def test_each_says_what_and_where_how_much_within_which_range_and_what_is_left():
    """Numbered, the largest gain first; what it gains after the fixes above stands behind each but the first."""
    first, habit, together = report.describe(typical())
    assert first.sentence == (
        "1. nonzero waits to learn how many elements there are (train/detect.py:42 · detect › mask · aten::index):"
        " 9.0 ms (34%), 8.1 to 9.9 ms."
    )
    assert habit.sentence == (
        "2. The step is bound by its launches (step): 3.0 ms (11%), 2.0 to 3.5 ms;"
        " 1.0 ms after the fixes above; likely."
    )
    assert together.doubt == (
        "up to 500 µs; nothing measurable after the fixes above; each alone at most 310 µs; likely"
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
    assert [m.number for m in answer.members] == [1, 2]
    assert answer.what.endswith(", and 1 more, removed together")
    assert answer.where.count("train/loss.py") == 2
    assert answer.fix == "Use torch.where(mask, a, b), which keeps the shape."


def test_where_nothing_was_projected_the_costliest_findings_stand_in():
    """With what they cost, and no word of what they would save."""
    bare = replace(STEP, recoverable_us=None, recoverable_range_us=None, outlook=None)
    low = finding("low-1", severity=Severity.LOW, **UNPROJECTED)
    (answer,) = report.describe(analysis(finding(**UNPROJECTED), low, step=bare))
    assert (answer.saves, answer.doubt) == ("waits 8.21 ms, then the device is idle for 8.90 ms", "not projected")
    assert answer.alone_us is None


def test_a_list_that_nothing_was_measured_for_is_in_no_order_of_cost():
    """As of a dry run: neither its heading nor the table below says by what it is ranked."""
    untimed = replace(STEP, recoverable_us=None, recoverable_range_us=None, outlook=None, waits_withheld=True)
    outcome = analysis(finding("low-1", severity=Severity.LOW, **UNPROJECTED), step=untimed)
    (answer,) = report.describe(outcome)
    text = render(outcome, "text")
    assert answer.saves == "waits for an unknown time"
    assert "What to change:" in text.splitlines()
    assert "Sorted by" not in text


def test_of_many_the_first_are_named():
    """Five in words, and how many more there are; the terminal shows three, and all with -v."""
    many = replace(analysis(finding()), remedies=(remedy(),) * 8)
    assert len(report.in_words(report.describe(many))) == 6
    assert "… and 3 more." in render(many, "markdown")
    assert "What to change, by individual savings (5 more with -v):" in render(many, "text").splitlines()
    assert " 8. 9.0 ms" in render(many, "text", verbose=1)


def test_the_json_holds_all_of_it():
    """Ids lead to the findings and habits of the same document."""
    analysis = step()
    document = json_document(analysis).remedies
    ids = {f.id for f in analysis.findings} | {h.id for h in analysis.habits}
    assert {r.habit or r.findings[0] for r in document} <= ids
    assert [r.alone_us for r in document] == [r.alone_us for r in analysis.remedies]


def test_the_list_ends_where_the_rest_saves_too_little():
    """The other findings and changes together save less than two measurements can tell apart: 264 µs of 26.4 ms."""
    small = tuple(finding(f"item-0000000{k}") for k in range(3))
    listed = (remedy(), remedy(findings=("item-00000000",), alone_us=400.0, after_us=100.0))
    step = replace(STEP, recoverable_us=9_150.0)
    assert report.stop(replace(analysis(finding(), *small, step=step), remedies=listed)) == (
        "After the first change, the other 3 changes save less than 1% in total: stop there."
    )
    assert report.stop(replace(analysis(finding(), *small[:1], step=step), remedies=listed[:1])) == (
        "The other change saves less than 1%: stop there."
    )


def test_it_does_not_end_where_the_rest_saves_something_or_nothing_is_left():
    """Many small savings may come to a large one."""
    small = tuple(finding(f"item-0000000{k}") for k in range(3))
    large = replace(STEP, recoverable_us=9_400.0)
    assert report.stop(replace(analysis(finding(), *small, step=large), remedies=(remedy(),))) == ""
    assert report.stop(replace(analysis(finding()), remedies=(remedy(),))) == ""
    unknown = replace(analysis(finding(), *small), remedies=(remedy(),), habits=(TIMED,))
    assert report.stop(unknown) == ""


def test_many_findings_that_save_too_little_are_one_line_of_the_table():
    """Named by their rules, with their waits; `-v` lists them."""
    little = [
        finding(f"item-0000000{k}", recoverable_us=10.0, recoverable_range_us=(0.0, 20.0), moved_us=0.0)
        for k in range(5)
    ]
    text = render(analysis(finding(), *little), "text")
    assert " 5 places: nonzero. Each saves less than 1%; together they wait 41.1 ms." in text.splitlines()
    assert " 5 more: -v" in text.splitlines()
    assert "less than 1% each" not in render(analysis(*little), "text")
