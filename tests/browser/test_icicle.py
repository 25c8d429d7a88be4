"""The icicle in a real browser: it draws the sampled tree, zooms by click and key, says what is chosen; no print."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.browser.viewer import Report
from tests.report.example import HOSTILE, SAMPLED, host_bound, hostile_host

pytestmark = [pytest.mark.slow, pytest.mark.browser]

WIDTHS = """() => Object.fromEntries([...document.querySelectorAll('#icicle g')].map(
  (g) => [g.querySelector('text')?.textContent ?? g.dataset.node, g.getBBox().width]))"""
TAGS = """['icicle', 'icicle-details', 'icicle-legend', 'tip'].flatMap(
  (id) => [...document.querySelectorAll(`#${id} *`)].map((e) => e.localName))"""
CHOSEN = "document.querySelector('#icicle-details strong').textContent"


@pytest.fixture
def report(show: Callable[..., Report]) -> Report:
    return show(host_bound()).tab("Host time")


def widths(report: Report) -> dict[str, float]:
    """How wide each function is drawn, px."""
    result: dict[str, float] = report.js(WIDTHS)
    return result


def click(report: Report, function: str) -> None:
    report.page.locator("#icicle g", has_text=function).first.click(position={"x": 4, "y": 8})


def test_a_function_is_as_wide_as_its_part_of_the_step(report: Report) -> None:
    """And lies in its caller, in the color of its owner."""
    drawn = widths(report)
    assert drawn["forward"] / drawn["step, 14.3 ms"] == pytest.approx(5.9 / 14.3, abs=0.01)
    assert drawn["_inner_training_loop"] / drawn["main"] == pytest.approx(14.2 / 14.3, abs=0.01)
    colors = report.js("[...document.querySelectorAll('#icicle g rect')].map((r) => r.getAttribute('class'))")
    assert colors[:4] == ["whole", "own0", "own3", "own0"]
    assert report.page.locator("#icicle-legend li").all_inner_texts()[0] == "the program 7%"


def test_a_click_zooms_and_on_the_whole_step_zooms_out(report: Report) -> None:
    """Its callers stay above; a second click goes back to the caller."""
    unzoomed = widths(report)
    click(report, "forward")
    zoomed = widths(report)
    assert zoomed["forward"] == zoomed["main"] == pytest.approx(unzoomed["main"], abs=1)
    assert "backward" not in zoomed
    assert report.js(CHOSEN) == "forward"
    click(report, "forward")
    assert widths(report)["_inner_training_loop"] == pytest.approx(unzoomed["main"], abs=1)
    click(report, "step, 14.3 ms")
    assert widths(report) == unzoomed


def test_keys_choose_and_zoom(report: Report) -> None:
    """Down to what it calls, right and left beside it, up to its caller; Enter zooms, Escape shows the whole step."""
    unzoomed = widths(report)
    report.page.locator("#icicle").focus()
    chosen = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        report.page.keyboard.press(key)
        chosen.append(report.js(CHOSEN))
    assert chosen == ["main", "_inner_training_loop", "forward", "backward", "forward", "linear", "forward"]
    report.page.keyboard.press("Enter")
    assert widths(report)["forward"] == pytest.approx(unzoomed["main"], abs=1)
    assert report.page.get_by_role("button", name="Whole step").is_visible()
    report.page.keyboard.press("Escape")
    assert widths(report) == unzoomed
    assert not report.page.get_by_role("button", name="Whole step").is_visible()


def test_the_tooltip_says_where_and_how_long(report: Report) -> None:
    """Function, file and line, time, part of the step, whose code and in which phase."""
    report.page.locator("#icicle g", has_text="forward").first.hover()
    text = report.page.locator("#tip").inner_text()
    for words in (
        "/home/me/model.py:12",
        "total 5.9 ms, 41.3%",
        "self 900 µs, 6.3%",
        "whose the program",
        "phase forward",
    ):
        assert words in text


def test_it_fits_a_narrow_page_and_both_themes(show: Callable[..., Report]) -> None:
    """Nothing is wider than the page; the other theme has its own colors."""
    report = show(host_bound(), width=420).tab("Host time")
    assert report.js("document.documentElement.scrollWidth") <= 420
    color = "getComputedStyle(document.querySelector('#icicle rect.own0')).fill"
    light = report.js(color)
    report.page.get_by_role("button", name="Switch between light and dark").click()
    assert report.js(color) != light


def test_on_paper_the_tables_stand_for_it(report: Report) -> None:
    """A picture to click at is none on paper."""
    report.page.emulate_media(media="print")
    assert not report.page.locator("#icicle").is_visible()
    assert report.page.get_by_text("Top lines by self time").is_visible()


def test_a_hostile_name_is_text(show: Callable[..., Report]) -> None:
    """In the picture, in what is said of it and in the tooltip."""
    names = [text for text in HOSTILE if text]
    root, node = SAMPLED.nodes[:2]
    us = root.us / len(names)
    below = (replace(node, function=text, file=text, owner=text, us=us, self_us=us) for text in names)
    report = show(host_bound(replace(hostile_host(""), sampled=replace(SAMPLED, nodes=(root, *below))))).tab(
        "Host time"
    )
    cells = report.page.locator("#icicle g")
    assert cells.count() == len(names) + 2
    for number in range(2, len(names) + 2):
        cells.nth(number).click(position={"x": 4, "y": 8})
        report.page.keyboard.press("Escape")
        cells.nth(number).hover()
        assert set(report.js(TAGS)) <= {"svg", "g", "rect", "text", "strong", "span", "b", "li", "i", "div"}
    assert not report.js("window.owned")
