"""Whether anyone can read a job's page: axe-core finds nothing, and nothing sticks out, wide and on a phone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from syncscan.fleet import report as fleet_report
from syncscan.report import page as page_writer
from tests.fleet.example import job

if os.environ.get("CI"):
    import axe_playwright_python.sync_playwright as axe
else:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_axe_finds_nothing_and_nothing_sticks_out(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    """With 20 ranks, the page sends no request and logs no error."""
    (tmp_path / "job.html").write_text(
        page_writer.drawn(fleet_report.blocks(job(20, 2, late=7)), "syncscan fleet"), encoding="utf-8"
    )
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, bypass_csp=True
    )
    page, trouble = context.new_page(), []
    page.on("console", lambda message: trouble.append(message.text))
    page.goto((tmp_path / "job.html").as_uri())
    assert axe.Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert trouble == []
    context.close()
