"""The pictures of the docs are as the code draws them, and each stands on a page."""

from __future__ import annotations

import re

import pytest

from docs.pictures import IMAGES, STEPS, steps
from tests.pages import PAGES

DRAWN = dict(steps())


@pytest.mark.parametrize("name", STEPS)
def test_a_picture_is_as_it_is_drawn_now(name: str) -> None:
    """`python -m docs.pictures` writes them anew."""
    assert (IMAGES / name).read_text(encoding="utf-8") == DRAWN[name]


def test_every_picture_stands_on_a_page_and_has_a_text() -> None:
    """No picture is left over, and none goes without words."""
    shown = [m for page in PAGES for m in re.findall(r"!\[([^\]]*)\]\((?:\S*/)?(\S+?)\)", page.read_text("utf-8"))]
    assert {path.name for path in IMAGES.iterdir()} == {name for _, name in shown if (IMAGES / name).exists()}
    assert all(len(words) > 20 for words, name in shown if (IMAGES / name).exists())
