"""Compare what is projected for each state of each program with what was measured: `python -m benchmarks.joint.score`.

A row a program, a column a state, in parts of the step as it is; `--summary` prints the figures of each part alone.
The programs of `programs.py` are parted in two halves, every other one by name. What a compiled network costs its host
(`LIKELY`, and the ends `LEAST` and `MOST`, in `syncscan/whatif/compile_changes.py`) was fitted to the first half and to
twelve of `kinds.py` (`fit.py`). Which functions stay eager, which kernels a compile leaves, what counts as a call, and
how wide the ends are, was looked at beside all of them: the second half, `unseen.py` and four of `kinds.py` are held
out from the likely costs alone.
A state is inside where the measured share of the step is within the projected range or 6 % of the step beside it,
which is about how far two runs of the same program differ on these hosts. An order is wrong where a state that was
measured to be faster by more than 12 % of the step is projected to be no faster.

The recordings were made when the states had been timed and their kernels counted, with CUPTI still in the process: a
step took up to twice as long then. So each is set to the time that its program took in turn with the other states.
"""

from __future__ import annotations

import argparse
import itertools
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
NAMES = ("compiled", "reduce-overhead", "syncs removed", "both: compiled", "both: reduce-overhead")
"""The states' names as columns of the table."""
FREE, APART = 0.06, 0.12
FILES = (("results", "eager.tar", ""), ("unseen", "unseen.tar", "unseen, "), ("kinds", "kinds.tar", "kinds, "))
"""Results, the archive with their recordings, and what their parts are called first."""
HELD_OUT = ("images", "score", "segment", "speak")
"""Programs of `kinds.py` that no cost was fitted to."""


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


def fitted() -> dict[str, list[str]]:
    """Return the programs that costs were fitted to, by the file that has them: every other one, and most of a kind."""
    kinds = [name for name in sorted(measured(RECORDED / "kinds.jsonl")) if name not in HELD_OUT]
    return {"results": sorted(measured(RECORDED / "results.jsonl"))[::2], "kinds": kinds}


def parts(programs: Sequence[str] = ()) -> dict[str, list[Scored]]:
    """Return the states of the fitted and the other programs, all or only the named ones."""
    states, first = dict[str, list[Scored]](), fitted()
    for results, recordings, other in FILES:
        truth = measured(RECORDED / f"{results}.jsonl")
        for program, scores in _scored(recordings, truth, programs):
            part = f"{other}fitted" if program in first.get(results, []) else f"{other}not fitted"
            states.setdefault(part, []).extend(scores)
    return states


def _scored(
    recordings: str, truth: dict[str, dict[str, float]], programs: Sequence[str]
) -> Iterator[tuple[str, list[Scored]]]:
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RECORDED / recordings) as tar:
            tar.extractall(folder, filter="data")
        for program in sorted(truth):
            if not programs or program in programs:
                yield program, list(scored(Path(folder) / f"{program}.json.gz", program, truth[program]))


def summary(of: Sequence[Scored]) -> str:
    """Return the figures of these states as cells of a table."""
    errors, inside = [each.error for each in of], sum(each.inside for each in of)
    width = statistics.mean(each.high - each.low for each in of)
    cells = (
        f"{len(of)}",
        f"{statistics.median(errors):.1%}",
        f"{max(errors):.0%}",
        f"{inside} ({inside / len(of):.0%})",
        f"{width:.0%}",
        f"{len(wrong_orders(of))}",
    )
    return " | ".join(cells)


def rows(part: str, of: Sequence[Scored]) -> Iterator[str]:
    """Yield a row of the table for each program of a part."""
    for program, states in itertools.groupby(of, lambda state: state.program):
        by_state = {state.state: state for state in states}
        cells = [_cell(by_state.get(state)) for state in STATES]
        yield f"| `{program}` | {part} | {' | '.join(cells)} |"


def _cell(state: Scored | None) -> str:
    if state is None:
        return ""
    real = f"{state.measured:.2f}" if state.inside else f"**{state.measured:.2f}**"
    return f"{state.projected:.2f} ({state.low:.2f} to {state.high:.2f}): {real}"


def main() -> None:
    """Print all parts as a table, or their figures, and below it which orders are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="only these")
    parser.add_argument("--summary", action="store_true", help="only the figures of each part")
    given = parser.parse_args()
    by_part = parts(given.programs)
    if given.summary:
        print("| programs | states | median error | largest | inside | mean width | wrong orders |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for part, states in by_part.items():
            print(f"| {part} | {summary(states)} |")
    else:
        print(f"| program | costs | {' | '.join(NAMES)} |\n|---|---|{'---|' * len(STATES)}")
        for part, states in by_part.items():
            print(*rows(part, states), sep="\n")
    for states in by_part.values():
        for a, b in wrong_orders(states):
            print(f"{a.program}: {a.state} is faster than {b.state}")


if __name__ == "__main__":
    main()
