"""Reasons for waits that no rewrite takes away."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from syncscan.fixing.flow import callees
from syncscan.fixing.messages import WaitingLine
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left
from syncscan.rules.pages import FOLDER
from syncscan.source.tree import Function

_UNHANDLED = "no rewrite is certain to keep the results here"


def in_library(place: WaitingLine) -> bool:
    """Return whether a place waits inside of a library, for which one line may have several settings."""
    return place.rule in _library_rules()


@functools.cache
def _library_rules() -> frozenset[str]:
    """Return the rules whose tables name files of a library, which is never changed, and torchmetrics' checks."""
    tables = (FOLDER / "syncs").glob("*.toml")
    return frozenset({"metric-validation", *(file.stem for file in tables if "\nfiles = " in file.read_text("utf-8"))})


def reason_for(place: WaitingLine, reasons: Sequence[Left]) -> str:
    """Return the first of a line's reasons that is about a place; empty where none is."""
    about = (r.why for r in reasons if (r.setting in place.advice if r.setting else not in_library(place)))
    return next(about, "")


def why_left(place: WaitingLine) -> str:
    advice = place.advice.removesuffix(".")
    return _known_reason(place, advice) or (f"{_UNHANDLED}. {advice}" if advice else _UNHANDLED)


def is_unhandled(place: WaitingLine) -> bool:
    """Return whether nothing is known of a wait but that no rewrite handles it."""
    return not _known_reason(place, "")


def _known_reason(place: WaitingLine, advice: str) -> str:
    """Return the reason that follows from a wait's rule or cause; empty where none does."""
    if in_library(place):
        return f"a library waits here, and its settings are yours to choose. {advice}"
    if place.cause == "SHAPE":
        return "the number of elements is the size of a later tensor, which the host needs"
    if place.cause in ("CTRL", "CHECK"):
        return "the value controls what the host runs next"
    if place.cause == "LOG":
        return "the value is printed or logged in every step; log it less often if that is enough"
    return ""


def runs_once(file: File, line: int) -> bool:
    """Return whether the innermost statement of a line is in no loop, and its function was entered at most once.

    A function may also be entered by several calls that run once each, as one that prepares each of the data sets.
    """
    statement = file.statement_at(line)
    return statement is not None and _is_in_no_loop(file, statement, ())


def _is_in_no_loop(file: File, node: ast.AST, within: tuple[ast.AST, ...]) -> bool:
    function = file.function_of(node)
    if file.loops_of(node) or function in within:
        return False
    if not isinstance(function, Function) or file.entered(function).count <= 1:
        return True
    calls = callees.calls_of(file, function) or []
    return bool(calls) and all(file.seen(c).count <= 1 and _is_in_no_loop(file, c, (*within, function)) for c in calls)
