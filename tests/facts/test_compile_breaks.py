"""Dynamo's breaks are joined with the waits at the same line, and with those of a frame that runs eagerly."""

from __future__ import annotations

from syncscan.model.finding import Finding, Source
from syncscan.model.states import CompileEvent, CompileKind, CompileRecord
from syncscan.report.compile_breaks import compile_breaks
from tests.report.example import finding


def event(kind: CompileKind = CompileKind.BREAK, line: int = 10, last: int = -1) -> CompileEvent:
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
    (broken,) = compile_breaks(record, findings)
    return broken.findings, broken.findings_in_frame


def test_a_break_has_the_waits_at_its_line() -> None:
    """Waits at other lines and in other files aren't listed."""
    assert joined(event(), at("a", 10), at("b", 11), at("c", 10, file="n.py")) == (("a",), ())


def test_an_inexact_line_counts_where_it_is_among_the_candidates() -> None:
    """The trace doesn't tell which of them it is."""
    assert joined(event(), at("a", 9, exact=False)) == (("a",), ())


def test_a_skipped_frame_has_the_waits_of_its_other_lines_too() -> None:
    """Up to its last line, where that is known."""
    result = at("a", 10), at("b", 12), at("c", 30)
    assert joined(event(CompileKind.SKIPPED, last=20), *result) == (("a",), ("b",))


def test_without_its_last_line_a_frame_is_known_by_its_name() -> None:
    """A function of another name isn't it."""
    result = at("a", 12), at("b", 13, "other")
    assert joined(event(CompileKind.SKIPPED), *result) == ((), ("a",))


def test_a_recompile_waits_for_nothing() -> None:
    """It stands at the function's first line, whatever waits there."""
    assert joined(event(CompileKind.RECOMPILED, 8), at("a", 8)) == ((), ())


def test_what_waits_comes_first() -> None:
    """In the order of the findings."""
    record = CompileRecord(torch="2.13", events=(event(line=1), event(line=11), event(line=10)))
    result = compile_breaks(record, [at("a", 10), at("b", 11)])
    assert [broken.line for broken in result] == [10, 11, 1]
