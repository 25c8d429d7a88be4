"""Compare what is projected for each state of each program with what was measured: `python -m benchmarks.joint.score`.

The programs are shown in two halves, every other one by name. The cost of a compiled network
(`syncscan/whatif/compile_changes.py`) was fitted to eleven of them and checked against all, so
neither half is held out strictly. A state is inside where the measured share of the step is within the projected range
or 6 % of the step beside it, which is about how far two runs of the same program differ on these hosts. An order is
wrong where a state that was measured to be faster by more than 12 % of the step is projected to be no faster.

The recordings were made when the states had been timed and their kernels counted, with CUPTI still in the process: a
step took up to twice as long then. So each is set to the time that its program took in turn with the other states.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import syncscan

RECORDED = Path(__file__).parent / "recorded"
STATES = {
    "sync compile": ("compile", False),
    "sync reduce": ("reduce-overhead", False),
    "none eager": ("eager", True),
    "none compile": ("compile", True),
    "none reduce": ("reduce-overhead", True),
}
FREE, APART = 0.06, 0.12


class Scored(NamedTuple):
    """A state of a program; all but the names in parts of the step as it is."""

    program: str
    state: str
    projected: float
    low: float
    high: float
    measured: float

    @property
    def error(self) -> float:
        """How far the projection is off."""
        return abs(self.projected - self.measured)

    @property
    def inside(self) -> bool:
        """Whether the measured time lies in the range, give or take what runs differ by."""
        return self.low - FREE <= self.measured <= self.high + FREE


def measured(results: Path) -> dict[str, dict[str, float]]:
    """Return the median time of a step of each program in each state, in ms."""
    programs = [json.loads(line) for line in results.read_text().splitlines()]
    return {p["program"]: {state: statistics.median(ms) for state, ms in p["ms"].items()} for p in programs}


def scored(recording: Path, program: str, ms: dict[str, float]) -> Iterator[Scored]:
    """Yield what is projected of a program's eager recording for each of `STATES`, beside what was measured."""
    analysis = syncscan.analyze(recording)
    for state, (launches, removed) in STATES.items():
        if state in ms:
            remove = ["all"] if removed and analysis.findings else []
            p = analysis.whatif(*remove, launches=launches, step_ms=ms["sync eager"])
            low, high = (us / p.baseline_us for us in p.range_us)
            yield Scored(program, state, p.predicted_us / p.baseline_us, low, high, ms[state] / ms["sync eager"])


def wrong_orders(of: Sequence[Scored]) -> list[tuple[Scored, Scored]]:
    """Return the pairs of a program's states of which the first is faster and projected not to be."""
    pairs = [(a, b) for a in of for b in of if a.program == b.program]
    return [(a, b) for a, b in pairs if a.measured < b.measured - APART and a.projected >= b.projected]


def summary(of: Sequence[Scored]) -> str:
    """Return the figures of these states in one line."""
    errors = [each.error for each in of]
    width = statistics.mean(each.high - each.low for each in of)
    return (
        f"{len(of)} states: median error {statistics.median(errors):.1%}, worst {max(errors):.1%} of the step;"
        f" inside {sum(each.inside for each in of)}/{len(of)}; mean width {width:.0%};"
        f" order wrong {len(wrong_orders(of))}"
    )


def main() -> None:
    """Print each state, and the figures of both halves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="only these")
    chosen = parser.parse_args().programs
    truth, parts = measured(RECORDED / "results.jsonl"), {"first half": list[Scored](), "second half": list[Scored]()}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RECORDED / "eager.tar") as tar:
            tar.extractall(folder, filter="data")
        for at, program in enumerate(sorted(truth)):
            if not chosen or program in chosen:
                states = list(scored(Path(folder) / f"{program}.json.gz", program, truth[program]))
                parts["second half" if at % 2 else "first half"] += states
                for s in states:
                    between = f"{s.low:.2f} to {s.high:.2f}"
                    print(f"| `{program}` | {s.state} | {s.projected:.2f} | {between} | {s.measured:.2f} |", end="")
                    print("" if s.inside else " outside |", flush=True)
    for name, states in parts.items():
        for a, b in wrong_orders(states):
            print(f"{a.program}: {a.state} is faster than {b.state}")
        print(f"{name}: {summary(states)}" if states else f"{name}: none")


if __name__ == "__main__":
    main()
