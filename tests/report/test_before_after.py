"""One step before and after: every set of fixes is replayed, and page, file, picture and terminal show the same."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from syncscan import api, report
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.report import html, step_lanes, svg
from syncscan.report.before_after import MAX_FIXES, BeforeAfter, before_after
from syncscan.report.story import story_of
from tests.builder import TraceBuilder
from tests.networks import launch_bound
from tests.report.example import HOSTILE, analysis, finding


def two_waits() -> Analysis:
    """Three steps with a nonzero that leaves the device idle, and an item that waits for long work."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=4000):
        with t.scope("select", start + 10, start + 1500):
            t.launch("gemm", at=start + 20, lasts=600)
            t.sync("aten::nonzero", at=start + 100)
        with t.scope("log", start + 2000, start + 3900):
            t.launch("head", at=start + 2020, lasts=1000)
            t.sync("aten::item > aten::_local_scalar_dense", at=start + 2100)
            t.launch("tail", at=start + 3500, lasts=50)
    return api.analyze_trace(t.trace())


def busy() -> Analysis:
    """Three steps whose device works all along: without its first sync the wait moves to the second."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=4000):
        t.launch("gemm", at=start + 20, lasts=1800)
        with t.scope("early", start + 40, start + 1900):
            t.sync("aten::nonzero", at=start + 50)
        t.launch("gemm", at=start + 1910, lasts=1900)
        with t.scope("late", start + 1930, start + 3990):
            t.sync("aten::item > aten::_local_scalar_dense", at=start + 1940)
    return api.analyze_trace(t.trace())


def drawn(of: Analysis) -> BeforeAfter:
    step = before_after(of, story_of(of))
    assert step is not None
    return step


def test_each_set_of_fixes_is_replayed() -> None:
    """Two fixes make four scenes; the one shown first has both, and none takes longer than the step as it is."""
    step = drawn(two_waits())
    assert [scene.fixes for scene in step.scenes] == [(), (0,), (1,), (0, 1)]
    assert step.shown.fixes == (0, 1)
    assert all(scene.us <= step.base_us + 1e-6 for scene in step.scenes)
    assert all(scene.range_us[0] <= scene.us <= scene.range_us[1] for scene in step.scenes[1:])


@pytest.mark.parametrize("of", [two_waits, busy])
def test_another_fix_makes_no_step_longer(of: Callable[[], Analysis]) -> None:
    """Neither longer than without that fix, nor does a range reach beyond the step as it is."""
    step = drawn(of())
    for scene in step.scenes[1:]:
        assert scene.range_us[1] <= step.base_us + 1e-6
        for fix in scene.fixes:
            fewer = step.scene(*(other for other in scene.fixes if other != fix))
            assert fewer is not None
            assert scene.us <= fewer.us + 1e-6


def test_a_fix_saves_what_the_list_of_changes_says() -> None:
    """Its scene ends where the list's saving leads, with the list's range."""
    of = two_waits()
    step, base = drawn(of), of.step.unprofiled_us or of.step.observed_us
    for number, remedy in enumerate(of.remedies[: len(step.fixes)]):
        scene = step.scene(number)
        assert scene is not None
        assert scene.us == pytest.approx(base - remedy.alone_us)
        assert scene.range_us == pytest.approx((base - remedy.range_us[1], base - remedy.range_us[0]))


def test_waits_and_idle_times_lie_where_the_trace_has_them() -> None:
    """In µs of the step: the nonzero's call begins at 102, the device is idle from its end to its next work."""
    lanes = drawn(two_waits()).recorded
    waits = [(p.begin / 1e3, p.end / 1e3) for p in lanes.host if p.look == "sync"]
    assert [round(begin) for begin, _ in waits][:1] == [102]
    assert len(waits) == 2
    (first, *_) = lanes.idle
    assert first.begin >= waits[0][1] * 1e3 - 20_000
    assert sum(s.end - s.begin for s in lanes.device) / 1e3 == pytest.approx(1650, rel=0.05)


def test_a_wait_that_moves_is_pointed_at() -> None:
    """Without the first sync alone the second waits longer, and an arrow leads there; without both none is left."""
    step = drawn(busy())
    early = next(k for k, fix in enumerate(step.fixes) if "nonzero" in fix.title or "early" in fix.where)
    alone = step.scene(early)
    assert alone is not None
    assert [arrow.look for arrow in alone.moves] == ["moved"]
    assert alone.moves[0].label.startswith("moved ")
    assert [piece.look for piece in alone.lanes.host] == ["sync"]
    assert step.shown.moves == ()


def test_many_fixes_end_in_one_choice() -> None:
    """The first three of nine places are choices of their own; the others are one choice."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=20_000):
        for k in range(9):
            with t.scope(f"part{k}", start + 2000 * k + 10, start + 2000 * k + 1900):
                t.launch("gemm", at=start + 2000 * k + 20, lasts=300 + 60 * k)
                t.sync("aten::nonzero", at=start + 2000 * k + 50)
    step = drawn(api.analyze_trace(t.trace()))
    assert len(step.fixes) <= MAX_FIXES
    assert len(step.scenes) == 2 ** len(step.fixes)
    assert len({id for fix in step.fixes for id in fix.findings}) == 9


def test_work_of_less_than_a_part_of_the_ruler_does_not_fill_it() -> None:
    """A hundred kernels of 1 µs in 10 ms are drawn at the lowest shade, not as solid work."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=10_000):
        for k in range(100):
            t.launch("tiny", at=start + 100 * k, lasts=1)
    shades = drawn(api.analyze_trace(t.trace())).recorded.device
    assert {shade.level for shade in shades} == {1}
    assert step_lanes.LEVELS > 1


def test_what_cannot_be_replayed_is_not_drawn() -> None:
    """An analysis without a replay has no picture; its SVG says so, and a picture of it is refused."""
    plain = analysis(finding())
    assert before_after(plain, story_of(plain)) is None
    assert "No step of this trace can be replayed" in svg.render(plain)
    assert 'id="before-after"' not in html.render(plain)
    with pytest.raises(UsageError, match="can be replayed"):
        replace(two_waits(), projector=None).picture()


def test_syncs_that_keep_a_network_from_being_compiled_are_drawn_with_that_compile() -> None:
    """One fix, its time that of the list of changes, its lanes as short; what it includes is no fix beside it."""
    analysis = launch_bound(reads=10)
    step, pair = drawn(analysis), analysis.remedies[0]
    (fix,) = step.fixes
    assert fix.title == "Syncs keep the network from being compiled; then compiled (reduce-overhead)"
    after = step.scene(0)
    assert after is not None
    assert after.us == pytest.approx(step.base_us - pair.alone_us)
    assert after.lanes.end / step.recorded.end == pytest.approx(after.us / step.base_us, abs=0.02)
    assert step.recorded.end > 1.5 * after.lanes.end


def test_a_page_holds_each_scene_and_its_sentence() -> None:
    """As groups of the drawing, all but the first hidden, with a checkbox for each fix."""
    of = two_waits()
    page, step = html.render(of), drawn(of)
    assert re.findall(r'<g class="scene" data-set="(\d)"', page) == ["0", "1", "2", "3"]
    assert page.count("data-fix=") == len(step.fixes)
    assert len(re.findall(r'<g class="scene"[^>]* hidden>', page)) == len(step.scenes) - 1
    assert f'<output id="ba-says" class="projected-text">{step.shown.sentence}</output>' in page


def test_the_svg_is_a_document_of_its_own() -> None:
    """Well-formed, with a title and a description, without scripts, and in both themes' colors."""
    of = two_waits()
    written = report.render(of, "svg")
    root = ElementTree.fromstring(written)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert "var(--" not in written
    assert "script" not in written
    assert "prefers-color-scheme: dark" in written
    assert drawn(of).shown.sentence in written


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_names_of_a_trace_stay_text(name: str) -> None:
    """In the SVG as in the page."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=4000):
        with t.scope(name, start + 10, start + 1500):
            t.launch(name, at=start + 20, lasts=600)
            t.sync("aten::nonzero", at=start + 100)
    ElementTree.fromstring(report.render(api.analyze_trace(t.trace()), "svg"))


def test_a_notebook_gets_the_picture_and_words_for_who_cannot_see_it() -> None:
    """As the SVG document that `--format svg` writes."""
    picture = two_waits().picture()
    assert picture.svg == report.render(two_waits(), "svg")
    assert picture.alt.startswith("Syncs are the limit · Step ")
    assert "after the fixes" in picture.alt
    assert picture._repr_mimebundle_() == {"image/svg+xml": picture.svg, "text/plain": picture.alt}
