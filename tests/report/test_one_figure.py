"""A page states each figure once: tiles, bars, the waterfall, the list, sentences and JSON agree on every recording."""

from __future__ import annotations

import functools
import html
import json
import math
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

from syncscan.report.units import duration, range_of, within
from tests.each import each
from tests.recordings import RECORDINGS, analyzed, name, rendered

LEAST = 0.01
"""Savings below this part of a step are said to be `less than 1%`."""
HUNDREDTH = 0.011
"""Largest shift of a bar's end by rounding to hundredths of a percent of the width, in percent."""

_TILE = re.compile(r"<dt>([^<]*)</dt><dd>([^<]*)(?:<small>([^<]*)</small>)?</dd>")
_ROW = re.compile(r'<div class="bar-row">(.*?)</div>', re.S)
_RECT = re.compile(
    r'<rect class="([\w-]+)" x="([\d.]+)%" y="\d+" width="([\d.]+)%" height="\d+"><title>([^<]*)</title>'
)
_WHISKER = re.compile(r'class="whisker"><line x1="([\d.]+)%" x2="([\d.]+)%"')
_CHOICE = re.compile(r'data-fix="\d+"[^>]*> <bdi>([^<]*)</bdi> <span class="projected-text">([^<]*)</span>')
_ENTRY = re.compile(r'<li class="remedy item".*?<strong>([^<]*)</strong>((?:<small>[^<]*</small>)*)', re.S)
_NUMBERS = re.compile(r'<dl class="numbers">(.*?)</dl>', re.S)
_NUMBER = re.compile(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>")
_DOUBT = re.compile(r"<small>([^<]*)</small>")
_LINE = re.compile(
    r'<tr class="flagged[^"]*"><td class="num">([^<]*)</td><td class="num">([^<]*)</td>'
    r'<td class="num projected-text">([^<]*)</td><td class="num"><a href="#f(\d+)">'
)
SAMPLED = " (alone, by samples)"


class Part(NamedTuple):
    """A part of a bar: x and width in percent, and its words."""

    look: str
    x: float
    width: float
    words: str


class Bar(NamedTuple):
    """A bar with its label, its value, the sentence for who doesn't see it, and the range of its end in percent."""

    label: str
    value: str
    spoken: str
    parts: tuple[Part, ...]
    range: tuple[float, float] | None


class Page:
    """The figures of a recording's page, as its reader sees them, and its JSON."""

    def __init__(self, recording: Path) -> None:
        self.analysis = analyzed(recording)
        text = re.sub(r"<(script|style)\b.*?</\1>", "", rendered(recording, "html"), flags=re.S)
        bars, _, falls = _within(text, '<figure class="bars">', "</figure>").partition('<div class="falls"')
        self.bars = {bar.label: bar for bar in map(_bar, _ROW.findall(bars))}
        self.falls = [_bar(row) for row in _ROW.findall(falls)]
        self.tiles = {
            label: (html.unescape(value), html.unescape(note))
            for label, value, note in _TILE.findall(_within(text, '<dl class="tiles">', "</dl>"))
        }
        self.choices = [(html.unescape(title), html.unescape(saves)) for title, saves in _CHOICE.findall(text)]
        self.changes = [(html.unescape(saves), _DOUBT.findall(doubts)) for saves, doubts in _ENTRY.findall(text)]
        self.says = html.unescape(_within(text, '<output id="ba-says" class="projected-text">', "</output>"))
        self.findings = [dict(_NUMBER.findall(numbers)) for numbers in _NUMBERS.findall(text)]
        self.lines = _LINE.findall(text)
        self.json = json.loads(rendered(recording, "json"))
        self.step = self.json["step"]

    @cached_property
    def base_us(self) -> float:
        """The step that savings are taken from: without the profiler where that is known."""
        return float(self.step["unprofiled_us"] or self.step["observed_us"])

    @property
    def widest_us(self) -> float:
        """The time that is as wide as a bar can be."""
        return max(self.step["observed_us"], self.step["unprofiled_us"] or 0.0, self.step["host_us"])

    @property
    def steps(self) -> list[Bar]:
        """The bars of the waterfall that stand on those above them: neither the limit nor what only samples show."""
        return [b for b in self.falls if not b.label.startswith("limit: ") and not b.label.endswith(SAMPLED)]

    def measurable(self, us: float) -> bool:
        """Return whether a saving has a number."""
        return us > 0 and us >= LEAST * self.base_us

    def saves(self, us: float, limits: Sequence[float] | None) -> str:
        """Return a saving in words."""
        return within(us, (limits[0], limits[1]) if limits else None) if self.measurable(us) else "less than 1%"

    def between(self, low: float, high: float) -> str:
        """Return the range of a saving in words."""
        if not (self.measurable(low) and self.measurable(high)):
            return f"{'up to ' if self.measurable(high) else ''}{self.saves(high, (low, high))}"
        return range_of((low, high))


def _within(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]


def _bar(row: str) -> Bar:
    spoken, whisker = re.search(r'aria-label="([^"]*)"', row), _WHISKER.search(row)
    label = re.search(r'<span class="bar-label">(?:<bdi>)?([^<]*)<', row)
    value = re.search(r'<span class="bar-value[^"]*">([^<]*)</span>', row)
    assert label
    assert value
    assert spoken
    parts = tuple(Part(look, float(x), float(w), html.unescape(t)) for look, x, w, t in _RECT.findall(row))
    ends = (float(whisker[1]), float(whisker[2])) if whisker else None
    return Bar(*(html.unescape(m[1]) for m in (label, value, spoken)), parts, ends)


@functools.cache
def page_of(recording: Path) -> Page:
    """One page serves all comparisons of a recording."""
    return Page(recording)


@each("recording", RECORDINGS, name)
def test_a_step_takes_one_time(recording: Path) -> None:
    """Tiles, the bars' ends, their values, and JSON: on the device, on the host, and without the profiler."""
    page = page_of(recording)
    step = page.step
    if not step["observed_us"]:
        assert page.tiles == {}
        return
    timed = {"step": step["observed_us"], "step, unprofiled": step["unprofiled_us"]}
    assert {label: page.tiles[label][0] for label in timed if label in page.tiles} == {
        label: duration(us) for label, us in timed.items() if us is not None
    }
    assert page.tiles["step"][1] == f"host {duration(step['host_us'])}"
    drawn = {"device": step["observed_us"], "host": step["host_us"], "no profiler": step["unprofiled_us"]}
    for label in drawn.keys() & page.bars.keys():
        bar = page.bars[label]
        assert bar.value == duration(drawn[label])
        end = bar.parts[-1].x + bar.parts[-1].width
        assert end == pytest.approx(100 * drawn[label] / page.widest_us, abs=HUNDREDTH * len(bar.parts))


PARTS = {
    "host waits": ("host", "host waits in syncs", "wait_us"),
    "device idle after syncs": ("device", "idle after syncs", "bubble_us"),
    "waits for input": ("host", "host waits for input", "input_us"),
    "waits for ranks or network": ("device", "waits for other ranks or the network", "communication_us"),
}
"""Tile → the bar and the words of its part, and its key in JSON."""


@each("recording", RECORDINGS, name)
def test_a_wait_takes_one_time(recording: Path) -> None:
    """Its tile, its part of a bar, and JSON; where waits are withheld, no tile states one and the host isn't drawn."""
    page = page_of(recording)
    withheld = page.analysis.step.waits_withheld
    for label in PARTS.keys() & page.tiles.keys():
        name, words, key = PARTS[label]
        value, us = page.tiles[label][0], page.step[key]
        if withheld and key in ("wait_us", "bubble_us"):
            assert value == "–"
            continue
        assert value == duration(us)
        if name in page.bars:
            stated = [part.words for part in page.bars[name].parts if part.words.startswith(f"{words}: ")]
            assert stated == ([f"{words}: {value}"] if us else [])
    assert withheld == ("host" not in page.bars) or not page.step["host_us"] or not page.bars


@each("recording", RECORDINGS, name)
def test_the_device_works_as_long_everywhere(recording: Path) -> None:
    """Its tile's note, its part of the bar, the waterfall's limit, and JSON."""
    page = page_of(recording)
    if "device busy" not in page.tiles:
        return
    busy = duration(page.step["device_busy_us"])
    assert page.tiles["device busy"][1].startswith(f"{busy} per step")
    works = [part.words for part in page.bars["device"].parts if part.look == "work"]
    assert works == ([f"device busy: {busy}"] if page.step["device_busy_us"] else [])
    limits = [fall.value for fall in page.falls if fall.label == "limit: the device's work"]
    assert limits in ([busy], [])


@each("recording", RECORDINGS, name)
def test_all_syncs_together_save_one_time(recording: Path) -> None:
    """The tile, the sentences at the top, the bar without syncs, and JSON; the first change where it is that one."""
    page = page_of(recording)
    us, limits = page.step["recoverable_us"], page.step["recoverable_range_us"]
    stated = re.search(r"removing (?:it|them) saves ([\d.]+ \S+|less than 1%)", page.step["summary"])
    assert stated is None or stated[1] == page.saves(us, limits)
    shorter = re.search(r"without syncs, the step would be (\d+)% shorter", page.step["reason"])
    assert shorter is None or int(shorter[1]) == round(100 * us / page.base_us)
    if "recoverable" in page.tiles:
        doubt = f"{page.between(*limits)}, " if page.measurable(limits[1]) else ""
        assert page.tiles["recoverable"] == (page.saves(us, limits), f"{doubt}projected")
    if "without syncs" in page.bars:
        low, high = (max(0.0, page.base_us - end) for end in reversed(limits))
        assert page.bars["without syncs"].value == within(page.base_us - us, (low, high))
    for label in page.tiles.keys() & {"recoverable by the first change", "recoverable, with a compile"}:
        first = next(r for r in page.json["remedies"] if r["basis"] != "upper bound")
        assert page.tiles[label][0] == page.saves(first["alone_us"], first["range_us"])
        assert page.tiles[label][1].startswith(page.between(*first["range_us"]))


@each("recording", RECORDINGS, name)
def test_a_change_saves_one_time(recording: Path) -> None:
    """In the list, with its range, beside the picture's checkbox, and in JSON."""
    page = page_of(recording)
    remedies = page.json["remedies"]
    if not remedies:
        return
    assert len(page.changes) == len(remedies)
    for (saves, doubts), remedy in zip(page.changes, remedies, strict=True):
        bound = remedy["basis"] == "upper bound"
        figure = page.saves(remedy["alone_us"], None if bound else remedy["range_us"])
        assert saves.partition(" (")[0] == (f"at most {figure}" if bound and figure[0].isdigit() else figure)
        assert doubts[0] == ("not projected" if bound else page.between(*remedy["range_us"]))
    for title, saves in page.choices:
        gains = [r for r in remedies if r["basis"] == "replay" and title.startswith(r["what"])]
        assert not gains or saves.partition(" (")[0] in [page.saves(r["alone_us"], r["range_us"]) for r in gains]


@each("recording", RECORDINGS, name)
def test_a_change_on_top_of_those_above_saves_one_time(recording: Path) -> None:
    """In JSON and in the waterfall, whose bars are in the order of the list; the first saves what it saves alone."""
    page = page_of(recording)
    replayed = [r for r in page.json["remedies"] if r["basis"] == "replay"]
    least = LEAST * page.base_us
    if replayed:
        assert (
            replayed[0]["after_us"] == pytest.approx(replayed[0]["alone_us"], abs=0.01)
            or replayed[0]["alone_us"] < least
        )
    if any(r["launches"] for r in replayed):
        return  # compiling isn't drawn, and what stands below it in the list is on top of it there
    for fall, remedy in zip(page.steps, replayed, strict=False):
        if not fall.label.startswith(remedy["what"]):
            break  # what the list doesn't have, or its last entries together
        words = fall.parts[1].words.removeprefix("saved: ")
        saved = microseconds(words)
        assert saved == pytest.approx(remedy["after_us"], abs=0.003 * page.base_us + rounding(words)) or (
            remedy["after_us"] == 0 and saved < least
        )


def microseconds(text: str) -> float:
    """Return a time in words as a number."""
    value, unit = text.split()
    return float(value) * {"µs": 1.0, "ms": 1e3, "s": 1e6}[unit]


def rounding(text: str) -> float:
    """Return by how much a time in words may be off, µs: half of its last digit, of at least two."""
    value, _ = text.split()
    written = value.replace(".", "") if "." in value else value.rstrip("0")
    digits = max(2, len(written.lstrip("0")))
    return 0.5 * 10 ** (1 + math.floor(math.log10(max(1e-9, microseconds(text)))) - digits)


@each("recording", RECORDINGS, name)
def test_a_waterfall_leads_from_the_step_to_what_is_left(recording: Path) -> None:
    """Each bar begins where the one above ends, to the scale of the other bars; the picture's sentence has the last."""
    page = page_of(recording)
    base = 100 * page.base_us / page.widest_us
    above = base
    for fall in page.falls:
        if fall.label.startswith("limit: "):
            (work,) = fall.parts
            assert work.width == pytest.approx(100 * microseconds(fall.value) / page.widest_us, abs=0.3)
            continue
        stays, saved = fall.parts
        assert stays.words == f"after {fall.label}: {fall.value}"
        assert fall.spoken.startswith(f"After {fall.label}: {fall.value}, from ")
        assert saved.x == stays.width
        assert stays.width + saved.width == pytest.approx(
            base if fall.label.endswith(SAMPLED) else above, abs=HUNDREDTH
        )
        assert fall.range is not None
        assert fall.range[0] - HUNDREDTH <= stays.width <= fall.range[1] + HUNDREDTH
        assert fall.range[1] <= base + HUNDREDTH
        above = stays.width
    if page.steps:
        assert page.says.startswith(f"{duration(page.base_us)} → {page.steps[-1].value}")


@each("recording", RECORDINGS, name)
def test_a_finding_costs_one_time(recording: Path) -> None:
    """Its four numbers, the line of its source where it is alone there, and JSON."""
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
    for wait, idle, saves, number in page.lines:
        if ", the largest of " not in saves:
            numbers = page.findings[int(number)]
            assert (wait, idle, saves) == (numbers["wait"], numbers["idle after"], numbers["recoverable"])


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
