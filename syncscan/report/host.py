"""Describe where a step's host time goes: a sentence and tables.

Samples show the step without the profiler, by function; counts come from the trace, by op and call. Names are as
recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Phase
from syncscan.model.host import USER, CountedHost, Host, HostNode, SampledHost
from syncscan.model.libraries import path_in_package
from syncscan.model.slice_names import is_engine
from syncscan.model.step import StepSummary
from syncscan.report.blocks import Block, Fold, Grid, GridColumn, Heading, Sentence, code
from syncscan.report.printable import shown
from syncscan.report.timed_steps import known_within, uncertainty
from syncscan.report.units import duration, part_of, percent

TITLE = "Where the host's time goes"
SHOWN = 10
"""Rows shown per table; JSON has them all."""
TOLD = 0.01
"""Least fraction of a step that the sentence mentions."""
MOST = 0.5
"""The sentence is left out where the host waits for the device for more than this fraction of the step."""
DRAWN = 0.0005
"""Fraction of the step that is one pixel of a picture 2000 pixels wide."""
MOST_DRAWN = 5000
"""Most nodes of a tree drawn in a page."""
PROGRAM = "the program"
"""Label of the program's own code among the packages."""

_PHASES = {Phase.FORWARD: "forward", Phase.BACKWARD: "backward", Phase.OPTIMIZER: "optimizer", Phase.DATA: "input"}
_PARTS = (
    ("dispatch_us", "in ops", "in ops, without their calls"),
    ("launches_us", "in launches", "launches: kernels, graphs, copies"),
    ("allocations_us", "in allocations", "allocations"),
    ("queries_us", "in queries", "queries"),
    ("other_calls_us", "in other calls", "other runtime calls"),
    ("os_calls_us", "in calls of the OS", "calls of the OS: input, locks, files"),
    ("python_us", "in Python", "Python between ops and calls"),
    ("input_us", "in the loader", "the loader"),
    ("waits_us", "blocked on the device", "blocked on the device"),
)
"""Field, its name in a sentence, and its name in a table."""


def blocks(analysis: Analysis) -> Iterator[Block]:
    """Yield where the step's time goes in a sentence, and in tables."""
    if text := sentence(analysis):
        yield Sentence(text)
    host = analysis.host_time
    if listed := tables(host):
        remarks = filter(None, (*notes(host), ahead(analysis.step)))
        shown_tables = (block for title, grid in listed for block in (title, grid))
        yield Fold(TITLE, (*shown_tables, *(Sentence(note, "dim") for note in remarks)))


def table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int, literal: int = 0, more: int = 0
) -> tuple[Heading, Grid]:
    """Return a table below its title: first columns of words, of which the first ones are code, then of numbers.

    `more` is the number of rows that are left out.
    """
    columns = tuple(GridColumn(name, right=number >= words) for number, name in enumerate(head))
    cells = (tuple(code(text) if n < literal else text for n, text in enumerate(row)) for row in rows)
    rest = ((f"… {more} more", *[""] * (len(columns) - 1)),) if more else ()
    return Heading(title, 3), Grid(columns, (*cells, *rest))


def sentence(analysis: Analysis) -> str:
    """Return where the step's time goes, in one sentence; empty where unknown.

    As sampled, where it was: that is the step without the profiler. Else as the trace has it.
    """
    sampled, counted = analysis.host_time.sampled, analysis.host_time.counted
    if sampled and sampled.step_us and sampled.nodes:
        return _sentence(known_within(sampled.step_us, uncertainty(analysis)), sampled.step_us, _phases(sampled))
    if counted and counted.step_us and counted.waits_us <= MOST * counted.step_us:
        scaled = known_within(counted.step_us, uncertainty(analysis))
        whole = scaled if counted.scaled else f"{duration(counted.step_us)} under the profiler"
        return _sentence(whole, counted.step_us, [(short, getattr(counted, field)) for field, short, _ in _PARTS])
    return ""


def ahead(step: StepSummary) -> str:
    """Return how far the host is ahead of the device, as a sentence; empty where unknown."""
    if step.run_ahead is None:
        return ""
    least, median = (
        f"{duration(abs(us))} {'ahead of' if us >= 0 else 'behind'}"
        for us in (step.run_ahead.least_us, step.run_ahead.median_us)
    )
    return f"In the recording the host is {median} the device at a step's median launch, {least} it at the latest."


def tables(host: Host) -> list[tuple[Heading, Grid]]:
    sampled = [*_sampled_tables(host.sampled)] if host.sampled and host.sampled.nodes else []
    return [*sampled, *_counted_tables(host.counted)] if host.counted else sampled


def notes(host: Host) -> list[str]:
    sampling = [_sampling(host.sampled)] if host.sampled and host.sampled.nodes else []
    if host.counted is None:
        return sampling
    if host.counted.scaled:
        return [*sampling, "Times from the trace are scaled to the step without the profiler."]
    return [
        *sampling,
        "Times from the trace include the profiler's overhead (--step-ms removes it).",
    ]


_OWN_COLORS = (USER, "torch", "python")
"""Owners whose color is the same in every report, by its number."""


def _colors(owners: Sequence[str]) -> list[int]:
    others = iter(range(len(_OWN_COLORS), len(_OWN_COLORS) + len(owners)))
    return [_OWN_COLORS.index(name) if name in _OWN_COLORS else next(others) for name in owners]


def picture(host: Host) -> dict[str, Any] | None:
    """Return the sampled tree as columns for the icicle, with names that are safe to show; None without samples.

    The program comes first among the owners, then the costliest. A color stands for the same owner in every report: the
    program, torch and Python have one each, and others share the rest in the order of their cost.
    """
    sampled = host.sampled
    if sampled is None or not sampled.nodes or not sampled.step_us:
        return None
    drawn = _visible_nodes(sampled)
    place_of = {number: k for k, number in enumerate(drawn)}
    nodes = [sampled.nodes[number] for number in drawn]
    owners = sorted(sampled.by_owner(), key=lambda share: share.name != USER)
    known = {share.name: k for k, share in enumerate(owners)}
    texts: dict[str, int] = {}
    return {
        "whole": f"step, {duration(sampled.step_us)}",
        "step": sampled.step_us,
        "owners": [[shown(called(share.name), 60), percent(share.us, sampled.step_us)] for share in owners],
        "colors": _colors([share.name for share in owners]),
        "parent": [place_of.get(node.parent, -1) for node in nodes],
        "us": [round(node.us, 3) for node in nodes],
        "self": [round(node.self_us, 3) for node in nodes],
        "owner": [known.get(node.owner, len(owners)) for node in nodes],
        "name": [texts.setdefault(shown(node.function, 160), len(texts)) for node in nodes],
        "place": [texts.setdefault(shown(place(node.file, node.line), 200), len(texts)) for node in nodes],
        "phase": [texts.setdefault(_called_phase(node.phase.value), len(texts)) for node in nodes],
        "texts": list(texts),
    }


def _visible_nodes(sampled: SampledHost) -> list[int]:
    """Return the nodes wide enough to be seen; callers are as wide as callees, so none lacks its caller."""
    least = DRAWN * sampled.step_us
    wide = [number for number, node in enumerate(sampled.nodes) if node.us >= least]
    if len(wide) <= MOST_DRAWN:
        return wide
    longest = sorted(wide, key=lambda number: (-sampled.nodes[number].us, number))
    return sorted(longest[:MOST_DRAWN])


# the sentence


def _sentence(whole: str, step_us: float, parts: Sequence[tuple[str, float]]) -> str:
    shares = ((part_of(us, whole), name) for name, us in parts if us >= TOLD * step_us)
    return f"Of {whole}: {', '.join(f'{share} {name}' for share, name in shares if float(share))}."


def _phases(sampled: SampledHost) -> list[tuple[str, float]]:
    """Return the step's phases in order, and the time between them, labeled with its main owner."""
    total = {share.name: share.us for share in sampled.by_phase()}
    first, rest = list(_PHASES)[:3], list(_PHASES)[3:]
    between_nodes = [node for node in sampled.nodes if node.phase not in _PHASES]
    owner = _mostly(between_nodes)
    between = (f"in between ({owner})" if owner else "in between", sum(node.self_us for node in between_nodes))
    return [
        *((_PHASES[phase], total.get(phase.value, 0.0)) for phase in first),
        between,
        *((_PHASES[phase], total.get(phase.value, 0.0)) for phase in rest),
    ]


def _mostly(nodes: Sequence[HostNode]) -> str:
    """Return the owner of more than half of the nodes' self time; empty where there is none."""
    took: dict[str, float] = {}
    for node in nodes:
        took[node.owner] = took.get(node.owner, 0.0) + node.self_us
    most = max(took, key=lambda owner: took[owner], default="")
    return called(most) if took and 2 * took[most] > sum(took.values()) else ""


def called(owner: str) -> str:
    return PROGRAM if owner == USER else owner


# the tables


def _sampled_tables(sampled: SampledHost) -> Iterator[tuple[Heading, Grid]]:
    yield _by_phase_and_owner(sampled)
    yield _functions(sampled)


def _by_phase_and_owner(sampled: SampledHost) -> tuple[Heading, Grid]:
    took: dict[tuple[str, str], float] = {}
    for node in sampled.nodes:
        key = (node.owner, node.phase.value)
        took[key] = took.get(key, 0.0) + node.self_us
    phases = [share.name for share in sampled.by_phase()]
    owners = sampled.by_owner()
    total = ("total", *(_time(share.us) for share in sampled.by_phase()), _time(sum(s.us for s in owners)), "")
    rows = [
        (
            called(owner.name),
            *(_time(took.get((owner.name, phase), 0.0)) for phase in phases),
            _time(owner.us),
            percent(owner.us, sampled.step_us),
        )
        for owner in owners[: SHOWN - 1]
    ]
    head = ("whose code", *(_called_phase(phase) for phase in phases), "total", "of the step")
    more = max(0, len(owners) - len(rows))
    return table("Self time by phase and owner", head, (*rows, total), words=1, more=more)


def _called_phase(phase: str) -> str:
    return _PHASES.get(Phase(phase), "in between")


def _functions(sampled: SampledHost) -> tuple[Heading, Grid]:
    took: dict[tuple[str, str, int, str], float] = {}
    for node in sampled.nodes:
        key = (node.function, node.file, node.line, node.owner)
        took[key] = took.get(key, 0.0) + node.self_us
    lines = sorted((key for key in took if took[key] > 0), key=lambda key: (-took[key], key))
    rows = tuple(
        (function, place(file, line), called(owner), _time(took[key]), percent(took[key], sampled.step_us))
        for key in lines[:SHOWN]
        for function, file, line, owner in (key,)
    )
    head = ("function", "line", "whose code", "self", "of the step")
    return table("Top lines by self time", head, rows, words=3, literal=2, more=len(lines) - len(rows))


def place(file: str, line: int) -> str:
    """Return a sampled line, with its path from the package's root on."""
    return f"{path_in_package(file)}:{line}" if line > 0 else path_in_package(file)


def _counted_tables(counted: CountedHost) -> Iterator[tuple[Heading, Grid]]:
    rows = tuple(
        (name, _time(us), percent(us, counted.step_us))
        for field, _, name in _PARTS
        if (us := getattr(counted, field)) >= 0.0005 * counted.step_us
    )
    counts = f"{counted.ops_per_step:,.0f} ops and {counted.launches_per_step:,.0f} launches per step"
    many = counted.kernels_per_launch and abs(counted.kernels_per_launch - 1) >= 0.005
    kernels = f", {counted.kernels_per_launch:.3g} kernels or copies per launch" if many else ""
    yield table(f"In the trace: {counts}{kernels}", ("host time in", "per step", "of the step"), rows, words=1)
    if counted.dearest:
        yield _dearest(counted)


def _dearest(counted: CountedHost) -> tuple[Heading, Grid]:
    """Return a table of the costliest ops; without a scope column if the trace has no scopes."""
    ops = counted.dearest[:SHOWN]
    scoped = any(dear.scope for dear in ops)
    rows = tuple(
        (
            _op(dear.op),
            *([" > ".join(dear.scope)] if scoped else []),
            _often(dear.per_step),
            _time(dear.self_us),
            _time(dear.us),
        )
        for dear in ops
    )
    title = "Top ops by self time per step (total includes callees)"
    words = ("op", "scope") if scoped else ("op",)
    head = (*words, "times", "self", "total")
    more = len(counted.dearest) - len(rows)
    return table(title, head, rows, words=len(words), literal=len(words), more=more)


def _op(name: str) -> str:
    """Return an op's name; autograd engine ranges lose their common prefix."""
    return f"engine: {name.partition(': ')[2]}" if is_engine(name) and ": " in name else name


def _often(per_step: float) -> str:
    return f"{per_step:,.0f}" if per_step >= 10 else f"{per_step:.3g}"


def _time(us: float) -> str:
    return duration(us) if us > 0 else "–"


def _sampling(sampled: SampledHost) -> str:
    sentence = f"Sampled without the profiler: {sampled.samples:,} samples in {sampled.steps:,} steps"
    if sampled.overhead is None:
        return f"{sentence}."
    if sampled.overhead < 0.005:
        return f"{sentence}, at no measurable cost."
    return f"{sentence}, slowed by {percent(sampled.overhead, 1.0)}."
