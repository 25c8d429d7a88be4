"""The entries of a patch: what was changed or tried, and the waits that are left to the author, with the reason."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from syncscan.fixing.flow import callees
from syncscan.fixing.messages import WaitingLine
from syncscan.fixing.printed_lines import shown_path
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left
from syncscan.model.fix import Fix, FixGain, Safety
from syncscan.rules.pages import FOLDER
from syncscan.source.tree import Function

SELDOM = 3
"""Waits in the whole run below which a place isn't spoken of."""
APART = ("one-off", "checkpoint-save")
"""Rules of waits outside of the steps."""
NOT_VERIFIED = "not verified: "
_UNHANDLED = "no rewrite is certain to keep the results here"


class PatchEntries:
    """Collects the entries, by file and line of the unchanged program; `gains` are a recording's."""

    def __init__(self, gains: Mapping[tuple[str, int], FixGain]) -> None:
        self._gains = gains
        self.fixes: list[Fix] = []
        """Changes, and those that were only tried."""
        self.left: dict[tuple[str, int], list[Left]] = defaultdict(list)
        self.settings: dict[tuple[str, int], list[str]] = defaultdict(list)
        """Words of the settings of libraries that fixes are about."""
        self.once: set[tuple[str, int]] = set()
        """Waits in statements that run once, such as a model's move to the device."""

    def all(self, before: Sequence[WaitingLine], still: Set[tuple[str, int, str]]) -> list[Fix]:
        """Return what was changed, and of each other line what was tried, or why it is left.

        `still` has the file, line and advice of what waits in the patched program.
        """
        fixes = [fix for fix in self.fixes if fix.applied]
        spoken = {(f.file, line) for f in fixes for line in range(f.line, f.end_line + 1)}
        for fix in self.fixes:
            if not fix.applied and (fix.file, fix.line) not in spoken:
                fixes.append(fix)
                spoken.add((fix.file, fix.line))
        return fixes + self._manuals(before, still, spoken)

    def _manuals(
        self, before: Sequence[WaitingLine], still: Set[tuple[str, int, str]], spoken: set[tuple[str, int]]
    ) -> list[Fix]:
        """Return what is left: one entry per line, and one per setting where a library waits."""
        waiting, advised = {(file, line) for file, line, _ in still}, set(still)
        result: list[Fix] = []
        for place in before:
            key, short = (place.file, place.line), (shown_path(place.file), place.line)
            if place.count < SELDOM or key not in waiting or self._is_setup(place):
                continue
            if in_library(place):
                if (*key, place.advice) in advised and not any(word in place.advice for word in self.settings[key]):
                    advised.discard((*key, place.advice))
                    result.append(self._manual(place))
            elif short not in spoken:
                result.append(self._manual(place))
            spoken.add(short)
        return result

    def why_unjudged(self) -> str:
        """Return why nothing could be verified; empty where a change passed, or everything was tried."""
        if any(fix.applied for fix in self.fixes):
            return ""
        unverified = [fix.how.removeprefix(NOT_VERIFIED) for fix in self.fixes if fix.how.startswith(NOT_VERIFIED)]
        return unverified[0] if unverified and len(unverified) == len(self.fixes) else ""

    def is_apart(self, place: WaitingLine) -> bool:
        """Return whether a place is no part of the program's steps: set-up, or a checkpoint."""
        return place.rule in APART or (place.file, place.line) in self.once

    def _is_setup(self, place: WaitingLine) -> bool:
        """Return whether a place runs once, and nothing is known of it that the author should hear."""
        key = place.file, place.line
        return key in self.once and key not in self.left and not _known_reason(place, "")

    def _manual(self, place: WaitingLine) -> Fix:
        key = place.file, place.line
        return Fix(
            file=shown_path(place.file),
            line=place.line,
            end_line=place.line,
            rule=place.rule,
            rewrite="",
            title=place.title,
            change=place.advice,
            safety=Safety.MANUAL,
            why=reason_for(place, self.left.get(key, ())) or why_left(place),
            verified=False,
            how="",
            waits=place.count,
            applied=False,
            gain=self._gains.get(key),
        )


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
