"""Write the tabs of the report's page as documents of blocks: each what the first screen leaves out of one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.step import StepSummary
from syncscan.report import analysis_report, annotated, suggested_fix
from syncscan.report.blocks import Block, Code, Fold, Heading, Sentence, code, facts
from syncscan.report.habits import HabitText
from syncscan.report.page import markup
from syncscan.report.phrases import waited
from syncscan.report.story import Story
from syncscan.report.units import duration

GLOSSARY = (
    (
        "wait",
        "Measured: how long the host was blocked on the device in these calls. A wait costs nothing by itself: while "
        "the host waits, the device may be busy.",
    ),
    (
        "idle after",
        "Measured: how long the device was then idle until its next work because the host had been blocked. No idle "
        "time is counted twice; time in which launched work was pending doesn't count.",
    ),
    ("moved", "Projected: the part of the wait that would move to the next sync."),
    (
        "recoverable",
        "Projected: how much shorter a step would be without this sync, from replaying the step. Projected values are "
        "hatched or in italics.",
    ),
)


class Tab(Struct, frozen=True):
    """A tab: its document, beside what the page's script draws in it."""

    id: str
    title: str
    body: Markup = Markup()


def tabs_of(analysis: Analysis, story: Story, timed: bool, sampled: bool) -> Iterator[Tab]:
    """Yield the tabs that have content; `timed` and `sampled` say whether the script draws lanes and a tree."""
    if timed:
        yield Tab("timeline", "Timeline")
    count = len(story.findings) + len(story.habits)
    yield Tab("findings", f"Findings {count}" if count else "Findings", markup(_below_findings(analysis, story)))
    yield from _tab("host", "Host time", [*analysis_report.host_time(story)], sampled)
    yield from _tab("kernels", "Kernels", [*analysis_report.kernels(story)])
    yield from _tab("run", "The run", [*_run(analysis, story)])
    yield from _tab("source", "Source", [*_sources(story)])
    yield from _tab("about", "About this recording", [*_about(analysis, story)])


def _tab(id: str, title: str, blocks: Sequence[Block], drawn_too: bool = False) -> Iterator[Tab]:
    """Yield a tab unless it is empty; what folds elsewhere is open here."""
    if blocks or drawn_too:
        yield Tab(id, title, markup(inner for block in blocks for inner in _unfolded(block)))


def _unfolded(block: Block) -> Iterator[Block]:
    if isinstance(block, Fold):
        yield Heading(block.title)
        yield from block.blocks
    else:
        yield block


def _below_findings(analysis: Analysis, story: Story) -> Iterator[Block]:
    if not analysis.findings and story.timed:
        works = len(analysis.trace.device_rows)
        yield Sentence(
            "The host never waits for the device in this trace." if works else "The trace has no device work."
        )
    yield from analysis_report.raced(story)
    yield from analysis_report.compiled(story)
    yield from analysis_report.in_states(analysis)


def _run(analysis: Analysis, story: Story) -> Iterator[Block]:
    yield from analysis_report.of_run(analysis, story)
    yield from analysis_report.phases(story)


def _sources(story: Story) -> Iterator[Block]:
    if story.costed:
        yield from annotated.blocks(story.findings)


def _about(analysis: Analysis, story: Story) -> Iterator[Block]:
    """Yield how the recording was made, what the profiler changed, and what limits the report."""
    info, step = analysis.trace.info, analysis.step
    rank = f"{info.rank}" + (f" of {info.world_size}" if info.world_size else "") if info.rank is not None else ""
    timed = (
        ("step with the profiler", duration(step.observed_us)),
        ("step without it", duration(step.unprofiled_us) if step.unprofiled_us is not None else ""),
        ("host", duration(step.host_us)),
        ("device busy in the trace", f"{step.recorded_device_share:.0%}, {duration(step.device_busy_us)} per step"),
        ("host waits in the trace", f"{waited(step.wait_us, step)} in syncs, per step"),
        ("device idle after syncs", f"{waited(step.bubble_us, step)} per step"),
    )
    yield facts(
        [
            ("file", code(info.path)),
            ("device", " + ".join(dict.fromkeys(info.devices))),
            ("rank", rank),
            ("size", f"{info.events:,} events, {info.size_bytes / 1e6:.1f} MB" if info.size_bytes else ""),
            *(timed if step.observed_us else ()),
        ]
    )
    yield from (Sentence(text) for text in (story.reason, story.steps_found) if text)
    if story.warnings:
        yield Heading("What limits this report")
        yield from (Sentence(warning, "warn") for warning in story.warnings)
    if story.costed:
        yield Heading("How to read it")
        yield facts(GLOSSARY)


# the detail of a card


def finding(f: Finding, step: StepSummary) -> Iterator[Block]:
    if f.excerpt:
        yield from analysis_report.excerpt(f.excerpt)
    if f.suggested:
        yield Sentence(suggested_fix.caption(f.suggested))
        yield Code("\n".join(suggested_fix.diff_lines(f.suggested)), "diff")
    yield facts([*analysis_report.finding_facts(f, step), ("id", f.id)])


def habit(text: HabitText) -> Iterator[Block]:
    yield analysis_report.habit_facts(text)
