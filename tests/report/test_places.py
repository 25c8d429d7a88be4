"""Where a wait is made: the program's line and the library's stand in every format."""

from __future__ import annotations

import json

import pytest

from syncscan.api import analyze_trace
from syncscan.model.analysis import Analysis
from syncscan.report import FORMATS, render
from tests.builder import TraceBuilder
from tests.each import each

SITE = "/venv/lib/python3.12/site-packages"


def options_of(form: str) -> dict[str, bool]:
    """With its tables, where a report has them only on demand."""
    return {"verbose": True} if form in ("text", "markdown") else {}


def analysis(entry: str = "clip") -> Analysis:
    """A sync that timm makes in a function that line 10 of the program called."""
    t = TraceBuilder()
    frames = ("train.py(10): main", f"{SITE}/timm/utils/agc.py(30): {entry}", f"{SITE}/timm/utils/norm.py(8): norm")
    with t.step(0, 2000), t.frame(frames[0], 1, 1900), t.frame(frames[1], 2, 1890), t.frame(frames[2], 3, 1880):
        t.sync("aten::item", at=20, wait=300)
    return analyze_trace(t.trace())


@each("form", [form for form in FORMATS if form != "svg"])
def test_both_lines_stand_in_every_format(form: str) -> None:
    """Neither tells enough alone: one says what to change, the other why it waits."""
    text = render(analysis(), form, **options_of(form))
    assert "train.py" in text
    assert "norm.py" in text


def test_a_frame_has_both_lines() -> None:
    """For filters and joins."""
    (row,) = analysis().to_frame().to_dict("records")
    got = (row["file"], row["line"], row["library_file"], row["library_line"], row["library_function"])
    assert got == ("train.py", 10, "timm/utils/norm.py", 8, "norm")


@pytest.mark.parametrize("form", ["markdown", "html", "fragment"])
def test_a_line_that_only_starts_the_loop_comes_last(form: str) -> None:
    """`Trainer(…).train()` is the line of every finding: the library's tells them apart."""
    called, in_loop = (
        render(analysis(), form, **options_of(form)),
        render(analysis("train"), form, **options_of(form)),
    )
    assert "main() in train.py, inside norm() in timm/utils/norm.py" in called
    assert "norm() in timm/utils/norm.py, from main() in train.py" in in_loop


def test_the_first_screen_names_the_library_s_line_by_its_package() -> None:
    """`norm.py` alone is in every library, and the whole path is wider than a terminal."""
    assert "norm() in timm/utils/norm.py, item" in render(analysis("train"), "text", width=80)


@pytest.mark.parametrize("form", ["text", "markdown", "html", "fragment", "junit"])
def test_every_format_says_whether_it_is_safe_to_remove(form: str) -> None:
    """A value that steers can't be left out, one that is shown can."""
    options = {"verbose": 1} if form == "text" else {}
    assert "safe to remove" in render(analysis(), form, **{**options, **options_of(form)})


def test_the_use_of_the_value_is_a_field_for_programs() -> None:
    """In JSON, SARIF and a frame under one name."""
    (outcome,) = json.loads(render(analysis(), "json"))["findings"]
    (result,) = json.loads(render(analysis(), "sarif"))["runs"][0]["results"]
    (row,) = analysis().to_frame().to_dict("records")
    assert (outcome["value"], result["properties"]["value"], row["value"]) == ("unknown",) * 3


def test_json_says_whose_line_leads() -> None:
    """A program that shows one line shows the better one."""
    (f,) = json.loads(render(analysis("train"), "json"))["findings"]
    assert (f["source"]["line"], f["called_from"]["line"], f["in_loop"]) == (10, 8, True)
