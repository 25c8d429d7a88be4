"""One browser for all tests here, and reports opened in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.model.analysis import Analysis
from syncscan.report import html
from tests.browser.viewer import ARGUMENTS, Report, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, headless; in CI it has to be there."""
    if not os.environ.get("CI"):
        pytest.importorskip("playwright.sync_api")
    from playwright.sync_api import sync_playwright

    path = chromium()
    with sync_playwright() as p:
        started = p.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Report]]:
    """Opens the report of an analysis without a network, and holds it at the end to have done nothing it should not."""
    opened = []

    def open_(analysis: Analysis, width: int = 1400, height: int = 1000, **options: Any) -> Report:
        file = tmp_path / "report.html"
        file.write_text(html.render(analysis), encoding="utf-8")
        options = {"color_scheme": "light", **options}
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        context.set_default_timeout(120_000)
        opened.append((context, Report(context.new_page(), file)))
        return opened[-1][1]

    yield open_
    for context, report in opened:
        assert report.trouble == []
        context.close()
