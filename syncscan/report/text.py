"""From an Analysis to a terminal report: a first screen of ten lines, the findings' table, and the rest on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity, Source
from syncscan.model.habit import Basis
from syncscan.model.host import Host
from syncscan.model.libraries import path_in_package
from syncscan.model.phases import PhaseSummary, phases_of
from syncscan.model.printable import printable
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, phrases, remedies
from syncscan.report.terminal import written
from syncscan.report.units import duration, times

_COLORS = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan", Severity.INFO: "dim"}
NOTABLE = 0.01
"""Part of the step from which the gain of removing syncs is worth a sentence beside a larger one."""
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
WORST = 3
"""How many findings the first screen shows."""


def render(analysis: Analysis, verbose: int = 0, width: int = 100, color: bool = False) -> str:
    """The report as text.

    Args:
        verbose: 0 for first screen and table, 1 for why, fix and evidence of each finding too.
        width: of the terminal, in characters.
        color: whether to write colours.
    """
    return written(_parts(analysis, verbose, width), width, color)


def _parts(analysis: Analysis, verbose: int, width: int) -> Iterator[RenderableType]:
    yield from _first_screen(analysis)
    if phases := phases_of(analysis.trace):
        yield _phases(phases)
    if analysis.findings:
        yield _table(analysis, width)
    for sentence in habits.lines(analysis.habits, phrases.replayed(analysis.step), verbose):
        text = sentence.lstrip()
        yield Padding(Text(text), (0, 0, 0, len(sentence) - len(text)))
    yield from (Text(printable(sentence)) for sentence in remedies.lines(analysis))
    if verbose or host.leads(analysis):
        yield from _host(analysis.host_time)
    if verbose:
        yield from (_details(finding, analysis.step) for finding in analysis.findings)
    yield Text(printable(phrases.steps_found(analysis)), style="dim")
    if not verbose and analysis.findings:
        yield Text("-v shows why each one waits, what to do instead, and when to leave it alone.", style="dim")


def _first_screen(analysis: Analysis) -> Iterator[Text]:
    yield Text(_headline(analysis), style="dim")
    yield Text.assemble((f"{phrases.VERDICTS[analysis.step.bound]}. ", "bold"), analysis.step.reason)
    if said := host.leading(analysis):
        yield Text(printable(said))
    for sentence in phrases.lacking(analysis):
        yield Text.assemble(("! ", "bold yellow"), printable(sentence))
    yield Text(phrases.summary(analysis))
    for number, finding in enumerate(phrases.real(analysis.findings)[:WORST], 1):
        yield _one_line(number, finding, analysis.step)
    for sentence in _what_to_do(analysis):
        yield Text.assemble(("→ ", "bold green"), printable(sentence))


def _headline(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [PurePath(info.path).name or info.path]
    if info.devices:
        parts.append(info.devices[0] if len(info.devices) == 1 else f"{len(info.devices)} × {info.devices[0]}")
    if info.world_size and info.world_size > 1:
        parts.append(f"rank {info.rank} of {info.world_size}")
    steps = f"{s.count} step{'s' if s.count != 1 else ''}" if analysis.trace.steps else "no steps marked"
    parts += [steps, f"{duration(s.observed_us)} a step" if analysis.trace.steps else duration(s.observed_us)]
    if s.unprofiled_us:
        parts.append(f"{duration(s.unprofiled_us)} without the profiler")
    return printable(" · ".join(parts))


def _one_line(number: int, f: Finding, step: StepSummary) -> Text:
    line = Text(f" {number}. ", no_wrap=True)
    line.append(f"{f.severity.value:6} ", _COLORS[f.severity])
    line.append(printable(phrases.what(f), 60), "bold")
    line.append(f"  waits {phrases.waited(f.wait_us, step)}")
    if f.gain:
        line.append(f", would save {duration(f.gain.recoverable_us)}")
    if where := _where(f):
        line.append(f"  {where}", "blue")
    return line


def _what_to_do(analysis: Analysis) -> Sequence[str]:
    """What the replay advises; first the habit that costs more than all syncs, if there is one."""
    found, step = phrases.real(analysis.findings), analysis.step
    gain = step.recoverable_us or 0.0
    advice = step.advice or tuple(f.diagnosis.fix for f in found[:1])
    worst = next((h for h in analysis.habits if h.gain and h.gain.basis is Basis.REPLAY), None)
    if worst is None or worst.gain is None or worst.gain.recoverable_us <= gain:
        return advice[:2]
    first = f"{worst.advice.title}: {habits.saves(worst, phrases.replayed(step))}. {worst.advice.fix}"
    return (first, *advice[:1]) if gain > NOTABLE * phrases.replayed(step) else (first,)


def _phases(phases: Sequence[PhaseSummary]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("phase")
    for name in ("batch", "steps", "median time"):
        table.add_column(name, justify="right")
    for p in phases[:PHASES]:
        table.add_row(p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us))
    if len(phases) > PHASES:
        table.add_row(f"… {len(phases) - PHASES} more", "", "", "")
    return table


def _host(of: Host) -> Iterator[RenderableType]:
    """Where the host's time goes: its tables, and what they rest on."""
    tables = host.tables(of)
    if tables:
        yield Text(f"{host.TITLE}:", "bold")
        yield from (Padding(_of_host(table), (0, 0, 0, 1)) for table in tables)
        yield from (Padding(Text(printable(note), "dim"), (0, 0, 0, 1)) for note in host.notes(of))


def _of_host(found: host.Table) -> Group:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for number, name in enumerate(found.head):
        table.add_column(printable(name, 40), justify="left" if number < found.words else "right", overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(printable(text, 60)) for text in row))
    if found.more:
        table.add_row(f"… {found.more} more", *[""] * (len(found.head) - 1))
    return Group(Text(found.title), table)


def _table(analysis: Analysis, width: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), width=width, show_edge=False)
    table.add_column("severity", no_wrap=True)
    for name in ("saves", "waits", "idle behind"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", ratio=3, overflow="fold")
    table.add_column("where", ratio=4, overflow="fold")
    for f in analysis.findings:
        table.add_row(
            Text(f.severity.value, _COLORS[f.severity]),
            duration(f.gain.recoverable_us) if f.gain else "–",
            phrases.waited(f.wait_us, analysis.step),
            phrases.waited(f.bubble_us, analysis.step),
            Text(printable(f.diagnosis.title, 90)),
            Text(_long_where(f)),
        )
    return table


def _long_where(f: Finding) -> str:
    parts = [printable(" > ".join(f.where.scope), 70), _where(f)]
    if f.where.phase.value == "backward":
        parts.append("in backward")
    if abs(f.per_step - 1) > 0.005:
        parts.append(times(f.per_step))
    return ", ".join(p for p in parts if p)


def _details(f: Finding, step: StepSummary) -> Padding:
    d = f.diagnosis
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    facts = [
        ("id", f.id),
        ("rule", f"{d.rule} ({d.cause.value}), confidence {f.confidence.value}, {f.where.owner}'s code"),
        ("line", _exact_line(f)),
        ("called from", _called_from(f)),
        ("module", " > ".join(f.where.module)),
        ("chain", " > ".join(phrases.chain(f))),
        ("thread", f"{f.where.thread}, {f.where.phase.value}, {times(f.per_step)}"),
        ("measured", phrases.measured(f, step)),
        ("projected", phrases.projected(f, step)),
        ("why", d.why),
        ("fix", d.fix),
        ("safe to remove", phrases.USES[f.where.use]),
        ("fine when", d.when_fine),
    ]
    for name, value in facts:
        if value:
            grid.add_row(name, Text(printable(value)))
    return Padding(Group(Text(printable(d.title), "bold"), grid), (0, 0, 1, 1))


def _where(f: Finding) -> str:
    """The user's line with its file's name alone, and the library's with its package and its file's name."""
    library = f.where.in_library
    user, inner = _short(f.where.source), _short(library, in_package=True)
    if not (user and inner):
        return user or inner
    return f"{inner}, from {user}" if f.where.in_loop else f"{user}, inside {inner}"


def _short(source: Source | None, in_package: bool = False) -> str:
    if not source:
        return ""
    package, *inner = path_in_package(source.file).split("/")
    folder = f"{package}/{'…/' if inner[1:] else ''}" if in_package and inner else ""
    name = printable(f"{folder}{PurePath(source.file).name}", 60)
    if source.exact:
        return f"{name}:{source.line}"
    if source.candidates:
        return f"{name}:{','.join(map(str, source.candidates[:4]))}?"
    return f"{printable(source.function, 40)}() in {name}"


def _exact_line(f: Finding) -> str:
    source = f.where.source
    if not source:
        return ""
    if source.exact:
        return f"{source.file}:{source.line} in {source.function}"
    if source.candidates:
        lines = ", ".join(map(str, source.candidates))
        return f"{source.file}:{lines} in {source.function} (a guess: the calls in it that can be this op)"
    return f"in {source.function}, defined at {source.file}:{source.line} (the trace doesn't tell the line itself)"


def _called_from(f: Finding) -> str:
    inner = f.where.framework
    return f"{inner.file}:{inner.line} {inner.function}" if inner else ""
