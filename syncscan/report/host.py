"""From where a step's host time goes to what every report says of it: a sentence, tables.

What is sampled is the step without the profiler, by function; what is counted is the trace, by op and call. Names are
as they were recorded: each renderer escapes them for its own medium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Phase
from syncscan.model.host import USER, CountedHost, Host, HostNode, SampledHost
from syncscan.model.libraries import path_in_package
from syncscan.model.names import is_engine
from syncscan.model.step import Bound
from syncscan.report.names import shown
from syncscan.report.units import duration, part_of, percent

TITLE = "Where the host's time goes"
SHOWN = 10
"""Rows of a table that are shown; JSON has them all."""
TOLD = 0.01
"""The part of a step from which something is worth a word in the sentence."""
MOST = 0.5
"""A step of which the host waits more than this for the device is none whose host's own time is worth a sentence."""
DRAWN = 0.0005
"""The part of the step that is a pixel of a picture 2000 wide."""
MOST_DRAWN = 5000
"""Nodes of a tree in a page."""
PROGRAM = "the program"
"""What the program's own code is called among the packages."""

_PHASES = {Phase.FORWARD: "forward", Phase.BACKWARD: "backward", Phase.OPTIMIZER: "optimizer", Phase.DATA: "input"}
_PARTS = (
    ("dispatch_us", "in ops", "in ops, without their calls"),
    ("launches_us", "in launches", "launches: kernels, graphs, copies"),
    ("allocations_us", "in allocations", "allocations"),
    ("queries_us", "in queries", "queries"),
    ("other_calls_us", "in other calls", "other runtime calls"),
    ("python_us", "in Python between them", "Python between ops and calls"),
    ("input_us", "in the loader", "the loader"),
    ("waits_us", "held by the device", "held by the device"),
)
"""Field, and what it is called in a sentence and in a table."""


class Table(msgspec.Struct, frozen=True):
    """Rows of text under a title."""

    title: str
    head: tuple[str, ...]
    words: int
    """Of the columns the first that hold words; the others hold numbers."""
    code: int
    """Of these the first that hold names of code."""
    rows: tuple[tuple[str, ...], ...]
    more: int = 0
    """Rows that are left out."""


def leads(analysis: Analysis) -> bool:
    """Whether the first screen says where the host's time goes: the host is the limit, or all that is known of."""
    if analysis.step.bound is Bound.HOST:
        return bool(sentence(analysis))
    return analysis.step.bound is Bound.UNKNOWN and analysis.host_time.sampled is not None


def sentence(analysis: Analysis) -> str:
    """Where the step's time goes, in one sentence; empty where nothing tells it.

    As sampled, where it was: that is the step without the profiler. Else as the trace has it.
    """
    sampled, counted = analysis.host_time.sampled, analysis.host_time.counted
    if sampled and sampled.step_us and sampled.nodes:
        return _sentence(sampled.step_us, "", _phases(sampled))
    if counted and counted.step_us and counted.waits_us <= MOST * counted.step_us:
        return _sentence(counted.step_us, "" if counted.scaled else " under the profiler", _counted_parts(counted))
    return ""


def tables(host: Host) -> list[Table]:
    """All that is known, each table with its first rows."""
    found = [*_sampled_tables(host.sampled)] if host.sampled and host.sampled.nodes else []
    return [*found, *_counted_tables(host.counted)] if host.counted else found


def notes(host: Host) -> list[str]:
    """What the numbers rest on, a sentence each."""
    said = [_sampling(host.sampled)] if host.sampled and host.sampled.nodes else []
    if host.counted is None:
        return said
    if host.counted.scaled:
        return [*said, "What is counted in the trace is on the scale of the step without the profiler."]
    return [
        *said,
        "What is counted in the trace is as recorded under the profiler, which makes it longer (--step-ms says by how "
        "much).",
    ]


def picture(host: Host) -> dict[str, Any] | None:
    """The sampled tree as columns for the icicle; None without one. Names in it are safe to show.

    The program comes first among the owners, so that its colour is always the same, then the costliest.
    """
    sampled = host.sampled
    if sampled is None or not sampled.nodes or not sampled.step_us:
        return None
    kept = _drawn(sampled)
    place_of = {number: k for k, number in enumerate(kept)}
    nodes = [sampled.nodes[number] for number in kept]
    owners = sorted(sampled.by_owner(), key=lambda share: share.name != USER)
    known = {share.name: k for k, share in enumerate(owners)}
    texts: dict[str, int] = {}
    return {
        "whole": f"step, {duration(sampled.step_us)}",
        "step": sampled.step_us,
        "owners": [[shown(called(share.name), 60), percent(share.us, sampled.step_us)] for share in owners],
        "parent": [place_of.get(node.parent, -1) for node in nodes],
        "us": [round(node.us, 3) for node in nodes],
        "self": [round(node.self_us, 3) for node in nodes],
        "owner": [known.get(node.owner, len(owners)) for node in nodes],
        "name": [texts.setdefault(shown(node.function, 160), len(texts)) for node in nodes],
        "place": [texts.setdefault(shown(place(node.file, node.line), 200), len(texts)) for node in nodes],
        "phase": [texts.setdefault(_called_phase(node.phase.value), len(texts)) for node in nodes],
        "texts": list(texts),
    }


def _drawn(sampled: SampledHost) -> list[int]:
    """The nodes that could be seen: a caller takes no less than what it calls, so none is drawn without its own."""
    least = DRAWN * sampled.step_us
    wide = [number for number, node in enumerate(sampled.nodes) if node.us >= least]
    if len(wide) <= MOST_DRAWN:
        return wide
    longest = sorted(wide, key=lambda number: (-sampled.nodes[number].us, number))
    return sorted(longest[:MOST_DRAWN])


# the sentence


def _sentence(step_us: float, how: str, parts: Sequence[tuple[str, float]]) -> str:
    told = [f"{part_of(us, step_us)} {name}" for name, us in parts if us >= TOLD * step_us]
    return f"Of {duration(step_us)}{how}: {', '.join(told)}."


def _phases(sampled: SampledHost) -> list[tuple[str, float]]:
    """The step's phases in their order, and what lies in between, by who has the most of it."""
    total = {share.name: share.us for share in sampled.by_phase()}
    first, rest = list(_PHASES)[:3], list(_PHASES)[3:]
    others = [node for node in sampled.nodes if node.phase not in _PHASES]
    between = (f"{_mostly(others)} in between".strip(), sum(node.self_us for node in others))
    return [
        *((_PHASES[phase], total.get(phase.value, 0.0)) for phase in first),
        between,
        *((_PHASES[phase], total.get(phase.value, 0.0)) for phase in rest),
    ]


def _mostly(nodes: Sequence[HostNode]) -> str:
    """The owner of more than half of what these take themselves; empty where nobody has so much."""
    took: dict[str, float] = {}
    for node in nodes:
        took[node.owner] = took.get(node.owner, 0.0) + node.self_us
    most = max(took, key=lambda owner: took[owner], default="")
    return called(most) if took and 2 * took[most] > sum(took.values()) else ""


def called(owner: str) -> str:
    """An owner, as a reader knows it."""
    return PROGRAM if owner == USER else owner


def _counted_parts(counted: CountedHost) -> list[tuple[str, float]]:
    return [(short, getattr(counted, field)) for field, short, _ in _PARTS]


# the tables


def _sampled_tables(sampled: SampledHost) -> Iterator[Table]:
    yield _by_phase_and_owner(sampled)
    yield _functions(sampled)


def _by_phase_and_owner(sampled: SampledHost) -> Table:
    """A row an owner, a column a phase; the costliest first of both."""
    took: dict[tuple[str, str], float] = {}
    for node in sampled.nodes:
        key = (node.owner, node.phase.value)
        took[key] = took.get(key, 0.0) + node.self_us
    phases = [share.name for share in sampled.by_phase()]
    owners = sampled.by_owner()
    whole = ("in all", *(_time(share.us) for share in sampled.by_phase()), _time(sum(s.us for s in owners)), "")
    rows = [
        (
            called(owner.name),
            *(_time(took.get((owner.name, phase), 0.0)) for phase in phases),
            _time(owner.us),
            percent(owner.us, sampled.step_us),
        )
        for owner in owners[: SHOWN - 1]
    ]
    head = ("whose code", *(_called_phase(phase) for phase in phases), "in all", "of the step")
    return Table(
        "By phase and owner, without what each calls", head, 1, 0, (*rows, whole), max(0, len(owners) - len(rows))
    )


def _called_phase(phase: str) -> str:
    return _PHASES.get(Phase(phase), "in between")


def _functions(sampled: SampledHost) -> Table:
    """The lines that take most themselves, whatever called them."""
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
    head = ("function", "line", "whose code", "itself", "of the step")
    return Table("Lines that take most themselves", head, 3, 2, rows, len(lines) - len(rows))


def place(file: str, line: int) -> str:
    """A sampled line, from its package's root on."""
    return f"{path_in_package(file)}:{line}" if line > 0 else path_in_package(file)


def _counted_tables(counted: CountedHost) -> Iterator[Table]:
    rows = tuple(
        (name, _time(us), percent(us, counted.step_us))
        for field, _, name in _PARTS
        if (us := getattr(counted, field)) >= 0.0005 * counted.step_us
    )
    counts = f"{counted.ops_per_step:,.0f} ops and {counted.launches_per_step:,.0f} launches a step"
    many = counted.kernels_per_launch and abs(counted.kernels_per_launch - 1) >= 0.005
    kernels = f", {counted.kernels_per_launch:.3g} kernels or copies a launch" if many else ""
    yield Table(f"In the trace: {counts}{kernels}", ("the host is in", "a step", "of the step"), 1, 0, rows)
    if counted.dearest:
        yield _dearest(counted)


def _dearest(counted: CountedHost) -> Table:
    """Without a column for scopes where the trace has none."""
    found = counted.dearest[:SHOWN]
    scoped = any(dear.scope for dear in found)
    rows = tuple(
        (
            _op(dear.op),
            *([" > ".join(dear.scope)] if scoped else []),
            _often(dear.per_step),
            _time(dear.self_us),
            _time(dear.us),
        )
        for dear in found
    )
    title = "Ops that take most themselves, a step (in all: with what they call)"
    words = ("op", "scope") if scoped else ("op",)
    head = (*words, "times", "itself", "in all")
    return Table(title, head, len(words), len(words), rows, len(counted.dearest) - len(rows))


def _op(name: str) -> str:
    """The engine's ranges without the words that each of them begins with."""
    return f"engine: {name.partition(': ')[2]}" if is_engine(name) and ": " in name else name


def _often(per_step: float) -> str:
    return f"{per_step:,.0f}" if per_step >= 10 else f"{per_step:.3g}"


def _time(us: float) -> str:
    return duration(us) if us > 0 else "–"


def _sampling(sampled: SampledHost) -> str:
    """How it was sampled, and what that did to the steps."""
    said = f"Sampled without the profiler: {sampled.samples:,} samples in {sampled.steps:,} steps"
    if sampled.overhead is None:
        return f"{said}."
    if sampled.overhead < 0.005:
        return f"{said}, which it made no longer."
    return f"{said}, which it made {percent(sampled.overhead, 1.0)} longer."
