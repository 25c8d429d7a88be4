"""Name the one cause of many places that wait: the library that they lie in, and the rules that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from syncscan.model.finding import Finding
from syncscan.model.libraries import path_in_package
from syncscan.report.shown_names import shown

MANY = 4
"""Number of places from which on they are listed as one cause."""
MOST = 0.8
"""Least part of the places that lie in a library for it to be named as the cause."""
RULES = 3
"""Rules that are named."""


def title_of(findings: Sequence[Finding]) -> str:
    """Return `15 places in torchvision: nms, boolean-index and 2 more rules`; empty for fewer findings than `MANY`."""
    if len(findings) < MANY:
        return ""
    rules = [rule for rule, _ in Counter(f.rule for f in findings).most_common()]
    more = len(rules) - RULES
    named = ", ".join(rules[:RULES]) + (f" and {more} more rule{'s' * (more > 1)}" if more > 0 else "")
    library = _library(findings)
    return f"{len(findings)} places{f' in {library}' if library else ''}: {named}"


def _library(findings: Sequence[Finding]) -> str:
    inside = [f.in_library.file for f in findings if f.in_library]
    names = Counter(path_in_package(file).partition("/")[0] for file in inside)
    (name, count), *_ = names.most_common(1) or [("", 0)]
    return shown(name.removesuffix(".py"), 40) if count >= MOST * len(findings) else ""
