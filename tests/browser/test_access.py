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
    """On the page as it opens, with a finding chosen and its detail open, with filters and help open."""
    report = show(everything(), **SIZES[size])
    assert violations(report) == []
    report.page.locator("#f0 .pick").click()
    report.page.get_by_text("Kinds").click()
    report.page.locator("#f0 .more").click()
    report.settle()
    assert violations(report) == []
    report.page.locator("#in-view > summary").click()
    report.settle()
    assert violations(report) == []
    report.page.keyboard.press("?")
    assert violations(report) == []


@pytest.mark.parametrize("name", ["no findings", "empty"])
def test_axe_finds_nothing_where_there_is_little(show: Callable[..., Report], name: str) -> None:
    """A page without findings, and one without a timeline."""
    assert violations(show(odd(name))) == []


def test_the_tree_that_a_screen_reader_walks(show: Callable[..., Report]) -> None:
    """Landmarks and headings in their order, what is chosen is current and said in the live region, by keys alone."""
    report = show(everything())
    headings = [h.inner_text() for h in report.page.locator("h1:visible, h2:visible").all()]
    assert headings == [
        "The host is the limit.",
        "What to change, by individual savings",
        "Findings",
        "Other costs",
        "Timeline",
        "Host time in view",
        "Top kernels by device time",
        "Where the host's time goes",
        "What limits this report",
        "How to read it",
    ]
    regions = ["Timeline", "Findings", "Other costs", "Where the host's time goes"]
    assert [report.page.get_by_role("region", name=name, exact=True).count() for name in regions] == [1] * 4
    report.page.keyboard.press("j")
    current = report.page.locator("[aria-current=true]")
    assert (current.count(), report.js("document.activeElement.getAttribute('aria-current')")) == (1, "true")
    live = report.page.locator("[role=status][aria-live=polite]").first
    assert "host waits" in live.inner_text()
    assert report.page.get_by_role("application", name="Timeline of host threads and device streams").count() == 1
    report.page.keyboard.press("Enter")
    drawer = report.page.get_by_role("complementary")
    assert drawer.get_attribute("aria-labelledby") == "drawer-title"
    visible = "[...document.querySelectorAll('button')].filter((e) => e.checkVisibility())"
    assert all(report.js(f"{visible}.map((e) => e.ariaLabel || e.textContent.trim())"))
    ids = report.js("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
