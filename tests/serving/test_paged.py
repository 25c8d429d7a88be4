"""An answer comes in pages that fit."""

from __future__ import annotations

import pytest

from syncscan.serving.mcp_server import LINE, PAGE, paged


def test_a_page_holds_what_fits_and_no_line_is_lost() -> None:
    """A long name loses its middle; the pages together are the lines."""
    lines = [f"line {number} " + "x" * 80 for number in range(200)] + ["y" * 10_000]
    text = "\n".join(lines)
    count = int(paged(text).splitlines()[-1].split(";")[0].split()[-1])
    pages = [paged(text, page) for page in range(1, count + 1)]
    shown = [line for page in pages for line in page.splitlines() if not line.startswith("[page ")]
    assert max(map(len, pages)) <= PAGE + 100
    assert shown[:-1] == lines[:-1]
    assert len(shown[-1]) == LINE


@pytest.mark.parametrize("page", [-1, 0, 2])
def test_a_page_that_is_not_there(page: int) -> None:
    """None before the first either."""
    assert paged("a", page) == f"There is no page {page}; the last is 1.\n"


def test_control_characters_are_not_passed_on() -> None:
    """A name out of a trace is text, and no order to a terminal."""
    assert "\x1b" not in paged("\x1b[31mred")
