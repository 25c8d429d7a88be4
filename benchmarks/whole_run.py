"""Compare a capture's account of a program's whole run with clocks put into the program by hand.

    python -m benchmarks.whole_run                                  # all four programs, six pairs each, on a GPU
    python -m benchmarks.whole_run --programs classify --pairs 12
    python -m benchmarks.whole_run --device cpu --pairs 1           # on any machine, small

Each program of `benchmarks/whole_runs` runs in turn by itself and under `syncscan profile`. Printed per pair: the mean
step that the report states over the mean step of the run by itself, and for each of the program's parts its share by
the clocks beside the reported one. At the end per program: the median ratio with an interval of its median (95 %, from
order statistics; with fewer than six pairs, all of them).

Both means are of whole cycles: the clocks' begin with the second occurrence of the rarest part.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = {"classify": "100", "evaluate": "20000", "rollout": "2000", "accumulate": "20000"}
"""Each program, and an argument that lets it run longer than any capture."""
FOLDER = Path(__file__).parent / "whole_runs"
BY_ITSELF_S = 8.0
LIMIT_S = 120.0


class Account(NamedTuple):
    """A run's mean step in µs, and the fraction of the run's time of each of its parts."""

    mean_us: float
    shares: dict[str, float]


def of_clocks(changes: Sequence[tuple[str, int]]) -> Account:
    """Return the account of a run by the clocks put into its program.

    Args:
        changes: each part's name and begin (ns); a part ends where the next begins.
    """
    parts = [name for name, _ in changes[:-1]]
    others = set(parts) - {"step"}
    begins = {part: [k for k, name in enumerate(parts) if name == part] for part in others}
    first, last = 3, len(parts)
    if begins:
        rarest = min(begins.values(), key=len)
        if len(rarest) >= 3:
            first, last = rarest[1], rarest[-1]
    spent: dict[str, int] = defaultdict(int)
    for k in range(first, last):
        spent[parts[k]] += changes[k + 1][1] - changes[k][1]
    whole = sum(spent.values())
    steps = sum(1 for k in range(first, last) if parts[k] == "step")
    return Account(whole / steps / 1e3, {part: ns / whole for part, ns in spent.items() if part != "step"})


def by_itself(program: str, device: str, seconds: float) -> Account:
    """Run a program by itself for some seconds, and return what its clocks say."""
    with tempfile.TemporaryDirectory() as folder:
        clocks = Path(folder) / "clocks.json"
        command = [sys.executable, str(FOLDER / f"{program}.py"), PROGRAMS[program]]
        _run(command, device, CLOCKS=str(clocks), CLOCKS_S=str(seconds))
        return of_clocks([(name, at) for name, at in json.loads(clocks.read_text())])


def captured(program: str, device: str) -> Account:
    """Run a program under `syncscan profile`, and return what its report says of the run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "syncscan", "profile", "--out", folder]
        _run([*command, str(FOLDER / f"{program}.py"), PROGRAMS[program]], device)
        (trace,) = Path(folder).glob(f"{program}.*.pt.trace.json*")  # phases have names of their own
        printed = subprocess.run(
            [sys.executable, "-m", "syncscan", "analyze", str(trace), "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        run: dict[str, Any] = json.loads(printed.stdout)["run"]
        return Account(run["mean_us"], {f"{phase['kind']}: {phase['name']}": phase["share"] for phase in run["phases"]})


def _run(command: Sequence[str], device: str, **variables: str) -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    subprocess.run(
        command,
        env={**os.environ, **hidden, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest interval between two of the values that holds their median with 95 %, else all of them.

    Its ends are the k-th lowest and highest value; it misses the median with the probability that fewer than k of n
    tosses of a coin fall on one side (order statistics).
    """
    ordered, n = sorted(values), len(values)
    ends = 0
    while 2 * sum(math.comb(n, k) for k in range(ends + 2)) / 2**n <= 0.05:
        ends += 1
    return ordered[ends], ordered[n - 1 - ends]


def main() -> None:
    """Print the accounts of each pair, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--seconds", type=float, default=BY_ITSELF_S, help="How long a program runs by itself.")
    parser.add_argument("--most-s", type=float, default=3600.0, help="Begin no pair after so many seconds.")
    options = parser.parse_args()
    began = time.monotonic()
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(options.pairs):
        for program in options.programs:
            if time.monotonic() - began > options.most_s:
                break
            alone, reported = by_itself(program, options.device, options.seconds), captured(program, options.device)
            ratios[program].append(reported.mean_us / alone.mean_us)
            shares = {part: round(100 * share, 1) for part, share in alone.shares.items()}
            phases = {part: round(100 * share, 1) for part, share in reported.shares.items() if share}
            print(
                f"{program:10s} {alone.mean_us / 1e3:8.3f} ms, reported {reported.mean_us / 1e3:8.3f} ms, "
                f"ratio {ratios[program][-1]:.3f}; clocks {shares}; reported {phases}",
                flush=True,
            )
    for program, each in ratios.items():
        low, high = interval(each)
        print(f"{program:10s} median ratio {statistics.median(each):.3f} ({low:.3f} to {high:.3f}), {len(each)} pairs")


if __name__ == "__main__":
    main()
