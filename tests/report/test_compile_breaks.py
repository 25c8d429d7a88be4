"""Every report has dynamo's breaks: a sentence, a table with the waits at each line, and what is unknown."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.states import CompileEvent, CompileKind, CompileRecord
from syncscan.report import compile_breaks, render
from syncscan.report.blocks import Fold, plain
from tests.report.example import analysis, finding


def event(kind: CompileKind, line: int, count: int = 1) -> CompileEvent:
    return CompileEvent(
        kind=kind, reason="Unsupported .item()", file="/a/m.py", line=line, function="f", frame="f", count=count
    )


def said(*events: CompileEvent, notes: tuple[str, ...] = ()) -> Analysis:
    outcome = analysis(finding("item-1", source=Source("/a/m.py", 10, "f", True)))
    record = CompileRecord(torch="2.13.0", frames=2, graphs=2, events=events, notes=notes)
    info = replace(outcome.trace.info, capture=replace(outcome.trace.info.capture, compiled=record))
    return replace(outcome, trace=replace(outcome.trace, info=info))


BROKEN = said(event(CompileKind.BREAK, 10), event(CompileKind.SKIPPED, 20), event(CompileKind.RECOMPILED, 8, 3))


def test_the_sentence_counts_each_kind_and_the_waits() -> None:
    """A place counts once, each recompile counts."""
    counts = "1 graph break, 1 frame run eagerly, 3 recompiles; 1 where the host waits"
    assert compile_breaks.sentence(BROKEN) == f"torch 2.13.0: dynamo made 2 graphs; {counts}."


def test_nothing_broken_is_reported() -> None:
    """A sentence of its own."""
    assert "no graph breaks, no frames run eagerly, no recompiles" in compile_breaks.sentence(said())


def test_a_row_has_line_outcome_reason_and_wait() -> None:
    """Rows with a wait come first."""
    (fold,) = (block for block in compile_breaks.blocks(BROKEN) if isinstance(block, Fold))
    first, *below = fold.blocks[0].items
    assert plain(first.words) == "m.py:10 the graph of f() ends: Unsupported .item()"
    assert first.below
    assert "all of f() runs eagerly" in plain(below[0].words)
    assert "f() is recompiled, 3 times" in plain(below[1].words)


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_each_format_has_sentence_and_reason(form: str) -> None:
    """And the notes; text and Markdown behind the first screen."""
    options = {} if form == "html" else {"verbose": True}
    text = " ".join(render(said(event(CompileKind.BREAK, 10), notes=("Some gap.",)), form, **options).split())
    assert "1 graph break" in text
    assert "Unsupported .item" in text
    assert "Some gap." in text


def test_json_has_the_ids_of_the_waits() -> None:
    """Beside dynamo's own words."""
    compiled = json.loads(render(BROKEN, "json"))["compiled"]
    assert [(b["kind"], b["line"], b["findings"]) for b in compiled["breaks"]] == [
        ("break", 10, ["item-1"]),
        ("skipped", 20, []),
        ("recompiled", 8, []),
    ]


def test_where_dynamo_was_not_asked_nothing_is_reported() -> None:
    """In JSON it is null."""
    outcome = analysis(finding())
    assert compile_breaks.sentence(outcome) == ""
    assert compile_breaks.TITLE not in render(outcome, "text", verbose=True)
    assert json.loads(render(outcome, "json"))["compiled"] is None


def of_frame(kind: CompileKind = CompileKind.BREAK, line: int = 10, last: int = -1) -> CompileEvent:
    """Words of dynamo on a line in a frame that begins at line 8."""
    return CompileEvent(
        kind=kind,
        reason="r",
        file="m.py",
        line=line,
        function="forward",
        frame="forward",
        frame_file="m.py",
        frame_line=8,
        frame_last=last,
    )


def at(id: str, line: int, function: str = "forward", file: str = "m.py", exact: bool = True) -> Finding:
    candidates = () if exact else (line, line + 1)
    return finding(id, source=Source(file, line, function, exact, candidates))


def joined(text: CompileEvent, *findings: Finding) -> tuple[tuple[str, ...], tuple[str, ...]]:
    record = CompileRecord(torch="2.13", events=(text,))
    (broken,) = compile_breaks.compile_breaks(record, findings)
    return broken.findings, broken.findings_in_frame


def test_a_break_has_the_waits_at_its_line() -> None:
    """Waits at other lines and in other files aren't listed."""
    assert joined(of_frame(), at("a", 10), at("b", 11), at("c", 10, file="n.py")) == (("a",), ())


def test_an_inexact_line_counts_where_it_is_among_the_candidates() -> None:
    """The trace doesn't tell which of them it is."""
    assert joined(of_frame(), at("a", 9, exact=False)) == (("a",), ())


def test_a_skipped_frame_has_the_waits_of_its_other_lines_too() -> None:
    """Up to its last line, where that is known."""
    result = at("a", 10), at("b", 12), at("c", 30)
    assert joined(of_frame(CompileKind.SKIPPED, last=20), *result) == (("a",), ("b",))


def test_without_its_last_line_a_frame_is_known_by_its_name() -> None:
    """A function of another name isn't it."""
    result = at("a", 12), at("b", 13, "other")
    assert joined(of_frame(CompileKind.SKIPPED), *result) == ((), ("a",))


def test_a_recompile_waits_for_nothing() -> None:
    """It stands at the function's first line, whatever waits there."""
    assert joined(of_frame(CompileKind.RECOMPILED, 8), at("a", 8)) == ((), ())


def test_what_waits_comes_first() -> None:
    """In the order of the findings."""
    record = CompileRecord(torch="2.13", events=(of_frame(line=1), of_frame(line=11), of_frame(line=10)))
    result = compile_breaks.compile_breaks(record, [at("a", 10), at("b", 11)])
    assert [broken.line for broken in result] == [10, 11, 1]
