"""The step before and after in a browser: on the first screen, and a checkbox redraws it at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.viewer import Report
from tests.report.test_before_after import two_waits

pytestmark = [pytest.mark.slow, pytest.mark.browser]
FIRST = 500
"""Pixels from the top within which it stands."""


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_it_stands_in_the_first_500_pixels(show: Callable[..., Report], width: int, height: int) -> None:
    """All four lanes, at a laptop's size and on a phone, without anything sticking out to the right."""
    report = show(two_waits(), width=width, height=height)
    box = report.page.locator(".ba-plot").bounding_box()
    assert box["y"] + box["height"] <= FIRST
    assert report.js("document.documentElement.scrollWidth <= innerWidth")


def test_a_checkbox_redraws_it_at_once(show: Callable[..., Report]) -> None:
    """Exactly one scene is seen: that of the boxes that are checked; words and text alternative go along."""
    report = show(two_waits())
    seen = "[...document.querySelectorAll('.scene:not([hidden])')].map((scene) => Number(scene.dataset.set))"
    assert report.js(seen) == [3]
    says = report.page.locator("#ba-says").inner_text()
    report.page.locator("[data-fix='1']").uncheck()
    assert report.js(seen) == [1]
    assert report.page.locator("#ba-says").inner_text() != says
    assert report.page.locator("#ba-says").inner_text() in report.page.locator(".ba-plot").get_attribute("aria-label")
    report.page.locator("[data-fix='0']").uncheck()
    assert report.js(seen) == [0]
    assert "as it is" in report.page.locator("#ba-says").inner_text()


def test_a_long_step_takes_the_fixes_before_along(show: Callable[..., Report]) -> None:
    """Where only one fix after the other was replayed, a fix brings those before it, and leaves with those after it."""
    report = show(two_waits())
    report.js(
        "(() => { syncscan.strip.scenes = syncscan.strip.scenes.filter((scene) => scene.dataset.set !== '2'); })()"
    )
    report.page.locator("[data-fix='0']").uncheck()
    assert report.js("syncscan.strip.mask") == 0
    report.page.locator("[data-fix='1']").check()
    assert report.js("syncscan.strip.mask") == 3
