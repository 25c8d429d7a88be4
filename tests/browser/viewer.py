"""A browser for the tests of viewers: Chromium, watched for errors and for requests that leave the machine."""

from __future__ import annotations

import os
import shutil
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """Path of Chromium; skips the test where there is none, but in CI fails it."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs Chromium")
    return found


class Watched:
    """A page, what its scripts complained about, and what it asked of other machines."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("request", lambda r: self._requested(r.url))

    def _requested(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.elsewhere.append(url)


@contextmanager
def browsing(url: str) -> Iterator[Watched]:
    """Open a URL in a browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        try:
            watched = Watched(browser.new_page(viewport={"width": 1400, "height": 800}))
            watched.page.goto(url)
            yield watched
        finally:
            browser.close()
