"""Each fact of a diff is in every format, and hostile names in it are only shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from syncscan import gate
from syncscan.gate import diff_report
from syncscan.gate.differences import Diff
from syncscan.model.analysis import Analysis
from syncscan.report import markup, page, step_picture, terminal
from syncscan.report.units import duration, within
from tests.each import each
from tests.gate.story import Sync, program
from tests.networks import launch_bound
from tests.recordings import analyzed
from tests.report.example import HOSTILE, hostile

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NONZERO = Sync("aten::nonzero", scope="mask", line=20, waits=300)
ITEM = Sync(line=10)


def example() -> Diff:
    """One sync is gone, one came in, one stays."""
    other = replace(ITEM, op="aten::unique_dim", line=30, scope="shapes")
    return gate.diff([program(ITEM, NONZERO)], [program(ITEM, other)])


def render_text(diff: Diff, width: int = 300) -> str:
    return terminal.drawn(diff_report.blocks(diff), width)


def render_markdown(diff: Diff) -> str:
    return markup.drawn(diff_report.blocks(diff))


def render_page(diff: Diff, before: Analysis, after: Analysis) -> str:
    return page.drawn(diff_report.blocks(diff, step_picture.measured(before, after)), "syncscan diff")


def test_the_story_counts_what_came_and_went() -> None:
    """The verdict has each kind once, and the step its margin."""
    text = render_text(example(), 1000)
    assert text.startswith("1 sync added, 1 sync removed; no others changed.")
    assert "not distinguishable from noise (±" in text
    assert "syncscan prove measures both alternately until the result is certain." in text
    assert "\nRemoving these syncs was projected to save" in text
    assert "1 sync is as before." in text


def test_nothing_differs_is_reported() -> None:
    """A recording is compared with itself."""
    analysis = program(ITEM)
    text = render_text(gate.diff([analysis], [analysis]))
    assert text.startswith("No sync differs.")
    assert "projected" not in text


def test_habits_that_came_and_went_are_one_line_in_every_format() -> None:
    """An optimizer that launched a kernel per parameter is compared with one that doesn't, in both directions."""
    loop, fused = (
        analyzed(SAMPLES / f"programs/recorded/tips.optimizer_{how}.pt.trace.json.gz") for how in ("loop", "fused")
    )
    difference, back = gate.diff([loop], [fused]), gate.diff([fused], [loop])
    for text in (
        render_text(difference),
        render_markdown(difference),
        render_page(difference, loop, fused),
    ):
        assert "Habits removed: optimizer" in text.replace("\\", "")
    assert "Habits added: optimizer-loop in optimizer." in render_text(back)
    assert json.loads(diff_report.render(difference))["habits"] == [
        {"change": "gone", "rule": "optimizer-loop", "scope": ["optimizer"]}
    ]
    assert gate.diff([loop], [loop, fused]).habits == ()


def test_text_and_markdown_tell_the_same() -> None:
    """Each place with its sign, its line and its numbers."""
    result = example()
    text = " ".join(render_text(result, width=80).split())
    markdown = render_markdown(result)
    for sentence in ("train.py:20", "train.py:30", "waited 300 µs per step", "1 sync is as before."):
        assert sentence in text
        assert sentence in markdown
    assert " + " in text
    assert "#### Removed" in markdown


def test_json_follows_its_schema() -> None:
    """Times in µs, each state's site with its findings as an analysis has them; None where a place isn't there."""
    document = json.loads(diff_report.render(example()))
    assert document["schema"] == "syncscan.diff/2"
    new, removed, same = document["changes"]
    assert [c["change"] for c in (new, removed, same)] == ["new", "gone", "same"]
    assert (new["before"], removed["after"]) == (None, None)
    assert removed["before"]["findings"][0]["source"]["line"] == 20
    assert removed["before"]["wait_us"] == pytest.approx(300, rel=0.02)
    assert document["promise"]["range_us"][0] <= document["promise"]["saving_us"]
    assert set(document["step"]) == {
        "before_us", "after_us", "saving_us", "margin_us", "distinguishable", "unprofiled", "device_us",
        "ahead_us", "why_not",
    }  # fmt: skip


@each("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_a_hostile_name_is_only_shown(text: str) -> None:
    """Control characters reach no terminal; JSON stays JSON; Markdown makes nothing of it."""
    difference = gate.diff([program(ITEM)], [hostile(text)])
    shown = render_text(difference)
    assert not set(shown) & set("\x1b\x07\x00\u202e\u2066")
    assert json.loads(diff_report.render(difference))["schema"] == "syncscan.diff/2"
    markdown = render_markdown(difference)
    markdown.encode()
    page = render_page(difference, program(ITEM), hostile(text))
    page.encode()
    assert not re.findall(r"<script|<img", page)
    outside = "".join(part for n, part in enumerate(markdown.split("`")) if n % 2 == 0)
    assert "<script" not in outside


def test_the_page_draws_a_step_of_each_on_one_ruler() -> None:
    """Host above device, before above after, in one picture."""
    before, after = program(ITEM, NONZERO, lasts=1000), program(ITEM, lasts=500)
    page = render_page(gate.diff([before], [after]), before, after)
    assert page.count('class="sp sp-wide"') == 1
    assert [label in page for label in ("host before", "device before", "host after", "device after")] == [True] * 4
    assert "before: built" in page
    assert "default-src 'none'; style-src 'sha256-" in page


def test_a_sync_s_gain_once_compiled_is_reported_beside_its_gain_now() -> None:
    """In words where it is far more, and in JSON with each place."""
    diff = gate.diff([program(ITEM)], [launch_bound(reads=10)])
    (change,) = [c for c in diff.changes if c.before is None]
    later, now = change.site.once_compiled_us, change.site.recoverable_us
    assert later is not None
    assert now is not None
    (limits,) = [f.recoverable_range_us for f in change.site.findings]
    assert f"; removing it would save {within(now, limits)}, and {duration(later)} once compiled" in render_text(diff)
    after = [c["after"] for c in json.loads(diff_report.render(diff))["changes"] if c["before"] is None]
    assert [site["once_compiled_us"] for site in after] == [pytest.approx(later)]
