"""A patch in Markdown for a pull request: what changes, how it was verified, what it gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.model.fix import Fix, Fixed
from syncscan.report.fix_story import gain, groups, notes, reason, tolerance, verdict, where
from syncscan.report.markup import cell, escaped
from syncscan.version import __version__

MAX_DIFF = 40_000
"""Longest diff that is shown, in characters; a GitHub comment holds 65,536."""


def render(fixed: Fixed) -> str:
    """Return the patch in GitHub-flavored Markdown."""
    parts = [f"### {escaped(verdict(fixed), 300)}"]
    for heading, fixes in groups(fixed):
        parts.append("\n".join(_rows(fixes)) if not heading else "\n".join([f"**{heading}**", "", *_items(fixes)]))
    if fixed.diff and len(fixed.diff) <= MAX_DIFF:
        fence = "`" * max(3, 1 + _longest_fence(fixed.diff))
        parts.append(f"{fence}diff\n{fixed.diff.rstrip()}\n{fence}")
    parts += [escaped(note) for note in notes(fixed)]
    last = f"{escaped(tolerance(fixed))} " if fixed.applied else ""
    return "\n\n".join([*parts, f"<sub>{last}syncscan {__version__}</sub>"]) + "\n"


def _rows(fixes: Sequence[Fix]) -> Iterator[str]:
    yield "| line | rule | what changes | safety | verified | gain |"
    yield "|---|---|---|---|---|---|"
    for f in fixes:
        also = f" ({f.why})" if f.why else ""
        verified = "dry run" if f.verified else f.how
        cells = [cell(where(f)), cell(f.rule), *map(escaped, (f"{f.change}{also}", f.safety.value, verified, gain(f)))]
        yield f"| {' | '.join(cells)} |"


def _items(fixes: Sequence[Fix]) -> Iterator[str]:
    for f in fixes:
        yield f"- {cell(where(f))} {cell(f.rule)}: {escaped(reason(f))}."


def _longest_fence(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
