"""All pages of recordings: axe-core finds nothing, nothing sticks out, none is big, each as wide and on a phone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from syncscan import api, gate
from syncscan.fleet import analyze_fleet
from syncscan.fleet import report as fleet_report
from syncscan.gate import diff_report
from syncscan.model.analysis import Analysis
from syncscan.proof import report as proof_report
from syncscan.report import html, step_picture, whatif_report
from syncscan.report import page as page_writer
from tests.proof.test_report import PROOF

if os.environ.get("CI"):
    import axe_playwright_python.sync_playwright as axe
else:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
SIZES = {"wide": (1280, 720, "dark"), "phone": (390, 844, "light")}
MOST = 2_000_000
"""Bytes of a page that can be mailed."""


@cache
def analyzed(name: str) -> Analysis:
    """One reading serves all pages of a recording."""
    return api.analyze(ROOT / name)


def pair() -> tuple[Analysis, Analysis]:
    """Return the recordings before and after a fix."""
    return analyzed("sample_traces/pair/before.pt.trace.json.gz"), analyzed("sample_traces/pair/after.pt.trace.json.gz")


def proof() -> str:
    """Return a proof's page with all that it can have."""
    before, _ = pair()
    picture = step_picture.projected(before, before.whatif("all"))
    return page_writer.drawn(proof_report.blocks(PROOF, picture), "syncscan prove")


def diff() -> str:
    """Return a diff's page."""
    difference = gate.diff(*([analysis] for analysis in pair()))
    picture = step_picture.measured(*pair())
    return page_writer.drawn(diff_report.blocks(difference, picture), "syncscan diff")


def job() -> str:
    """Return a job's page."""
    fleet = analyze_fleet([str(SAMPLES / "jobs" / "ddp.one_rank_item")], jobs=1)
    return page_writer.drawn(fleet_report.blocks(fleet), "syncscan fleet")


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: html.render(pair()[0]),
    "report with states": lambda: html.render(analyzed("sample_traces/logged.pt.trace.json.gz")),
    "report of a detector": lambda: html.render(analyzed("benchmarks/detector.stacks.pt.trace.json.gz")),
    "report of a held lock": lambda: html.render(analyzed("sample_traces/stalls/lock_busy.json.gz")),
    "report of collections": lambda: html.render(analyzed("sample_traces/stalls/gc.json.gz")),
    "whatif": lambda: page_writer.drawn(whatif_report.blocks(pair()[0], pair()[0].whatif("all")), "x"),
    "diff": diff,
    "proof": proof,
    "job": job,
}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page to a file."""
    file = tmp_path_factory.mktemp("pages") / "page.html"
    file.write_text(PAGES[request.param](), encoding="utf-8")
    return file


@pytest.mark.parametrize("size", SIZES)
def test_a_page_can_be_read_by_anyone(browser: Any, page: Path, size: str) -> None:
    """As it opens, without a network: no request, no error."""
    width, height, scheme = SIZES[size]
    assert page.stat().st_size < MOST
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, bypass_csp=True
    )
    shown, trouble = context.new_page(), []
    shown.on("console", lambda message: trouble.append(message.text))
    shown.on("pageerror", lambda error: trouble.append(str(error)))
    shown.goto(page.as_uri())
    shown.wait_for_timeout(300)
    violations = axe.Axe().run(shown).response["violations"]
    assert [(v["id"], node["html"][:160]) for v in violations for node in v["nodes"]] == []
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert trouble == []
    context.close()


STATIC = ("whatif", "diff", "proof", "job")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", STATIC)
def test_a_page_without_scripts_switches_its_theme(browser: Any, tmp_path: Path, name: str, scheme: str) -> None:
    """A click takes the other theme's ground, a second one the viewer's; with a keyboard, the space bar."""
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme, offline=True)
    shown = context.new_page()
    shown.goto(file.as_uri())
    light, dark = "rgb(246, 247, 248)", "rgb(20, 23, 27)"
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = [shown.evaluate(ground)]
    shown.locator(".theme").click()
    grounds.append(shown.evaluate(ground))
    shown.locator("#theme").press("Space")
    grounds.append(shown.evaluate(ground))
    context.close()
    assert grounds == ([light, dark, light] if scheme == "light" else [dark, light, dark])
