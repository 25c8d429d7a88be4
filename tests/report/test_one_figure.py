"""A page states each figure once: the first screen, its picture, the findings and JSON agree on every recording."""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pytest

from syncscan.report.front import front_of
from syncscan.report.units import duration, within
from tests.each import each
from tests.recordings import RECORDINGS, analyzed, large, name, rendered

LEAST = 0.01
"""Savings below this part of a step are said to be `less than 1%`."""
_LABEL, _FIGURE = (
    re.compile(r'<th scope="col">([^<]*)</th>'),
    re.compile(r'<td><bdi class="(?:strong|info)">([^<]*)</bdi>'),
)
_CHANGE = re.compile(r'<li class="item change".*?<bdi class="strong">([^<]*)</bdi><div><button[^>]*><bdi>([^<]*)</bdi>')
_NUMBERS = re.compile(r'<div class="detail">(.*?</table>)', re.S)


class Page:
    """The figures of a recording's page, as its reader sees them, and its JSON."""

    def __init__(self, recording: Path) -> None:
        self.analysis = analyzed(recording)
        text = re.sub(r"<(script|style)\b.*?</\1>", "", rendered(recording, "html"), flags=re.S)
        self.text = html.unescape(re.sub(r"<[^>]*>", "", text))
        self.figures = _figures(text.partition('<div id="picture"')[2].partition("</section>")[0])
        self.changes = [tuple(html.unescape(part).strip() for part in each) for each in _CHANGE.findall(text)]
        self.values = re.findall(r'<text class="sp-value"[^>]*>([^<]*)</text>', text)
        self.findings = list(filter(None, map(_figures, _NUMBERS.findall(text))))
        self.json = json.loads(rendered(recording, "json"))
        self.step = self.json["step"]

    @cached_property
    def base_us(self) -> float:
        """The step that savings are taken from: without the profiler where that is known."""
        return float(self.step["unprofiled_us"] or self.step["observed_us"])

    def measurable(self, us: float) -> bool:
        """Return whether a saving has a number."""
        return us > 0 and us >= LEAST * self.base_us

    def saves(self, us: float, limits: Sequence[float] | None) -> str:
        """Return a saving in words."""
        return within(us, (limits[0], limits[1]) if limits else None) if self.measurable(us) else "less than 1%"


def _figures(table: str) -> dict[str, str]:
    return dict(zip(_LABEL.findall(table), map(html.unescape, _FIGURE.findall(table)), strict=True))


@functools.cache
def page_of(recording: Path) -> Page:
    """One page serves all comparisons of a recording."""
    return Page(recording)


@each("recording", RECORDINGS, name, large)
def test_the_first_screen_has_the_step_of_json(recording: Path) -> None:
    """Without the profiler, where that is known; the profiled time stands in the tab about the recording."""
    page = page_of(recording)
    assert bool(page.figures) == bool(front_of(page.analysis).step_us)
    if "step" in page.figures:
        assert page.figures["step"] == duration(page.base_us)
    if page.step["observed_us"]:
        assert f"step with the profiler{duration(page.step['observed_us'])}" in re.sub(r"\s*\n\s*", "", page.text)


@each("recording", RECORDINGS, name, large)
def test_changes_stand_there_as_they_were_decided(recording: Path) -> None:
    """Each with its gain and what the step becomes; the picture has the times that they lead to, in both widths."""
    page = page_of(recording)
    changes = front_of(page.analysis).changes
    assert [amount for amount, _ in page.changes] == [change.amount for change in changes]
    assert [becomes for _, becomes in page.changes if becomes] == [c.becomes for c in changes if c.becomes]
    after = [change.takes for change in changes if change.gain is not None]
    assert page.values in ([*after, *after], [])


@each("recording", RECORDINGS, name, large)
def test_the_last_number_is_what_the_changes_lead_to(recording: Path) -> None:
    """Or what the first one saves, where syncs are the limit."""
    page = page_of(recording)
    projected = [change for change in front_of(page.analysis).changes if change.gain is not None]
    if not projected or not page.figures:
        return
    first, last = projected[0], projected[-1]
    limits = first.before_us - first.after_high_us, first.before_us - first.after_low_us
    words = {
        "recoverable": within(first.before_us - first.after_us, limits),
        "after it": last.takes,
        "after all of them": last.takes,
    }
    label = list(page.figures)[-1]
    assert page.figures[label] == words[label]


@each("recording", RECORDINGS, name, large)
def test_a_first_change_saves_one_time(recording: Path) -> None:
    """In JSON, what it gains on top of nothing is what it gains alone."""
    page = page_of(recording)
    replayed = [r for r in page.json["remedies"] if r["basis"] == "replay"]
    if replayed:
        alone = replayed[0]["alone_us"]
        assert replayed[0]["after_us"] == pytest.approx(alone, abs=0.01) or alone < LEAST * page.base_us


@each("recording", RECORDINGS, name, large)
def test_a_finding_costs_one_time(recording: Path) -> None:
    """Its four numbers, and JSON."""
    page = page_of(recording)

    def words(us: float | None) -> str:
        return "–" if us is None else duration(us)

    for numbers, finding in zip(page.findings, page.json["findings"], strict=True):
        saves = finding["recoverable_us"]
        withheld = page.analysis.step.waits_withheld
        assert numbers == {
            "wait": "–" if withheld else words(finding["wait_us"]),
            "idle after": "–" if withheld else words(finding["bubble_us"]),
            "moved": words(finding["moved_us"]),
            "recoverable": "–" if saves is None else page.saves(saves, finding["recoverable_range_us"]),
        }


def test_the_recordings_have_what_is_compared() -> None:
    """Each comparison has recordings to be made on: or it would prove nothing."""
    names = set(map(name, RECORDINGS))
    assert len(names) > 100
    assert names >= {
        "pageable.pt.trace.json.gz",  # a list of three changes, the last of which gains more on top of the others
        "programs/recorded/tips.optimizer_loop.pt.trace.json.gz",  # two habits that share what they save
        "programs/recorded/inference.cold.pt.trace.json.gz",  # a sync that saves nothing on top of a habit
        "stalls/lock_busy.json.gz",  # a saving by samples
    }
