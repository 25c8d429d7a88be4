"""Project a calibrated step with syncs removed and a way to launch: both at once, with a range.

The step is replayed with what a compile leaves of its network (`compiled`), and without the chosen syncs. The range
holds what compiled networks were measured to take (`LEAST` to `MOST`), what may go along with a sync, and what isn't
known of frames that stay eager.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from syncscan.model.finding import Finding, Removal
from syncscan.model.habit import Change
from syncscan.model.projection import Projection, Schedule
from syncscan.model.step import REPEATABILITY
from syncscan.model.step_times import StepTimes
from syncscan.model.trace import Trace
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.compile_changes import LEAST, LIKELY, MOST, Costs, Launching, change_of
from syncscan.whatif.compile_reach import Reach, reach, reach_of_graph
from syncscan.whatif.graph import Graph
from syncscan.whatif.replay import Replay, Steady, period, steady
from syncscan.whatif.replayed_steps import NO_CHANGE, ReplayedSteps, both, with_change
from syncscan.whatif.spared_work import spared_ops
from syncscan.whatif.unfold import StepSchedules

UNSURE, MOST_UNSURE = 0.06, 0.1
"""Within which part of it a step's time is known where capture doesn't tell, and at the most that counts."""
EAGER_FRAMES = {Launching.COMPILE: (0.0, 0.13, 0.26), Launching.REDUCE_OVERHEAD: (-0.34, 0.0, 0.1)}
"""The part by which a step still gets longer if its network stays eager for a break in a loop: at the least,
likely and at the most. Dynamo looks at its frames in vain, and modules of the program's own within that loop are
compiled one by one. Measured in nine programs (H100, torch 2.11): compiled 1.01 to 1.30; with CUDA graphs 0.62 to 0.69
where there are such modules, else 0.99 to 1.03 (1.19 in one whose times scatter by half)."""
DYNAMIC = (
    "The compiled part would contain a data-dependent shape: `reduce-overhead` records a new CUDA graph for each size, "
    "which can take many times as long as the step does now."
)
STAYS_EAGER = (
    "The remaining syncs break the network's graph in a loop: dynamo runs that whole function eagerly. Your modules "
    "that it calls may still be compiled one by one; the range allows for that."
)


class Joint:
    """Projects a step with syncs removed and launches replaced; ways that reach the same share `reached`."""

    def __init__(
        self,
        trace: Trace,
        steps: ReplayedSteps,
        findings: Sequence[Finding],
        changed: Callable[[Change], Graph],
        step: CalibratedStep,
        how: Launching,
        reached: dict[frozenset[str], Reach],
    ) -> None:
        self.trace, self.steps, self.findings, self.changed = trace, steps, findings, changed
        self.step, self.how = step, how
        self._reached = reached
        self._made: dict[tuple[int, Costs, frozenset[str]], Graph] = {}
        self._projected: dict[tuple[str, ...], Projection] = {}
        self._aside: dict[frozenset[str], Change] = {}

    def projection(self, removed: Sequence[Finding]) -> Projection:
        ids = tuple(f.id for f in removed)
        if ids not in self._projected:
            self._projected[ids] = self._project(removed)
        return self._projected[ids]

    def _project(self, removed: Sequence[Finding]) -> Projection:
        plain, extent = self.step.projection(removed), self._reach(removed)
        graph = self._graph(extent, LIKELY, removed)
        after = self._after(graph, removed)
        least, likely, most = self._eager_shares(extent)
        predicted = (after.period + likely * self.step.before.period) * self.step.unit
        return replace(
            plain,
            predicted_us=predicted,
            range_us=self._range(extent, removed, predicted, (least - likely, most - likely)),
            bound_after=self.step.bound(after, graph),
            host_limit_us=after.host * self.step.unit,
            device_limit_us=after.device * self.step.unit,
            notes=(*plain.notes, *self._notes(extent, removed)),
            launches=self.how.value,
        )

    def breaking(self) -> tuple[Finding, ...]:
        return self._reach([]).breaking

    def keeps_frames_eager(self) -> bool:
        """Return whether a sync breaks the graph in a loop, so that a whole function stays eager."""
        return bool(self._reach([]).eager)

    def change(self, removed: Sequence[Finding]) -> Change:
        """Return what a compile, and what only these findings needed, likely change of the step without them."""
        return both(change_of(self._reach(removed), self.how, LIKELY), self._further(removed))

    def likely_us(self, removed: Sequence[Finding]) -> float:
        extent = self._reach(removed)
        _, likely, _ = self._eager_shares(extent)
        period = self._after(self._graph(extent, LIKELY, removed), removed).period
        return (period + likely * self.step.before.period) * self.step.unit

    def schedule(self, removed: Sequence[Finding], at: int | None) -> Schedule:
        """Return one step without these findings, launched so, launch by launch, as it is likely.

        What frames cost that stay eager is added to its end: where in the step that falls isn't known.
        """
        extent = self._reach(removed)
        replay = self.step.replay_of(self._graph(extent, LIKELY, removed))
        changed = with_change(self.steps, self.change(removed))
        drawn = StepSchedules(changed, replay, self.step.replay).schedule(at, self._numbers(removed))
        _, likely, _ = self._eager_shares(extent)
        unplaced = round(likely * (drawn.end - drawn.begin))
        return replace(drawn, replayed_end=drawn.replayed_end + unplaced, unplaced=unplaced)

    def _numbers(self, removed: Sequence[Finding]) -> frozenset[int]:
        return frozenset(self.step.number[f.id] for f in removed) - self.step.behind

    def _reach(self, removed: Sequence[Finding]) -> Reach:
        """Return what a compile reaches without these; syncs outside of the network prevent nothing."""
        ids = frozenset(f.id for f in removed)
        if ids:
            ids &= frozenset(f.id for f in self.breaking())
        if ids not in self._reached:
            find = reach_of_graph if self.how is Launching.GRAPH else reach
            self._reached[ids] = find(self.trace, self.steps.intervals, self.findings, ids)
        return self._reached[ids]

    def _graph(self, reach: Reach, costs: Costs, removed: Sequence[Finding] = ()) -> Graph:
        """Return the steps with what a compile of these costs leaves, without what only these findings needed."""
        if self.how is Launching.EAGER or not reach.pieces:
            costs = LIKELY  # there is nothing that any would change
        key = id(reach), costs, frozenset(f.id for f in removed)
        if key not in self._made:
            change = change_of(reach, self.how, costs)
            self._made[key] = self._busy(self.changed(both(change, self._further(removed))))
        return self._made[key]

    def _further(self, removed: Sequence[Finding]) -> Change:
        """Return what goes along with these findings, as only they needed it."""
        if not removed:
            return NO_CHANGE
        ids = frozenset(f.id for f in removed)
        if ids not in self._aside:
            self._aside[ids] = spared_ops(self.trace, self.steps.intervals, removed)
        return self._aside[ids]

    def _busy(self, graph: Graph) -> Graph:
        """Return the graph with the time for which its device is busy, which is less as its streams' work is."""
        was, now = (sum(sum(p.stream_ns) for p in g.programs) for g in (self.step.graph, graph))
        return replace(graph, busy_ns=self.step.graph.busy_ns * now / was) if was else graph

    def _after(self, graph: Graph, removed: Sequence[Finding]) -> Steady:
        return self.step.paced(steady(self.step.replay_of(graph), self._numbers(removed)))

    def _range(
        self, reach: Reach, removed: Sequence[Finding], predicted: float, skipped: tuple[float, float]
    ) -> tuple[float, float]:
        base = self.step.before.period * self.step.unit
        if not base:
            return 0.0, 0.0
        ratio, (_, more, _) = predicted / base, self._eager_shares(reach)
        ratios = [ratio, *(us / base + more for us in self._others(reach, removed))]
        unsure = self._unsure * ratio
        less = math.hypot(ratio - min(ratios) - skipped[0], unsure) + REPEATABILITY
        above = math.hypot(max(ratios) - ratio + skipped[1], unsure) + REPEATABILITY
        return max(ratio - less, 0.0) * base, (ratio + above) * base

    @cached_property
    def _unsure(self) -> float:
        """Within which part of it the step's time is known."""
        stored = self.trace.info.capture
        times = StepTimes(stored.unprofiled_step_us or 0.0, stored.unprofiled_steps_us, "")
        return min(max(times.uncertainty or 0.0, UNSURE), MOST_UNSURE)

    def _others(self, reach: Reach, removed: Sequence[Finding]) -> Iterator[float]:
        for graph in self._graphs(reach, removed):
            yield self._after(graph, removed).period * self.step.unit
        numbers = self._numbers(removed)
        for slack in self.step.calibration.slack:
            whole = period(slack)
            then = period(Replay(self._graph(reach, LIKELY, removed), slack.scale, slack.stretch), numbers)
            yield then / whole * self.step.before.period * self.step.unit if whole else 0.0

    def _graphs(self, reach: Reach, removed: Sequence[Finding]) -> Iterator[Graph]:
        """Yield the step with the least costs, also without what only fed the syncs that go; and with the most."""
        yield self._graph(reach, LEAST)
        yield self._graph(reach, MOST)
        if removed:
            yield self._graph(reach, LEAST, removed)

    def _eager_shares(self, reach: Reach) -> tuple[float, float, float]:
        """Return the part by which passes that stay eager lengthen the step: at the least, likely and at the most."""
        least, likely, most = EAGER_FRAMES.get(self.how, (0.0, 0.0, 0.0))
        eager_ns, period = reach.eager_ns / max(1, len(self.steps.intervals)), self.step.before.period
        share = min(1.0, self.step.replay.scale * eager_ns / period) if period else 0.0
        return share * least, share * likely, share * most

    def _notes(self, reach: Reach, removed: Sequence[Finding]) -> Iterator[str]:
        if self.how in (Launching.EAGER, Launching.GRAPH):
            return
        if reach.eager:
            yield STAYS_EAGER
        inside = [f for f in reach.breaking if f.removal is Removal.KERNELS]
        if self.how is Launching.REDUCE_OVERHEAD and inside:
            yield DYNAMIC
