"""Each fact of a job is in every format, many ranks are summarized, and hostile names in it are only shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from syncscan.fleet import document as fleet_json
from syncscan.fleet import report as fleet_report
from syncscan.fleet.document import flagged_job
from syncscan.fleet.picture import OUT, picture_of
from syncscan.model.fleet import Fleet, LateCause, Lateness
from syncscan.report import csv, markup, page, terminal
from syncscan.report.fleet_story import finding_texts, gaining, rank_phrase, story_of
from tests.each import each
from tests.fleet.example import damaged, even, hostile, job
from tests.report.example import HOSTILE


def render_text(fleet: Fleet, width: int = 100) -> str:
    return terminal.drawn(fleet_report.blocks(fleet), width)


def render_markdown(fleet: Fleet) -> str:
    return markup.drawn(fleet_report.blocks(fleet))


def render_page(fleet: Fleet) -> str:
    return page.drawn(fleet_report.blocks(fleet), "syncscan fleet")


def test_text_golden(golden: Callable[[str, str], None]) -> None:
    """A job of five ranks, one of them without a trace."""
    golden("fleet.txt", render_text(damaged(), 80))


def test_text_of_many_golden(golden: Callable[[str, str], None]) -> None:
    """It names the one of 512 ranks that stands out, and summarizes the others: no 512 lines."""
    golden("fleet.many.txt", render_text(job(512, late=77), 100))


def test_markdown_golden(golden: Callable[[str, str], None]) -> None:
    """The job as a comment."""
    golden("fleet.md", render_markdown(damaged()))


def test_html_golden(golden: Callable[[str, str], None]) -> None:
    """The job as a page; its style is left out."""
    bare = re.sub(r"(<style>).*?(</style>)", r"\1\2", render_page(damaged()), flags=re.DOTALL)
    golden("fleet.html", re.sub(r"'sha256-[^']+'", "HASH", bare))


def test_csv_golden(golden: Callable[[str, str], None]) -> None:
    """Two ranks, a step, three rows."""
    golden("fleet.csv", csv.drawn([flagged_job(job(2, 1))]))


@pytest.mark.parametrize(
    ("ranks", "count", "text"),
    [
        (range(512), 512, "on 512 of 512"),
        ([0], 512, "only on rank 0"),
        ([0], 1, "on rank 0"),
        (range(8), 16, "on ranks 0-7"),
        ([0, 3, 17, 18, 19], 512, "on 5 of 512: 0, 3, 17-19"),
        (range(0, 100, 2), 100, "on 50 of 100: 0, 2, 4, 6, …"),
    ],
)
def test_on_which_ranks(ranks: list[int], count: int, text: str) -> None:
    """All, one, a run, or some."""
    assert rank_phrase(list(ranks), count) == text


def test_the_story_names_who_holds_the_job_up_and_what_removing_its_sync_gains() -> None:
    """With the range, and what the trace of one rank alone gets wrong."""
    story = story_of(job())
    assert story.verdict == "Rank 0 delays the job by 700 µs per step (7%)"
    assert story.reason.endswith("idle after a sync, .item() waits for a number (train.py:52).")
    assert [(t.saves, t.share, t.doubt, t.on) for t in gaining(finding_texts(job()), job())] == [
        ("700 µs", "7%", "600 to 800 µs", "only on rank 0")
    ]
    assert story.single_traces_get_wrong == (
        "nonzero waits to learn a size (train.py:60): one trace alone projects 1.20 ms, the job gains less than 1%.",
    )


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            LateCause.KERNELS,
            "Rank 0's kernels take longer: balance the work between ranks, or find what slows its device.",
        ),
        (LateCause.INPUT, "Rank 0's DataLoader takes longer: give it more workers, or give each batch less work."),
        (LateCause.HOST, "Rank 0's host takes longer, but not because of a sync: look at what it does."),
    ],
)
def test_a_rank_that_is_late_for_no_sync_has_advice_of_its_own(cause: LateCause, text: str) -> None:
    """By what makes it late."""
    late = tuple(replace(x, cause=cause, finding="") for x in job().lateness)
    assert story_of(job(lateness=late)).then == (text,)


def test_a_host_that_the_profiler_slows_is_no_verdict() -> None:
    """The profiler doubles its step; a rank that is late by its kernels gets the usual verdict."""
    late = tuple(replace(x, cause=LateCause.HOST, finding="") for x in job().lateness)
    story = story_of(job(lateness=late, unprofiled_us=5_000.0))
    assert story.verdict == "Under the profiler rank 0 delays the job by 700 µs per step (7%)"
    assert story.then == (
        "Rank 0's host takes longer, but the profiler makes this step 2.0 times as long: "
        "without it, another rank may be the last.",
    )
    assert story_of(job(unprofiled_us=5_000.0)).verdict.startswith("Rank 0")


def test_a_reason_is_given_for_the_steps_that_it_explains() -> None:
    """In the first step the rank is late for what came before the recording."""
    first, *others = job().lateness
    story = story_of(job(lateness=(replace(first, cause=LateCause.BEFORE, finding=""), *others)))
    steps = len(job().lateness)
    assert f"arrives last in {steps} of {steps} steps, in {steps - 1} of them because its device" in story.reason
    assert f"arrives last in {steps} of {steps} steps: its device" in story_of(job()).reason


def test_of_many_that_are_late_each_is_named_briefly() -> None:
    """With the number of steps and the cause."""
    ranks = tuple(replace(r, holds_us=900.0 - 100 * r.number) for r in job(6).ranks)
    late = tuple(Lateness(step, step, 500.0, LateCause.KERNELS) for step in range(3))
    story = story_of(replace(job(6), ranks=ranks[:3], lateness=late))
    assert story.verdict == "Ranks 0, 1 and 2 delay the job: by 900 µs, 800 µs, 700 µs per step"
    assert story.reason == "Latest rank in 3 steps: 0 in 1 (kernels), 1 in 1 (kernels), 2 in 1 (kernels)."


def test_where_nothing_is_late_and_nothing_gained_that_is_reported() -> None:
    """One job has no syncs; in another the sync gains nothing."""
    assert story_of(even()).verdict == "No rank delays the others"
    assert story_of(even()).summary == "No host-device syncs found on any rank."
    idle = job(findings=job().findings[1:], recoverable_us=0.0, recoverable_range_us=(0.0, 0.0))
    assert story_of(idle).then == ("Removing syncs gains the job nothing measurable.",)


def test_what_cannot_be_reported_is_not_reported() -> None:
    """Without collectives that match, and without a replay."""
    story = story_of(
        job(matched=0, lateness=(), path=(), baseline_us=None, recoverable_us=None, recoverable_range_us=None)
    )
    assert story.verdict == "Which rank delays the job is unknown"
    assert story.summary == "2 places block the host; the gain of removing them can't be replayed for the whole job."


@pytest.mark.parametrize("fleet", [job(), damaged(), even(), job(512, late=77)], ids=["job", "damaged", "even", "many"])
@each("width", [80, 120])
def test_the_first_screen_has_ten_lines(fleet: Fleet, width: int) -> None:
    """However narrow the terminal."""
    screen = render_text(fleet, width).split("Ranks (mean per step)")[0]
    assert len(screen.splitlines()) <= 11  # a rank without a trace has a line more
    assert max(map(len, screen.splitlines())) <= width


def test_all_formats_tell_the_same() -> None:
    """Verdict, summary, gain, ranks, what one trace gets wrong, missing ranks, traces that couldn't be read."""
    story, fleet = story_of(damaged()), damaged()
    shown = {
        "text": " ".join(render_text(fleet, 200).split()),
        "markdown": render_markdown(fleet).replace("\\", ""),
        "html": re.sub(r"&#39;", "'", render_page(fleet)),
        "json": fleet_json.render(fleet),
    }
    for name, text in shown.items():
        messages = [
            story.verdict,
            story.summary,
            '"ranks": [' if name == "json" else "only on rank 0",
            story.single_traces_get_wrong[0][:-1],
            story.missing,
        ]
        assert [s for s in messages if s not in text] == [], name
        assert "is cut off in its first event" in text, name


def test_of_many_ranks_those_that_stand_out_have_a_row_each() -> None:
    """The others share rows, so that 4,096 ranks are as readable as 40; a page of them stays small."""
    fleet = job(4096, 4)
    odd = range(100, 4000, 100)
    late = tuple(Lateness(step, rank, 100.0 + rank, LateCause.KERNELS) for step in range(4) for rank in odd)
    picture = picture_of(replace(fleet, lateness=late))
    assert picture is not None
    alone = [row["label"] for row in picture["rows"] if "-" not in row["label"]]
    assert alone == [str(rank) for rank in odd][-OUT:]
    assert len(picture["rows"]) <= 2 * OUT + 1
    assert len(render_page(replace(fleet, lateness=late))) < 200_000


def test_the_path_goes_through_each_step_s_column() -> None:
    """The path crosses each column from left to right, on the row of the rank that worked."""
    picture = picture_of(job(3, 2, late=1))
    assert picture is not None
    assert [x for x, _ in picture["steps"]] == [0.0, 500.0]
    assert [(leg["y"] // picture["row"], leg["x"], leg["end"]) for leg in picture["legs"]] == [
        (1, 0.0, 300.0), (2, 300.0, 500.0), (1, 500.0, 800.0), (2, 800.0, 1000.0)
    ]  # fmt: skip


def test_a_job_without_a_step_has_no_picture() -> None:
    """And a page all the same."""
    empty = job(steps=0, lateness=(), path=())
    assert picture_of(empty) is None
    assert "Late ranks" not in render_page(empty)


class _Tags(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


PLAIN = _Tags(render_page(hostile("name"))).found


@each("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_a_hostile_name_is_only_shown(text: str) -> None:
    """Control characters reach no terminal, JSON stays JSON, and no name makes a tag, in Markdown neither."""
    fleet = hostile(text)
    assert not set(render_text(fleet)) & set("\x1b\x07\x00\u202e\u2066")
    assert json.loads(fleet_json.render(fleet))["schema"] == "syncscan.fleet/3"
    document = render_page(fleet)
    document.encode()
    assert _Tags(document).found == PLAIN
    assert not set(document) & set("\u202e\u2066\x00")
    markdown = render_markdown(fleet)
    outside = "".join(part for n, part in enumerate(markdown.split("`")) if n % 2 == 0)
    assert "<script" not in outside
    cells = [cell for line in csv.drawn([flagged_job(fleet)]).splitlines()[1:] for cell in line.split(",")]
    assert not any(cell.startswith(("=", "@", "\t")) for cell in cells)
