"""Divide an answer into pages that fit into a language model's context."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.report.shown_names import shown

PAGE = 4_500
"""Characters per page. An answer should stay below 2,000 tokens; paths and numbers, the worst case, take a token per
2.5 to 3 characters (cl100k_base, o200k_base), prose one per 4."""
LINE = 500
"""Longest line, in characters; a longer one loses its middle."""


def paged(text: str, page: int = 1, *, tabs: bool = False) -> str:
    """Return one page of a text, without control characters; the last line says how to get the next page.

    Args:
        text: any; a line longer than `LINE` loses its middle.
        page: from 1.
        tabs: whether tabs and carriage returns at line ends stay, as in a patch.
    """
    lines = text.removesuffix("\n").split("\n")
    pages = _pages([_line(line, "\t" if tabs else "") for line in lines])
    if not 1 <= page <= len(pages):
        return f"There is no page {page}; the last is {len(pages)}.\n"
    more = [f"[page {page} of {len(pages)}; next: page {page + 1}]"] if page < len(pages) else []
    return "\n".join([*pages[page - 1], *more]) + "\n"


def _line(line: str, separator: str) -> str:
    end = "\r" if separator and line.endswith("\r") else ""
    parts = line.removesuffix("\r").split(separator) if separator else [line]
    return separator.join(shown(part, LINE) for part in parts) + end


def _pages(lines: Sequence[str]) -> list[list[str]]:
    pages: list[list[str]] = [[]]
    room = PAGE
    for line in lines:
        if len(line) + 1 > room and pages[-1]:
            pages.append([])
            room = PAGE
        pages[-1].append(line)
        room -= len(line) + 1
    return pages
