"""Fit what a compiled network costs its host to 23 of the programs: `python -m benchmarks.joint.fit`.

Prints the likely costs that stand in `syncscan/whatif/compile_changes.py` (`LIKELY`). Nothing of the others is read.
Takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import statistics
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

import syncscan
from benchmarks.joint.score import FILES, RECORDED, STATES, fitted, measured
from syncscan.model.finding import Finding
from syncscan.whatif import joint
from syncscan.whatif.compile_changes import LIKELY, Costs
from syncscan.whatif.joint import Joint

COSTS = ("op", "library", "kernel", "call", "replay", "gradient", "call_only", "replay_only", "ops_only")
FACTORS = (0.8, 0.9, 1.1, 1.25)
FAR = 0.2
"""A part of the step: a state that is off by more tells no more about costs."""


class Fitted(NamedTuple):
    """A state of a program that a compile reaches, and the part of the step that it took."""

    joint: Joint
    removed: Sequence[Finding]
    measured: float

    def projected(self, costs: Costs) -> float:
        """Return the state's part of the step at these costs."""
        joint.LIKELY = costs
        self.joint._made.clear()
        return self.joint.likely_us(self.removed) / (self.joint.step.before.period * self.joint.step.unit)


def states_of(recording: Path, ms: dict[str, float]) -> Iterator[Fitted]:
    """Yield the compiled states of a program that has no frame that stays eager.

    What a replacement doesn't compute isn't the compile's doing: without syncs, the measured share is set off by what
    the eager step was measured to take then, beside what is projected for it.
    """
    analysis = syncscan.analyze(recording)
    step_ms, projector = ms["sync eager"], analysis.projector
    plain = projector.joint("eager", step_ms).likely_us(analysis.findings) / 1e3 if analysis.findings else step_ms
    for state, (launches, without) in STATES.items():
        joined = projector.joint(launches, step_ms)
        removed = analysis.findings if without else []
        if launches != "eager" and not joined._reach(removed).eager:
            scale = plain / ms["none eager"] if without else 1.0
            yield Fitted(joined, removed, ms[state] * scale / step_ms)


def _states(results: str, programs: Sequence[str]) -> Iterator[Fitted]:
    truth = measured(RECORDED / f"{results}.jsonl")
    archive = next(recordings for name, recordings, _ in FILES if name == results)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RECORDED / archive) as tar:
            tar.extractall(folder, filter="data")
        for name in programs:
            yield from states_of(Path(folder) / f"{name}.json.gz", truth[name])


def off(states: Sequence[Fitted], costs: Costs) -> float:
    """Return how far the projections are off on average, in parts of the step."""
    return statistics.mean(min(abs(state.projected(costs) - state.measured), FAR) for state in states)


def descended(costs: Costs, error: Callable[[Costs], float]) -> Costs:
    """Return the costs that no change of one of them improves."""
    least, better = error(costs), True
    while better:
        better = False
        for name in COSTS:
            for factor in FACTORS:
                tried = replace(costs, **{name: round(getattr(costs, name) * factor, 3)})
                if (now := error(tried)) < least - 1e-4:
                    costs, least, better = tried, now, True
        print(f"off by {least:.2%} of the step on average: {costs}", flush=True)
    return costs


def main() -> None:
    """Print the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    states = [state for results, programs in fitted().items() for state in _states(results, programs)]
    print(f"{len(states)} states; off by {off(states, LIKELY):.2%} with the costs as they are")
    descended(LIKELY, lambda tried: off(states, tried))


if __name__ == "__main__":
    main()
