"""First screen, tabs, timeline and drawer in a browser: what is chosen in one shows in the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan import api
from tests.browser.test_report import two_findings
from tests.browser.viewer import Report
from tests.builder import TraceBuilder
from tests.recordings import FOLDER as SAMPLES
from tests.report.example import scattered, typical

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
    return str(report.page.locator("#drawer-title bdi").text_content())


def test_the_page_opens_on_two_lanes_with_the_worst_sync_selected(show: Callable[..., Report]) -> None:
    """A thread and a device, with the waits and the idle times; no projected lane; one button shows all of them."""
    report = show(two_findings(), width=1280, height=720)
    kinds = "syncscan.timeline.layout.bands.map((b) => b.kind)"
    assert report.js(kinds) == ["syncs", "slices", "idle", "slices"]
    sync, finding = chosen(report)
    costs = report.js("[...syncscan.data.syncs.wait].map((w, i) => w + syncscan.data.syncs.bubble[i])")
    assert sync >= 0
    assert costs[sync] == max(
        c for c, f in zip(costs, report.js("[...syncscan.data.syncs.finding]"), strict=True) if f == finding
    )
    assert not report.page.locator("#drawer").is_visible()
    assert report.page.locator("#pane").bounding_box()["y"] < 720
    report.page.get_by_role("button", name="All lanes").click()
    assert report.js(kinds).count("projected") == 2
    assert "without both syncs" in report.page.locator("#replayed").inner_text()
    report.page.get_by_role("button", name="All lanes").click()
    assert "projected" not in report.js(kinds)


def test_a_click_on_a_change_opens_its_drawer(show: Callable[..., Report]) -> None:
    """With the four numbers of its finding; from there one gets to the timeline; Esc closes, then lets go."""
    report = show(scattered(), height=700)
    report.page.locator("#r0 p").click()
    number = report.js("document.querySelector('#r0').dataset.finding")
    assert title(report) == report.page.locator(f"#f{number} .pick").text_content()
    text = report.page.locator("#drawer").inner_text()
    for part in ("wait", "idle after", "moved", "recoverable", "fix", "why"):
        assert part in text
    assert report.js(FOCUS) == "drawer"
    assert report.js("location.hash") == "#r0"
    report.page.locator("#drawer-timeline").click()
    report.settle()
    assert chosen(report)[1] == int(number)
    assert report.js(IN_VIEW)
    report.page.keyboard.press("Escape")
    assert not report.page.locator("#drawer").is_visible()
    report.page.keyboard.press("Escape")
    assert report.page.locator(".item.selected").count() == 0


def test_a_link_leads_to_what_is_chosen(show: Callable[..., Report]) -> None:
    """The address has it, and opens on it, in its tab."""
    report = show(scattered()).tab("Findings")
    report.page.locator("#f1 .pick").click()
    assert report.js("location.hash") == "#f1"
    report.page.reload()
    assert report.page.locator("#f1.selected").is_visible()


def test_a_click_on_a_sync_opens_its_detail_in_the_drawer(show: Callable[..., Report]) -> None:
    """Title and this sync's times; the arrows lead on."""
    report = show(two_findings()).all_lanes()
    report.page.mouse.move(*report.at("syncs", "(s.start[1] + s.end[1]) / 2"))
    assert "waits" in report.page.get_by_role("tooltip").inner_text()
    report.page.mouse.click(*report.at("syncs", "(s.start[1] + s.end[1]) / 2"))
    number = report.js("syncscan.data.syncs.finding[1]")
    assert title(report) == report.page.locator(f"#f{number} .pick").text_content()
    text = report.page.locator("#drawer").inner_text()
    assert "In step" in text
    assert "the host waits" in text
    report.page.get_by_role("button", name="Close the details").click()
    assert not report.page.locator("#drawer").is_visible()


def test_keys_walk_and_open(show: Callable[..., Report]) -> None:
    """Letters j and k or arrows walk through what is seen, Enter opens, n and p go on by a sync."""
    report = show(two_findings()).tab("Findings")
    keyboard = report.page.keyboard
    items = report.js("syncscan.list.shown.map((item) => item.id)")
    assert items[0] == "r0"
    assert {"f0", "f1"} <= set(items)
    keyboard.press("j")
    assert report.js(FOCUS) == items[0]
    keyboard.press("j")
    keyboard.press("ArrowDown")
    keyboard.press("k")
    assert report.js("syncscan.list.selected.id") == items[1]
    keyboard.press("Enter")
    assert report.js(FOCUS) == "drawer"
    keyboard.press("Escape")
    assert report.js(FOCUS) == items[1]
    report.all_lanes().page.locator("#lanes").focus()
    keyboard.press("n")
    sync = chosen(report)[0]
    keyboard.press("n")
    assert chosen(report)[0] == (sync + 1) % report.js("syncscan.data.syncs.start.length")


def test_the_help_tells_the_keys_and_can_switch_single_letters_off(show: Callable[..., Report]) -> None:
    """A dialog: ? opens it, Esc closes it; without single letters j does nothing."""
    report = show(two_findings())
    report.js("syncscan.list.mark(null)")
    report.page.locator("#lanes").focus()
    report.page.keyboard.press("?")
    assert report.page.get_by_role("dialog", name="Keys and gestures").is_visible()
    report.page.get_by_label("Enable single-key shortcuts").uncheck()
    report.page.get_by_role("button", name="Close the help").click()
    report.page.keyboard.press("j")
    assert report.js("syncscan.list.selected") is None


def test_a_row_of_the_picture_is_taken_out_by_click_and_by_key(show: Callable[..., Report]) -> None:
    """Those below it are drawn without it; a second click brings it back."""
    report = show(api.analyze(SAMPLES / "logged.pt.trace.json.gz"))
    report.js(
        """() => {
          const box = document.getElementById("picture"), row = box.querySelector(".sp-wide .sp-after");
          const next = row.cloneNode(true);
          next.dataset.change = "1";
          row.after(next);
          const after = { 1: [9000, 8000, 9500, "9.0 ms"], 2: [12000, 11000, 13000, "12 ms"] };
          box.dataset.after = JSON.stringify({ ...after, 3: [6000, 5000, 7000, "6.0 ms"] });
          syncscan.picture = new StepPicture(box);
        }"""
    )
    values = "[...document.querySelectorAll('.sp-wide .sp-value')].map((e) => e.textContent)"
    assert report.js(values) == ["9.0 ms", "6.0 ms"]
    rows = report.page.locator(".sp-wide .sp-after")
    rows.first.dispatch_event("click")
    assert report.js(values) == ["taken out", "12 ms"]
    assert rows.first.get_attribute("aria-pressed") == "false"
    rows.first.press("Enter")
    assert report.js(values) == ["9.0 ms", "6.0 ms"]


def test_the_next_command_is_copied(show: Callable[..., Report]) -> None:
    """The button says so for a moment."""
    report = show(two_findings())
    report.page.get_by_role("button", name="Copy the next command").click()
    assert report.page.locator("#copy-next").inner_text() == "Copied"


@pytest.mark.parametrize("name", ["logged.pt.trace", "pageable.pt.trace", "stalls/logging", "launches/trainer"])
def test_the_first_screen_is_seen_without_scrolling(show: Callable[..., Report], name: str) -> None:
    """On 1280 x 720 the card ends above 540 px, and the tabs are below it."""
    report = show(api.analyze(SAMPLES / f"{name}.json.gz"), width=1280, height=720)
    box = report.page.locator(".front").bounding_box()
    assert box["y"] + box["height"] <= 540
    assert report.page.get_by_role("tablist").bounding_box()["y"] < 600


def test_keys_zoom_and_move(show: Callable[..., Report]) -> None:
    """+ and - zoom, w and s smoothly, a, d and arrows move, 0 goes home."""
    report = show(two_findings()).all_lanes()
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
    report = show(api.analyze_trace(t.trace()), height=600).all_lanes()
    report.js("document.querySelector('#pane').scrollIntoView({ block: 'end' })")
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
    """The timeline is drawn when its tab is opened; nothing is wider than the page."""
    report = show(two_findings(), width=390, height=844, has_touch=True, is_mobile=True)
    assert report.js("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    assert report.page.locator("#lanes").count() == 1
    assert not report.page.locator("#lanes").is_visible()
    report.page.get_by_role("tab", name="Timeline").tap()
    report.js("syncscan.timeline.choose({})")
    report.page.locator("#lanes").scroll_into_view_if_needed()
    lanes = report.page.locator("#lanes").bounding_box()
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


def test_the_list_sorts_and_filters(show: Callable[..., Report]) -> None:
    """By another number than what is saved; by scope and by text."""
    report = show(two_findings()).tab("Findings")
    order = "syncscan.list.findings.map((f) => f.id)"
    before = report.js(order)
    waits = report.js("syncscan.list.findings.map((f) => Number(f.dataset.wait))")
    report.page.get_by_label("Sort by").select_option("wait")
    assert report.js("syncscan.list.findings.map((f) => Number(f.dataset.wait))") == sorted(waits, reverse=True)
    report.page.get_by_label("Sort by").select_option("")
    assert report.js(order) == before
    report.page.get_by_text("Kinds").click()
    report.page.locator("select[data-filter=scope]").select_option("log")
    assert report.page.locator("#findings > li.finding:visible").count() == 1
    assert report.page.locator("#filter-count").text_content() == "1 of 2"
    report.page.get_by_label("Find in the findings").fill("nothing like it")
    assert report.page.get_by_text("No finding matches").is_visible()


def test_many_findings_are_shown_in_parts(show: Callable[..., Report]) -> None:
    """The first ones, the rest on demand, or as keys reach them."""
    analysis = typical()
    many = tuple(replace(analysis.findings[0], id=f"nonzero-{k:08x}") for k in range(40))
    report = show(replace(analysis, findings=many, remedies=())).tab("Findings")
    assert report.page.locator("#findings > li.finding:visible").count() == 30
    report.page.get_by_role("button", name="Show 10 more").click()
    assert report.page.locator("#findings > li.finding:visible").count() == 40
    assert report.js(FOCUS) == "f30"


def test_a_finding_is_copied_as_markdown(show: Callable[..., Any]) -> None:
    """Title, place, facts; names stand in code."""
    report = show(typical())
    text = report.js("evidence(document.getElementById('f0'))")
    assert text.startswith("**`` nonzero waits to learn how many elements there are ``** (high)")
    assert "- chain: `` aten::index > aten::nonzero > cudaStreamSynchronize ``" in text
    assert "- fix: `` Use torch.where(mask, a, b), which keeps the shape. ``" in text
