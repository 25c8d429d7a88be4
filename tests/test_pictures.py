"""The pictures of the docs are as the code draws them, and each stands on a page."""

from __future__ import annotations

import functools
import re

import pytest

from docs.pictures import IMAGES, SCATTER, STEPS, drawings
from docs.scatter import HABITS, LAUNCHES, SYNCS, points, tables
from tests.pages import PAGES


@functools.cache
def drawn() -> dict[str, str]:
    return dict(drawings())


@pytest.mark.parametrize("name", [*STEPS, SCATTER])
def test_a_picture_is_as_it_is_drawn_now(name: str) -> None:
    """`python -m docs.pictures` writes them anew."""
    assert (IMAGES / name).read_text(encoding="utf-8") == drawn()[name]


def test_every_picture_stands_on_a_page_and_has_a_text() -> None:
    """No picture is left over, and none goes without words."""
    shown = [m for page in PAGES for m in re.findall(r"!\[([^\]]*)\]\((?:\S*/)?(\S+?)\)", page.read_text("utf-8"))]
    assert {path.name for path in IMAGES.iterdir()} == {name for _, name in shown if (IMAGES / name).exists()}
    assert all(len(words) > 20 for words, name in shown if (IMAGES / name).exists())


def test_the_scatter_has_a_point_for_each_row_with_a_projection() -> None:
    """Each table of the page that compares a projection with a measurement is read whole; misses are drawn."""
    page = tables()
    shown = list(points(page))
    counted = {kind: sum(p.kind == kind for p in shown) for kind in (SYNCS, HABITS, LAUNCHES)}
    printed = re.findall(r"<!-- table: python -m benchmarks\.(\S+).*?-->\n(.*?)<!-- /table", page, re.S)
    rows = {name: len(text.splitlines()) - 2 for name, text in printed}
    assert counted == {
        SYNCS: rows["whatif"] + rows["joint.score"],
        HABITS: rows["host_stalls"] + rows["habits"] - page.count("| at best "),
        LAUNCHES: 4 * rows["joint.score"],
    }
    assert any(not p.inside for p in shown)
