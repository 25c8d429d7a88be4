"""List, timeline and drawer in a browser: what is chosen in one shows in the others, by pointer, key and touch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan import api
from tests.browser.test_report import two_findings
from tests.browser.viewer import Report
from tests.builder import TraceBuilder
from tests.report.example import LAUNCHES, of_habit, scattered, typical

pytestmark = [pytest.mark.slow, pytest.mark.browser]

STATE = "[syncscan.timeline.state.sync, syncscan.timeline.state.finding]"
IN_VIEW = """() => { const t = syncscan.timeline, s = syncscan.data.syncs, i = t.state.sync, v = t.view;
  return v.from < s.start[i] && s.end[i] < v.to; }"""
FOCUS = "document.activeElement.id || document.activeElement.closest('.item')?.id || document.activeElement.tagName"


def chosen(report: Report) -> list[int]:
    """The chosen sync and its finding."""
    state: list[int] = report.js(STATE)
    return state


def title(report: Report) -> str:
    """Return the title of the drawer."""
    return str(report.page.locator("#drawer-title bdi").inner_text())


def test_a_click_on_a_finding_turns_the_timeline_that_stays_in_view(show: Callable[..., Report]) -> None:
    """Its worst sync is selected and in view, a step without it drawn and named; the drawer stays shut."""
    report = show(scattered(), height=700)
    report.page.locator("#f1 .place").click()
    report.settle()
    sync, finding = chosen(report)
    assert finding == 1
    waits = report.js("[...syncscan.data.syncs.wait].filter((_, i) => syncscan.data.syncs.finding[i] === 1)")
    assert report.js(f"syncscan.data.syncs.wait[{sync}]") == max(waits)
    assert report.js(IN_VIEW)
    assert report.page.locator("#f1.selected [aria-current=true]").count() == 1
    removed = report.js("syncscan.timeline.options.replay.findings")
    assert removed == [1]
    step = report.js("syncscan.timeline.options.replay.of")
    assert re.match(rf"Hatched: {step} without “.*”, projected", report.page.locator("#replayed").inner_text())
    assert not report.page.locator("#drawer").is_visible()
    report.js("scrollTo(0, document.querySelector('#workbench').offsetTop + 60)")
    report.page.wait_for_timeout(100)
    box = report.page.locator("#lanes").bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 700
    report.page.locator("#f1 .more").click()
    assert title(report) == report.page.locator("#f1 .pick").inner_text()


def test_a_link_leads_to_what_is_chosen(show: Callable[..., Report]) -> None:
    """The address has it, and opens on it."""
    report = show(scattered())
    report.page.locator("#f1 .place").click()
    assert report.js("location.hash") == "#f1"
    report.page.reload()
    assert report.page.locator("#f1.selected").count() == 1
    assert chosen(report)[1] == 1


def test_a_click_on_a_sync_opens_its_detail_in_the_drawer(show: Callable[..., Report]) -> None:
    """Title, this sync's times, four numbers, place, chain, fix, when it is fine, evidence; the list goes along."""
    report = show(two_findings())
    report.page.mouse.move(*report.at("syncs", "(s.start[1] + s.end[1]) / 2"))
    assert "waits" in report.page.get_by_role("tooltip").inner_text()
    assert "device idle after it" in report.page.locator("#hover").inner_text()
    report.page.mouse.click(*report.at("syncs", "(s.start[1] + s.end[1]) / 2"))
    number = report.js("syncscan.data.syncs.finding[1]")
    assert title(report) == report.page.locator(f"#f{number} .pick").inner_text()
    text = report.page.locator("#drawer").inner_text()
    for part in ("In step", "the host waits", "wait", "idle after", "moved", "recoverable", "Fix", "When it is fine"):
        assert part in text
    assert "aten::item › aten::_local_scalar_dense › cuda" in text
    assert report.js(FOCUS) == "drawer"
    assert report.page.locator(f"#f{number}.selected").count() == 1
    report.page.locator("#drawer [data-at]").last.click()
    report.settle()
    assert chosen(report)[1] == number
    assert report.js(IN_VIEW)
    report.page.locator("#drawer-next").click()
    assert title(report) == report.page.locator(".item.selected .pick").inner_text()
    report.page.get_by_role("button", name="Close the details").click()
    assert not report.page.locator("#drawer").is_visible()


def test_keys_walk_open_and_close_and_the_focus_comes_back(show: Callable[..., Report]) -> None:
    """Letters j and k or arrows walk, Enter opens, n and p go on by a sync, Esc closes the drawer, then lets go."""
    report = show(two_findings())
    keyboard = report.page.keyboard
    items = report.js("syncscan.list.shown.map((item) => item.id)")
    keyboard.press("j")
    assert report.js(FOCUS) == items[0]
    keyboard.press("j")
    keyboard.press("ArrowDown")
    keyboard.press("k")
    keyboard.press("ArrowUp")
    keyboard.press("j")
    assert report.js(FOCUS) == items[1]
    assert report.js("syncscan.list.selected.id") == items[1]
    keyboard.press("Enter")
    assert report.js(FOCUS) == "drawer"
    keyboard.press("j")
    assert report.js("syncscan.list.selected.id") == items[2]
    assert title(report) == report.page.locator(".item.selected .pick").inner_text()
    assert report.js(FOCUS) == "drawer"
    sync = chosen(report)[0]
    keyboard.press("n")
    assert chosen(report)[0] == (sync + 1) % report.js("syncscan.data.syncs.start.length")
    keyboard.press("p")
    assert chosen(report)[0] == sync
    keyboard.press("Escape")
    assert report.js(FOCUS) == items[1]
    assert not report.page.locator("#drawer").is_visible()
    keyboard.press("Escape")
    assert chosen(report) == [-1, -1]
    assert report.page.locator(".item.selected").count() == 0
    report.page.locator("#lanes").focus()
    keyboard.press("n")
    keyboard.press("Enter")
    assert report.page.locator("#drawer").is_visible()
    keyboard.press("Escape")
    assert report.js(FOCUS) == "lanes"


def test_the_help_tells_the_keys_and_can_switch_single_letters_off(show: Callable[..., Report]) -> None:
    """A dialog: ? opens it, Esc closes it and gives the focus back; without single letters j does nothing."""
    report = show(two_findings())
    report.page.locator("#lanes").focus()
    report.page.keyboard.press("?")
    assert report.page.get_by_role("dialog", name="Keys and gestures").is_visible()
    report.page.keyboard.press("j")
    assert report.js("syncscan.list.selected") is None
    report.page.keyboard.press("Escape")
    assert not report.page.get_by_role("dialog").is_visible()
    report.page.get_by_role("button", name="Keys and gestures").click()
    report.page.get_by_label("Enable single-key shortcuts").uncheck()
    report.page.get_by_role("button", name="Close the help").click()
    report.page.keyboard.press("j")
    assert report.js("syncscan.list.selected") is None


def test_keys_zoom_and_move(show: Callable[..., Report]) -> None:
    """+ and - zoom, w and s smoothly, a, d and arrows move, 0 goes home."""
    report = show(two_findings())
    report.page.locator("#lanes").focus()
    begin = "syncscan.timeline.view.from"
    home, first = report.in_view, report.js(begin)
    report.page.keyboard.press("+")
    assert report.in_view == pytest.approx(home / 1.5)
    report.page.keyboard.press("-")
    assert report.in_view == pytest.approx(home)
    report.page.keyboard.press("w", delay=150)
    assert report.in_view < 0.8 * home
    at = report.js(begin)
    report.page.keyboard.press("d", delay=150)
    assert report.js(begin) > at
    report.page.keyboard.press("a", delay=150)
    at = report.js(begin)
    report.page.keyboard.press("ArrowRight")
    assert report.js(begin) > at
    report.page.keyboard.press("s", delay=60)
    report.page.keyboard.press("0")
    report.settle()
    assert (report.in_view, report.js(begin)) == (home, first)


def test_the_wheel_scrolls_the_page_unless_control_zooms_and_a_drag_pans(show: Callable[..., Report]) -> None:
    """Also over lanes that are higher than their place; what is under the pointer stays there while zooming.

    A drag over the devices, which keep a place of their own, moves them in it.
    """
    t = TraceBuilder()
    for start in t.steps(3, lasts=4000):
        for stream in range(12):
            t.launch("gemm", at=start + 20 + 4 * stream, lasts=1000, stream=7 + stream)
        t.sync("aten::nonzero", at=start + 100)
    report = show(api.analyze_trace(t.trace()), height=600)
    assert report.js("syncscan.timeline.layout.height > syncscan.timeline.lanes.clientHeight")
    x, y = report.at("syncs", "(s.start[0] + s.end[0]) / 2")
    page, before, view = report.js("scrollY"), report.in_view, report.js("syncscan.timeline.view.from")
    report.page.mouse.move(x, y)
    report.page.mouse.wheel(0, 120)
    report.page.wait_for_timeout(300)
    assert report.js("scrollY") > page
    assert (report.in_view, report.js("syncscan.timeline.lanes.scrollTop")) == (before, 0)
    x, y = report.at("syncs", "s.start[0]")
    report.page.mouse.move(x, y)
    report.page.keyboard.down("Control")
    report.page.mouse.wheel(0, -300)
    report.page.wait_for_timeout(100)
    report.page.keyboard.up("Control")
    assert report.in_view < 0.7 * before
    assert report.at("syncs", "s.start[0]")[0] == pytest.approx(x, abs=2)
    view = report.js("syncscan.timeline.view.from")
    lanes = report.page.locator("#lanes").bounding_box()
    y = lanes["y"] + lanes["height"] - 20
    report.page.mouse.move(x, y)
    report.page.mouse.down()
    report.page.mouse.move(x - 120, y - 40, steps=4)
    report.page.mouse.up()
    assert report.js("syncscan.timeline.view.from") > view
    assert report.js("syncscan.timeline.sunk") == pytest.approx(40, abs=2)
    assert chosen(report) == [-1, -1]


def touch(report: Report, *strokes: list[tuple[float, float]]) -> None:
    """Fingers that go down together, move and lift."""
    session = report.page.context.new_cdp_session(report.page)

    def send(kind: str, points: list[tuple[float, float]]) -> None:
        fingers = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    send("touchStart", [stroke[0] for stroke in strokes])
    for points in zip(*(stroke[1:] for stroke in strokes), strict=True):
        send("touchMove", list(points))
    send("touchEnd", [])


def test_on_a_phone_fingers_pan_zoom_and_tap(show: Callable[..., Report]) -> None:
    """The timeline stays at the foot of the window while the list scrolls; nothing is wider than the page."""
    report = show(two_findings(), width=390, height=844, has_touch=True, is_mobile=True)
    assert report.js("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    report.page.locator("#f0 .pick").tap()
    report.settle()
    lanes = report.page.locator("#lanes").bounding_box()
    assert 844 / 2 < lanes["y"] < lanes["y"] + lanes["height"] < 844
    assert chosen(report)[1] == 0
    x, y = lanes["x"] + 250, lanes["y"] + 20
    span, begin = report.in_view, report.js("syncscan.timeline.view.from")
    touch(report, [(x, y), (x - 20, y), (x - 60, y), (x - 100, y)])
    assert report.js("syncscan.timeline.view.from") > begin
    assert report.in_view == pytest.approx(span)
    touch(report, [(x, y), (x - 10, y), (x - 30, y)], [(x + 20, y), (x + 40, y), (x + 80, y)])
    assert report.in_view < 0.6 * span
    report.js("syncscan.timeline.goto(0)")
    report.settle()
    report.page.touchscreen.tap(*report.at("syncs", "(s.start[0] + s.end[0]) / 2"))
    drawer = report.page.locator("#drawer").bounding_box()
    assert (drawer["x"], drawer["width"]) == (0, 390)
    assert drawer["y"] + drawer["height"] == pytest.approx(844, abs=1)


def test_the_hatched_step_is_without_what_is_chosen(show: Callable[..., Report]) -> None:
    """By the list or by the field above; elsewhere than in its step it says so; none is drawn where none is wanted."""
    report = show(scattered())
    note = report.page.locator("#replayed")
    bands = "syncscan.timeline.layout.bands.filter((b) => b.kind === 'projected').length"
    assert "without both syncs" in note.inner_text()
    assert report.js(bands) == 2
    report.page.get_by_label("Go to").select_option("whole trace")
    report.page.locator("#f0 .pick").click()
    report.settle()
    own = report.js("syncscan.timeline.options.replay.of")
    assert own in note.inner_text()
    last = report.js("syncscan.data.steps.findIndex(([n]) => `step ${n}` !== syncscan.timeline.options.replay.of)")
    report.page.get_by_label("Go to").select_option(str(last))
    report.settle()
    assert "It is out of view" in note.inner_text()
    report.page.get_by_role("button", name="show it").click()
    report.settle()
    assert "out of view" not in note.inner_text()
    report.page.get_by_label("Projected step").select_option("")
    assert report.js(bands) == 0
    report.page.locator("#f1 .pick").click()
    assert report.js(bands) == 0
    report.page.keyboard.press("o")
    assert report.js(bands) == 2


def test_a_habit_has_its_detail_in_the_drawer_too(show: Callable[..., Report]) -> None:
    """It opens from the list of changes and from its own place; a break that prevents a graph links to its finding."""
    report = show(typical())
    report.page.locator(".remedy", has_text="bound by its launches").locator(".pick").click()
    report.page.keyboard.press("Enter")
    assert title(report) == LAUNCHES.advice.title
    assert "Prevents a single graph" in report.page.locator("#drawer").inner_text()
    report.page.locator("#drawer a[data-finding]").click()
    assert report.page.locator("#f0.selected").count() == 1
    assert title(report) == report.page.locator("#f0 .pick").inner_text()


def test_a_habit_s_step_is_not_drawn_and_reported_so(show: Callable[..., Report]) -> None:
    """The hatched step stays that without syncs."""
    analysis = two_findings()
    report = show(replace(analysis, habits=(LAUNCHES,), remedies=(*analysis.remedies, of_habit(LAUNCHES))))
    report.page.locator("#h0 .pick").click()
    assert report.page.locator("#replayed").inner_text().startswith("What a habit costs isn't drawn. Hatched: ")
    assert LAUNCHES.advice.title in report.page.locator("#details").inner_text()


def test_the_list_sorts_and_filters(show: Callable[..., Report]) -> None:
    """By another number than what is saved; by scope and by text."""
    report = show(two_findings())
    order = "syncscan.list.findings.map((f) => f.id)"
    before = report.js(order)
    waits = report.js("syncscan.list.findings.map((f) => Number(f.dataset.wait))")
    report.page.get_by_label("Sort by").select_option("wait")
    assert report.js("syncscan.list.findings.map((f) => Number(f.dataset.wait))") == sorted(waits, reverse=True)
    report.page.get_by_label("Sort by").select_option("")
    assert report.js(order) == before
    report.page.get_by_text("Kinds").click()
    report.page.locator("select[data-filter=scope]").select_option("log")
    assert report.page.locator("#findings > li:visible").count() == 1
    assert report.page.locator("#filter-count").text_content() == "1 of 2"
    report.page.get_by_label("Find in the findings").fill("nothing like it")
    assert report.page.get_by_text("No finding matches").is_visible()


def test_many_findings_are_shown_in_parts(show: Callable[..., Report]) -> None:
    """The first ones, the rest on demand, or as keys reach them."""
    analysis = typical()
    many = tuple(replace(analysis.findings[0], id=f"nonzero-{k:08x}") for k in range(40))
    report = show(replace(analysis, findings=many, remedies=()))
    assert report.page.locator("#findings > li:visible").count() == 30
    report.page.get_by_role("button", name="Show 10 more").click()
    assert report.page.locator("#findings > li:visible").count() == 40
    assert report.js(FOCUS) == "f30"


def test_many_findings_take_three_screens_of_a_phone_until_more_are_shown(show: Callable[..., Report]) -> None:
    """160 findings: their section is three screens high at most, and the first fix is on the first."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=60_000):
        for k in range(160):
            with t.scope(f"part {k}", start + 350 * k, start + 350 * k + 320):
                t.launch("gemm_kernel", at=start + 350 * k + 10, lasts=100)
                t.sync("aten::nonzero", at=start + 350 * k + 50)
    report = show(api.analyze_trace(t.trace()), width=390, height=844, has_touch=True, is_mobile=True)
    assert report.page.locator("section.findings").bounding_box()["height"] <= 3 * 844
    assert report.page.locator("[data-fix]").first.bounding_box()["y"] < 844
    report.page.locator("#all-findings").click()
    assert report.page.locator("#findings > li:visible").count() == 160


def test_a_finding_is_copied_as_markdown(show: Callable[..., Any]) -> None:
    """Title, place, evidence, fix and occurrences; names stand in code."""
    report = show(typical())
    text = report.js("evidence(document.getElementById('f0'))")
    assert text.startswith("**`` nonzero waits to learn how many elements there are ``** (high)")
    assert "- chain: `` aten::index › aten::nonzero › cudaStreamSynchronize ``" in text
    assert "Fix: `` Use torch.where(mask, a, b), which keeps the shape. ``" in text
