"""Draw the pictures of the docs from the repository's recordings.

`python -m docs.pictures` writes them to docs/images; a test compares the SVG files with what is drawn anew. With
`--screenshots` it also takes those of the report, which needs Chromium, playwright and Pillow.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs import scatter
from syncscan import api, report
from syncscan.fleet import analyze_fleet
from syncscan.fleet import report as fleet_report
from syncscan.report import page as page_writer

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
STEPS = {
    "step-logged.svg": "logged.pt.trace.json.gz",
    "step-pair.svg": "pair/before.pt.trace.json.gz",
    "step-masked-loss.svg": "maskedloss.v0.pt.trace.json.gz",
    "step-collector.svg": "stalls/gc.json.gz",
    "step-launches.svg": "launches/vision.json.gz",
}
"""Picture of a step → recording below sample_traces."""
SCATTER = "how-well.svg"
"""Picture of all that was projected beside what was measured."""
JOB, JOB_SHOT = "jobs/ddp.one_rank_item", "fleet.png"
"""Folder of a job's traces below sample_traces, and the screenshot of its page."""
SHOTS = {
    "report.png": ("light", 720, ""),
    "report-finding-dark.png": ("dark", 720, "document.querySelector('#r0 .pick').click()"),
    JOB_SHOT: ("light", 580, ""),
}
"""Screenshot of the report of `logged`, or of a job → its theme, its height, and what is done in the page before it."""
WIDTH, COLORS = 1280, 256


def steps() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each SVG of a step."""
    for name, trace in STEPS.items():
        yield name, report.render(api.analyze(ROOT / "sample_traces" / trace), "svg")


def drawings() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each SVG."""
    yield from steps()
    yield SCATTER, scatter.svg(scatter.tables())


def screenshots() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the PNG of each screenshot."""
    from playwright.sync_api import sync_playwright

    report_page = api.analyze(ROOT / "sample_traces" / STEPS["step-logged.svg"]).to_html()
    job_page = page_writer.drawn(fleet_report.blocks(analyze_fleet(f"sample_traces/{JOB}")), "syncscan fleet")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        page = Path(folder) / "page.html"
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, (theme, height, before) in SHOTS.items():
            page.write_text(job_page if name == JOB_SHOT else report_page, encoding="utf-8")
            shown = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=theme)
            shown.goto(page.as_uri())
            shown.evaluate(before or "0")
            shown.wait_for_timeout(800)
            yield name, _reduced(shown.screenshot())


def _reduced(png: bytes) -> Any:
    """Return a PNG with a palette, which takes a third of the space."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(
        out, "png", optimize=True
    )
    return out.getvalue()


if __name__ == "__main__":
    for written, text in drawings():
        (IMAGES / written).write_text(text, encoding="utf-8")
    if "--screenshots" in sys.argv[1:]:
        for written, png in screenshots():
            (IMAGES / written).write_bytes(png)
