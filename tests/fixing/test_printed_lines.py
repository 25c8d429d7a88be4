"""Printed lines are compared by their words and numbers, and quoted where they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.fixing.printed_lines import SteadyLines, instead, source_numbers
from tests.each import each


def test_short_texts_are_whole() -> None:
    assert instead("loss 2", "loss 1") == "'loss 2' instead of 'loss 1'"


@pytest.mark.parametrize("equal", [0, 39, 40, 59, 60, 200])
def test_quotations_of_long_texts_differ(equal: int) -> None:
    """Wherever the difference is; one may also be the other's beginning."""
    for new, old in (("1" + "z" * 90, "2" + "z" * 90), ("", "end of a line " * 9)):
        left, right = instead("=" * equal + new, "=" * equal + old).split(" instead of ")
        assert left != right
        assert max(len(left), len(right)) < 70


def test_what_is_left_out_is_marked() -> None:
    """At both ends."""
    assert instead("a" * 70 + "b" + "c" * 70, "a" * 70 + "d" + "c" * 70).startswith("…'" + "a" * 20 + "bc")
    assert instead("a" * 70 + "b" + "c" * 70, "a" * 70 + "d").endswith("'aaaaaaaaaaaaaaaaaaaad'")


DOES = "it prints"


def test_one_number_that_differs_leaves_the_others_compared() -> None:
    """Each number of a line counts for itself."""
    lines = SteadyLines("step 1 took 0.51 s, loss 0.25", "step 1 took 0.73 s, loss 0.25")
    assert lines.noise == ["step 1 took 0.51 s, loss 0.25"]
    assert lines.differs("step 1 took 0.11 s, loss 0.25", DOES) == ""
    assert "loss 0.99" in lines.differs("step 1 took 0.11 s, loss 0.99", DOES)


@pytest.mark.parametrize("again", ["polled\nloss 0.5\nend", "polled\npolled\npolled\nloss 0.5\nend", "loss 0.5\nend"])
def test_a_line_more_or_less_leaves_the_others_compared(again: str) -> None:
    """Whatever number of lines a run prints between them."""
    lines = SteadyLines("polled\npolled\nloss 0.5\nend", again)
    assert set(lines.noise) == {"polled"}
    assert lines.differs("polled\nloss 0.5\nend", DOES) == ""
    assert lines.differs("polled\nloss 0.7\nend", DOES) == "it prints 'loss 0.7' instead of 'loss 0.5'"
    assert lines.differs("polled\nend", DOES) == "it prints no line 'loss 0.5'"


def test_a_line_that_no_unchanged_run_prints_is_a_difference() -> None:
    """As many as differ between the two runs are let through: they may be noise as well."""
    lines = SteadyLines("found ab\nloss 0.5", "found cd\nloss 0.5")
    assert lines.differs("found ef\nloss 0.5", DOES) == ""
    assert lines.differs("found ef\nloss 0.5\nnothing left", DOES) != ""


def test_many_lines_are_aligned_by_their_beginning_and_end() -> None:
    """In time that grows with their number."""
    text = "".join(f"loss {k}.5\n" for k in range(5000))
    lines = SteadyLines(text + "end", text + "polled\nend")
    assert lines.differs(text + "end", DOES) == ""
    assert lines.differs(text.replace("17.5", "18.5") + "end", DOES) != ""


@each(
    ("text", "results"),
    [
        ("done", False),
        ("epoch 1\nepoch 2\nepoch 3", False),
        ("8 images\n8 images", False),
        ("37 correct", True),
        ("37 correct\n39 correct\n38 correct", True),
        ("epoch 1 loss 0.5", True),
        ("100%|###| 3/3 [00:02<00:00,  1.2s/it]", False),
        ("100%|###| 3/3 [00:02<00:00,  1.2s/it, loss=0.5]", True),
    ],
)
def test_a_counter_is_no_result(text: str, results: bool) -> None:
    """Nor is the time in a progress bar."""
    assert SteadyLines(text, text).has_results() is results


def test_a_number_that_differs_is_no_result() -> None:
    assert not SteadyLines("mean 0.5", "mean 0.7").has_results()


def test_numbers_of_code_strings_and_arguments(tmp_path: Path) -> None:
    """A number counts however it is written."""
    file = tmp_path / "train.py"
    file.write_text('rate = 1e-3\nprint("loss 0.5 after", 20)\n')
    assert source_numbers([str(file)], ["--epochs", "7"]) == {0.001, 0.5, 20.0, 7.0}


def test_a_file_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    """Code that ran may be in no file."""
    assert source_numbers([str(tmp_path / "none.py")], []) == frozenset()
