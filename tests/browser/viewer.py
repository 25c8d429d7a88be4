"""A browser for the tests of viewers: Chromium, watched for errors and for requests that leave the machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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


@contextmanager
def opened(trace: Path, viewer: str) -> Iterator[str]:
    """The address that `syncscan open` shows a trace at; Ctrl-C must end it cleanly, its temporary files gone."""
    command = [sys.executable, "-m", "syncscan", "open", str(trace), "--in", viewer, "--offline", "--no-browser"]
    folder = trace.parent / "temporary"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
            os.killpg(server.pid, signal.SIGINT)
            assert server.wait(20) == 0
            assert not list(folder.glob("syncscan-*"))
        finally:
            server.kill()


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
