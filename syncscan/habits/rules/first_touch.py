"""Yield the habit for pages that the step's thread touched first while sampled, by the time they took."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.rules.sampled_work import WorkKind, by_phase, gained, kinds
from syncscan.model.duration import duration
from syncscan.model.habit import Habit, SampledTime
from syncscan.model.host import HostNode, SampledHost
from syncscan.rules.pages import advice_of

SPREAD = (0.6, 1.75)
"""Range of a page's cost, relative to touching fresh pages right after the samples: what is written and what else is in
the caches matters (1.1 to 1.6 times as much in torch.ones and torch.stack of 40 MB, glibc 2.36, 2 cores, a virtual
machine)."""
IN_HUGE = 512
"""Number of small pages whose cost bounds that of clearing a huge page, which they fill (x86-64: 2 MB, 4 kB)."""
PLACES = 3
"""Number of lines named in the evidence."""
LEAST_PART = 0.05
"""Least share of the pages for a line to be named."""
FILLING = 0.25
"""Least share of a line's time for its pages from which on it does little else, and all its time may be theirs: they
took 0.57 to 0.75 of such lines on 2 cores, and on an H200's host, where 16 threads fill a buffer, 0.52 by their price.
Other lines mostly do something else."""


class Touched(msgspec.Struct, frozen=True):
    """Pages that a step's thread touches first, by nodes of the sampled tree, without those of other habits."""

    pages: tuple[float, ...]
    page_us: float
    system_us: float
    """Time in system code meanwhile; 0 if unknown."""
    filling_us: float
    """All time of the lines that do little else."""
    huge: float
    """Upper bound of the number of huge pages."""

    @property
    def surely_us(self) -> float:
        """Least cost of this many small pages."""
        return SPREAD[0] * sum(self.pages) * self.page_us

    @property
    def likely_us(self) -> float:
        """The system's time, limited to the most that this many pages can cost; their price if it is unknown.

        It was all that reused buffers saved a single thread: 22.6 of 22.5 ms in torch.stack of 38 MB, 12.1 of 12.4 with
        numpy's huge pages (2 cores, a virtual machine).
        """
        small, huge = sum(self.pages) - self.huge, self.huge * IN_HUGE
        if not self.system_us:
            return sum(self.pages) * self.page_us
        return max(self.surely_us, min(self.system_us, SPREAD[1] * (small + huge) * self.page_us))

    @property
    def most_us(self) -> float:
        """All time of lines that do little else, and of freeing the memory, which is at most that of touching it.

        Other threads that fill the same buffer touch pages too, delay each other, and are waited for in that line.
        """
        return max(SPREAD[1] * self.likely_us, self.filling_us + self.likely_us)


def find(context: Context) -> Iterable[Habit]:
    sampled = context.sampled
    touched = _touched(sampled) if sampled else None
    if sampled is None or touched is None or touched.likely_us < context.notable_us:
        return
    low, likely, high = touched.surely_us, touched.likely_us, touched.most_us
    habit = context.habit(
        advice_of("first-touch"), [], min(high, context.period_us), _evidence(context, sampled, touched)
    )
    yield replace(habit, gain=gained(context, likely, low, high), per_step=1.0, sampled=_placed(sampled, touched))


def _placed(sampled: SampledHost, touched: Touched) -> SampledTime:
    """Return the likely time, spread over phases as the pages are."""
    page_us = touched.likely_us / sum(touched.pages)
    pairs = zip(sampled.nodes, touched.pages, strict=True)
    phases = by_phase((node.phase, n * page_us) for node, n in pairs)
    most = max(zip(touched.pages, sampled.nodes, strict=True), key=lambda pair: pair[0])[1]
    own = sampled.in_program(most)
    return SampledTime("touches fresh memory", phases, in_ops=True, line=own.place if own else "")


def _touched(sampled: SampledHost) -> Touched | None:
    used = sampled.used
    if used is None or used.fault_us is None:
        return None
    elsewhere = (WorkKind.LOADING, WorkKind.COLLATING)
    own = [kind not in elsewhere for kind in kinds(sampled.nodes)]
    pages = tuple(n if counts else 0.0 for n, counts in zip(used.faults_in, own, strict=True))
    if not sum(pages):
        return None
    touching = [max(n * used.fault_us, us) for n, us in zip(pages, used.touching_us, strict=True)]
    return Touched(
        pages=pages,
        page_us=used.fault_us,
        system_us=sum(us for us, n in zip(used.touching_us, pages, strict=True) if n),
        filling_us=sum(
            node.self_us
            for node, us in zip(sampled.nodes, touching, strict=True)
            if us and us >= FILLING * node.self_us
        ),
        huge=min(sum(pages), used.huge),
    )


def _evidence(context: Context, sampled: SampledHost, touched: Touched) -> list[str]:
    pages, lines = sum(touched.pages), dict[str, float]()
    for number, n in enumerate(touched.pages):
        place = _place(sampled, sampled.nodes[number])
        lines[place] = lines.get(place, 0.0) + n
    most = sorted(lines, key=lambda place: -lines[place])[:PLACES]
    lines_text = ", ".join(
        f"{place} ({lines[place] / pages:.0%})" for place in most if lines[place] >= LEAST_PART * pages
    )
    took = f"{duration(touched.likely_us)} ({touched.likely_us / context.period_us:.0%} of the step)"
    how = "in the kernel of the OS meanwhile" if touched.system_us else f"at {touched.page_us:.2f} µs each"
    huge = f", {touched.huge:.0f} of them huge" if touched.huge >= LEAST_PART * pages else ""
    return [f"{pages:.0f} pages per step are touched for the first time{huge}: {took} {how}", f"in {lines_text}"]


def _place(sampled: SampledHost, node: HostNode) -> str:
    """Return the program's line that led to this node, or the node's own line."""
    of = sampled.in_program(node) or node
    return f"{of.place} {of.function}"
