"""Write the tabs of the report's page as documents of blocks: each what the first screen leaves out of one thing.

The one of the source annotates the flagged files: at each line what it waits, how long the device is idle after it,
and what it saves. It has the lines that findings name, and those around them, as the findings' excerpts hold them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.habit import Habit
from syncscan.model.libraries import path_in_package
from syncscan.model.step import StepSummary
from syncscan.report import analysis_report, compile_breaks, host, kernels, program_run, source, states
from syncscan.report.blocks import Block, Code, Fold, Grid, GridColumn, Heading, Sentence, Words, code, facts, strong
from syncscan.report.dry_run import is_dry
from syncscan.report.dry_run import reason as dry_run_reason
from syncscan.report.page import markup
from syncscan.report.phrases import line, real, waited
from syncscan.report.printable import shown
from syncscan.report.story import FindingText, habit_facts, is_costed, steps_found
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


def tabs_of(analysis: Analysis, findings: Sequence[FindingText], timed: bool, sampled: bool) -> Iterator[Tab]:
    """Yield the tabs that have content; `timed` and `sampled` say whether the script draws lanes and a tree."""
    if timed:
        yield Tab("timeline", "Timeline")
    count = len(analysis.shown.ranked)
    yield Tab("findings", f"Findings {count}" if count else "Findings", markup(_below_findings(analysis)))
    yield from _tab("host", "Host time", [*host.blocks(analysis)], sampled)
    yield from _tab("kernels", "Kernels", [*kernels.blocks(analysis)])
    yield from _tab("run", "The run", [*program_run.blocks(analysis), *analysis_report.phases(analysis)])
    yield from _tab("source", "Source", [*annotated(findings)] if is_costed(analysis) else [])
    yield from _tab("about", "About this recording", [*_about(analysis)])


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


def _below_findings(analysis: Analysis) -> Iterator[Block]:
    if not analysis.findings and not is_dry(analysis):
        works = len(analysis.trace.device_rows)
        yield Sentence(
            "The host never waits for the device in this trace." if works else "The trace has no device work."
        )
    yield from analysis_report.raced(analysis)
    yield from compile_breaks.blocks(analysis)
    yield from states.blocks(analysis)


def _about(analysis: Analysis) -> Iterator[Block]:
    """Yield how the recording was made, what the profiler changed, and what limits the report."""
    info, step = analysis.trace.info, analysis.step
    rank = f"{info.rank}" + (f" of {info.world_size}" if info.world_size else "") if info.rank is not None else ""
    timed = (
        ("step with the profiler", duration(step.observed_us)),
        ("step without it", duration(step.unprofiled_us) if step.unprofiled_us is not None else ""),
        ("host", duration(step.host_us)),
        ("device busy in the trace", f"{step.recorded_device_share:.0%}, {duration(step.device_busy_us)} per step"),
        ("host waits in the trace", f"{waited(None if step.waits_withheld else step.wait_us)} in syncs, per step"),
        ("device idle after syncs", f"{waited(None if step.waits_withheld else step.bubble_us)} per step"),
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
    reason = dry_run_reason(analysis) if is_dry(analysis) else step.reason
    yield from (Sentence(text) for text in (reason, steps_found(analysis)) if text)
    if analysis.warnings:
        yield Heading("What limits this report")
        yield from (Sentence(warning, "warn") for warning in analysis.warnings)
    if is_costed(analysis):
        yield Heading("How to read it")
        yield facts(GLOSSARY)


# the detail of a card


def finding(f: Finding, step: StepSummary) -> Iterator[Block]:
    if f.excerpt:
        yield from analysis_report.excerpt(f.excerpt)
    if f.suggested:
        yield Sentence(source.caption(f.suggested))
        yield Code("\n".join(source.diff_lines(f.suggested)), "diff")
    yield facts([*analysis_report.finding_facts(f, step), ("id", f.id)])


def habit(of: Habit) -> Iterator[Block]:
    yield facts(habit_facts(of))


MAX_FILES = 12
"""Files that are shown, those that wait longest."""
MAX_LINES = 300
"""Lines of a file that are shown, except on a page."""
COLUMNS = (
    *(GridColumn(name, right=True) for name in ("wait", "idle after", "saves", "line")),
    GridColumn("source"),
)
AWAY = "source not at hand"
"""Note on a file that can't be read here; --source-root says where it is."""


def annotated(findings: Sequence[FindingText]) -> Iterator[Block]:
    """Yield the flagged files, the one that waits longest first."""
    waiting = {f.id for f in real([entry.of for entry in findings])}
    by_file: defaultdict[str, list[FindingText]] = defaultdict(list)
    for entry in findings:
        place = _flagged(entry)
        if place is not None and entry.of.id in waiting:
            by_file[place.file].append(entry)
    longest = sorted(by_file, key=lambda file: -sum(entry.of.waited_us for entry in by_file[file]))
    if longest:
        yield Sentence("Means per step; what a line saves, it saves alone.", "dim")
    for file in longest[:MAX_FILES]:
        yield from _annotated_file(file, by_file[file])


def _flagged(entry: FindingText) -> Source | None:
    return entry.of.in_library if entry.of.in_loop else entry.of.source


def _annotated_file(file: str, entries: Sequence[FindingText]) -> Iterator[Block]:
    texts: dict[int, str] = {}
    at: defaultdict[int, list[FindingText]] = defaultdict(list)
    for entry in entries:
        excerpt, place = entry.of.excerpt, _flagged(entry)
        assert place is not None
        at[excerpt.marked[0] if excerpt and excerpt.marked else line(place)].append(entry)
        if excerpt:
            texts |= dict(enumerate(_expanded(excerpt.lines), excerpt.first))
    numbers = sorted({*texts, *at})
    newer = any(entry.of.excerpt and entry.of.excerpt.newer for entry in entries)
    note = source.NEWER.strip("()") if newer else "" if texts else AWAY
    yield Heading(
        (code(shown(path_in_package(file), 200)), f" waits {duration(sum(e.of.waited_us for e in entries))}"), 3
    )
    if note:
        yield Sentence(note, "dim")
    yield Grid(
        COLUMNS,
        tuple(_annotated_line(number, texts.get(number, ""), at.get(number, ())) for number in numbers),
        MAX_LINES,
    )


def _expanded(lines: Sequence[str]) -> list[str]:
    return [shown(text.expandtabs(4).rstrip(), source.LONGEST) for text in lines]


def _annotated_line(number: int, text: str, entries: Sequence[FindingText]) -> tuple[Words, ...]:
    if not entries:
        return "", "", "", str(number), code(text)
    best = max(entries, key=lambda entry: -1.0 if entry.of.recoverable_us is None else entry.of.recoverable_us)
    several = f", the largest of {len(entries)}" if len(entries) > 1 and best.of.recoverable_us is not None else ""
    wait, idle = (duration(sum(getattr(entry.of, field) for entry in entries)) for field in ("waited_us", "idle_us"))
    return wait, idle, f"{best.saves}{several}", strong(str(number)), code(text)
