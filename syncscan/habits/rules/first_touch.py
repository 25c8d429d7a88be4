"""Host memory that is fresh in every step: its pages are made when they are first touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, gained, kinds
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.host import USER, HostNode, SampledHost

ADVICE = Advice(
    rule="first-touch",
    area=Area.HOST,
    title="The step's thread takes fresh host memory in every step",
    why=(
        "The C library gives large buffers (above 32 MB always) back to the system as soon as they are freed. The next "
        "ones are new: at the first touch of each page the system clears it and maps it."
    ),
    fix=(
        "Keep the buffers and fill them again: torch.stack(samples, out=batch), numpy's out=, tensor.copy_; one that "
        "is pinned once spares a copy too. Without a change to the program: MALLOC_MMAP_MAX_=0 "
        "MALLOC_TRIM_THRESHOLD_=10000000000 in its environment, or jemalloc, so that freed memory is kept."
    ),
    when_fine="When the device has work for as long, or memory is scarce.",
)
SPREAD = (0.6, 1.75)
"""A page costs from this to that part of what touching fresh ones costs right after the samples: what is written to it
and what else is in the caches matters (1.1 to 1.6 times as much in torch.ones and torch.stack of 40 MB, glibc 2.36,
2 cores, a virtual machine)."""
PLACES = 3
"""Lines that the evidence names."""


def find(context: Context) -> Iterable[Habit]:
    """Pages that the step's thread touched first while it was sampled, by what one costs on that machine.

    What a loader or a collate function touches is theirs.
    """
    sampled = context.sampled
    if sampled is None or sampled.used is None or sampled.used.fault_us is None:
        return
    own = _own(sampled, sampled.used.faults_in)
    pages = sum(own)
    took = pages * sampled.used.fault_us
    if took < context.notable_us:
        return
    low, high = (part * took for part in SPREAD)
    habit = context.habit(ADVICE, [], min(high, context.period_us), _evidence(context, sampled, own, took))
    yield replace(habit, gain=gained(context, took, low, high), per_step=1.0)


def _own(sampled: SampledHost, faults: Sequence[float]) -> list[float]:
    """The pages of each node, none of those that another habit's time holds."""
    elsewhere = (Kind.LOADING, Kind.COLLATING)
    return [0.0 if kind in elsewhere else pages for pages, kind in zip(faults, kinds(sampled.nodes), strict=True)]


def _evidence(context: Context, sampled: SampledHost, own: Sequence[float], took: float) -> list[str]:
    pages, cost = sum(own), took / sum(own)
    lines: dict[str, float] = {}
    for number, touched in enumerate(own):
        place = _place(sampled.nodes, number)
        lines[place] = lines.get(place, 0.0) + touched
    most = sorted(lines, key=lambda place: -lines[place])[:PLACES]
    where = ", ".join(f"{place} ({lines[place] / pages:.0%})" for place in most if lines[place] >= 0.05 * pages)
    return [
        f"{pages:.0f} pages a step are touched first, at {cost:.2f} µs each on this machine: {took / 1e3:.2f} ms "
        f"({took / context.period_us:.0%} of the step)",
        f"in {where}",
    ]


def _place(nodes: Sequence[HostNode], number: int) -> str:
    """The program's line that led to this node, or its own where none did."""
    at = number
    while at >= 0 and nodes[at].owner != USER:
        at = nodes[at].parent
    node = nodes[at if at >= 0 else number]
    return f"{PurePath(node.file.replace(chr(92), '/')).name}:{node.line} {node.function}"
