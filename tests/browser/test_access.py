"""Whether anyone can read the report: axe-core finds nothing, in light and dark, wide and on a phone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from tests.browser.test_report import odd, two_findings
from tests.browser.viewer import Report
from tests.report.example import host_bound, typical

if os.environ.get("CI"):
    import axe_playwright_python.sync_playwright as axe
else:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = [pytest.mark.slow, pytest.mark.browser]

SIZES = {"wide": {"width": 1400, "height": 900}, "phone": {"width": 390, "height": 844, "has_touch": True}}


def violations(report: Report) -> list[tuple[str, str]]:
    """Rule and element of all that axe-core holds against the page as it stands, by all rules; contrast in dark too."""
    checks = axe.Axe()
    matches: list[dict[str, Any]] = checks.run(report.page).response["violations"]
    report.js("document.documentElement.style.colorScheme = 'dark'")
    matches += checks.run(report.page, options={"runOnly": ["color-contrast"]}).response["violations"]
    report.js("document.documentElement.style.colorScheme = ''")
    return [(v["id"], node["html"][:120]) for v in matches for node in v["nodes"]]


def everything() -> Analysis:
    """One of each: remedies, findings, habits, tables of the host with its tree, warnings, a timeline."""
    analysis, drawn = typical(), two_findings()
    report = replace(host_bound(), findings=drawn.findings, remedies=(*drawn.remedies, *analysis.remedies[1:2]))
    return replace(
        report, trace=drawn.trace, habits=analysis.habits, warnings=analysis.warnings, projector=drawn.projector
    )


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing(show: Callable[..., Report], size: str) -> None:
    """On the page as it opens, with a change's detail open, in each tab, with all lanes and with the help open."""
    report = show(everything(), **SIZES[size])
    assert violations(report) == []
    report.page.locator("#r0 .pick").click()
    report.settle()
    assert violations(report) == []
    report.page.keyboard.press("Escape")
    for tab in ("Findings", "Host time", "Kernels", "About this recording"):
        report.tab(tab)
        assert violations(report) == []
    report.all_lanes().page.locator("#in-view > summary").click()
    report.settle()
    assert violations(report) == []
    report.page.keyboard.press("?")
    assert violations(report) == []


@pytest.mark.parametrize("name", ["no findings", "empty"])
def test_axe_finds_nothing_where_there_is_little(show: Callable[..., Report], name: str) -> None:
    """A page without findings, and one without a timeline."""
    assert violations(show(odd(name))) == []


def test_the_tree_that_a_screen_reader_walks(show: Callable[..., Report]) -> None:
    """Headings in their order, tabs with their panels, what is chosen is current, by keys alone."""
    report = show(everything())
    headings = [h.inner_text() for h in report.page.locator("h1:visible, h2:visible").all()]
    assert headings[:2] == ["The host is the limit: one line takes 35% of the step.", "One step, without the profiler"]
    tabs = report.page.get_by_role("tab").all()
    panels = [report.page.locator(f"#{tab.get_attribute('aria-controls')}") for tab in tabs]
    assert [panel.get_attribute("role") for panel in panels] == ["tabpanel"] * len(tabs)
    assert [panel.is_visible() for panel in panels].count(True) == 1
    report.page.get_by_role("tab", selected=True).press("ArrowRight")
    assert [panel.is_visible() for panel in panels].count(True) == 1
    report.page.keyboard.press("j")
    current = report.page.locator("[aria-current=true]")
    assert (current.count(), report.js("document.activeElement.getAttribute('aria-current')")) == (1, "true")
    report.page.keyboard.press("Enter")
    drawer = report.page.get_by_role("complementary")
    assert drawer.get_attribute("aria-labelledby") == "drawer-title"
    visible = "[...document.querySelectorAll('button')].filter((e) => e.checkVisibility())"
    assert all(report.js(f"{visible}.map((e) => e.ariaLabel || e.textContent.trim())"))
    ids = report.js("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
