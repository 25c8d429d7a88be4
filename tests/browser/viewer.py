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
    expected = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if expected is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs Chromium")
    return expected


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
def browsing(browser: Any, url: str) -> Iterator[Watched]:
    """Open a URL in a window that knows of no other."""
    context = browser.new_context(viewport={"width": 1400, "height": 800})
    try:
        watched = Watched(context.new_page())
        watched.page.goto(url)
        yield watched
    finally:
        context.close()


PIXEL = """([x, y]) => {
  const c = document.getElementById('canvas'), r = c.width / c.clientWidth;
  return [...c.getContext('2d').getImageData(x * r, y * r, 1, 1).data].slice(0, 3);
}"""
BAND = """(kind) => {
  const t = syncscan.timeline, b = t.layout.bands.find((b) => b.kind === kind);
  return b && { y: t.topOf(b) + b.h - 5, left: t.left };
}"""


class Report:
    """A report in the browser, and what it did that it should not."""

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.trouble: list[str] = []
        page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        page.on("console", lambda m: self._said(m.text))
        page.on("dialog", lambda d: (self.trouble.append(f"dialog: {d.message}"), d.dismiss()))
        page.on("request", lambda r: self.trouble.append(f"request: {r.url}") if r.url != file.as_uri() else None)
        page.goto(file.as_uri())

    def _said(self, text: str) -> None:
        if "willReadFrequently" not in text:  # that is about `pixel` below
            self.trouble.append(f"console: {text}")

    def js(self, expression: str, argument: Any = None) -> Any:
        return self.page.evaluate(expression, argument)

    def pixel(self, kind: str, t: str) -> tuple[int, ...]:
        """The color of a band below its text at a time, which is an expression of `s`, the syncs."""
        band = self.js(BAND, kind)
        x = self.js(f"(() => {{ const v = syncscan.timeline.view, s = syncscan.data.syncs; return v.x({t}); }})()")
        return tuple(self.js(PIXEL, [band["left"] + x, band["y"]]))

    def at(self, kind: str, t: str) -> tuple[float, float]:
        """Where that is on the screen, scrolled into view."""
        self.page.locator("#canvas").scroll_into_view_if_needed()
        box, band = self.page.locator("#canvas").bounding_box(), self.js(BAND, kind)
        x = self.js(f"(() => {{ const v = syncscan.timeline.view, s = syncscan.data.syncs; return v.x({t}); }})()")
        return box["x"] + band["left"] + x, box["y"] + band["y"]

    @property
    def in_view(self) -> float:
        """How much time is in view, ns."""
        return float(self.js("syncscan.timeline.view.to - syncscan.timeline.view.from"))

    def all_lanes(self) -> Report:
        """Open the timeline with all of its lanes, nothing selected."""
        self.js("syncscan.tabs.open('timeline'), syncscan.timeline.show(true), syncscan.timeline.choose({})")
        return self

    def tab(self, name: str) -> Report:
        """Open a tab by its title."""
        self.page.get_by_role("tab", name=name).click()
        return self

    def settle(self) -> None:
        """Wait until the view has stopped moving."""
        self.page.wait_for_timeout(400)
