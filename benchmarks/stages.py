"""Measure what each stage of an analysis takes over the repository's recordings, and hold it to a ceiling.

    python -m benchmarks.stages [TRACE …] [--runs 5] [--report]

Each recording is analyzed `--runs` times in one process, the recordings in turn, and the least processor time of each
stage counts. Times are ratios to `json.load` of the unpacked recordings in the same run, so that they mean something on
another machine. Exits with 1 where a stage is above its ceiling, unless `--report` only asks for the table.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

from syncscan import api, report
from syncscan.errors import TraceError
from syncscan.model.stage_clock import StageClock

RECORDINGS = Path(__file__).parents[1] / "sample_traces"

STAGES = ("load", "detect", "attribute", "cost", "whatif", "host", "habits", "states", "remedies", "report")

CEILINGS = {
    "load": 1.3,
    "detect": 0.42,
    "attribute": 0.08,
    "cost": 0.14,
    "whatif": 0.7,
    "host": 0.17,
    "habits": 0.58,
    "states": 1.8,
    "remedies": 0.07,
    "report": 1.1,
}
"""The most that each stage may take, in units of `json.load`: half as much again as measured on two shared cores of an
AMD EPYC (Python 3.11), whose minutes differ by a fifth to a half."""


def cpu_seconds_of_json(path: Path) -> float:
    """Return the processor seconds that `json.loads` takes for an unpacked recording."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    gc.collect()
    start = time.process_time()
    json.loads(text)
    return time.process_time() - start


def cpu_seconds_by_stage(path: Path) -> dict[str, float]:
    """Return the processor seconds of each stage of one analysis, the text and JSON reports as its last stage."""
    gc.collect()
    clock = StageClock()
    analysis = api.analyze(path, clock=clock)
    report.render(analysis, "text")
    report.render(analysis, "json")
    clock.over("report")
    seconds: dict[str, float] = defaultdict(float)
    for stage, _, cpu in clock.costs:
        seconds[stage] += cpu
    return seconds


def measured(paths: list[Path], runs: int) -> tuple[float, dict[str, float]]:
    """Return the seconds of `json.load` and of each stage, summed over recordings, each the least of `runs`."""
    json_least: dict[Path, float] = {}
    least: dict[tuple[Path, str], float] = {}
    for _ in range(runs):
        for path in paths:
            try:
                stages = cpu_seconds_by_stage(path)
            except TraceError:
                continue
            json_least[path] = min(cpu_seconds_of_json(path), json_least.get(path, float("inf")))
            for stage, seconds in stages.items():
                least[path, stage] = min(seconds, least.get((path, stage), float("inf")))
    sums: dict[str, float] = dict.fromkeys(STAGES, 0.0)
    for (_, stage), seconds in least.items():
        sums[stage] = sums.get(stage, 0.0) + seconds
    return sum(json_least.values()), sums


def above_ceiling(ratios: dict[str, float]) -> list[str]:
    """Return the stages whose ratio to `json.load` is above their ceiling."""
    return [stage for stage, ratio in ratios.items() if ratio > CEILINGS.get(stage, 0.0)]


def table(json_seconds: float, seconds: dict[str, float]) -> str:
    """Return the stages as a Markdown table: milliseconds, ratio to `json.load`, ceiling."""
    rows = [
        "| stage | ms | of json.load | ceiling |",
        "|---|--:|--:|--:|",
        f"| `json.load` | {json_seconds * 1e3:.0f} | 1 | |",
    ]
    for stage, taken in seconds.items():
        rows.append(f"| {stage} | {taken * 1e3:.0f} | {taken / json_seconds:.3f} | {CEILINGS.get(stage, 0.0):.3f} |")
    return "\n".join(rows)


def main(argv: list[str] | None = None) -> int:
    """Print the table, and return 1 where a stage is above its ceiling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--report", action="store_true", help="print the table without holding stages to ceilings")
    options = parser.parse_args(argv)
    paths = options.traces or sorted(RECORDINGS.rglob("*.pt.trace.json.gz"))
    json_seconds, seconds = measured(paths, options.runs)
    print(f"{len(paths)} recordings, the least of {options.runs} runs each\n")
    print(table(json_seconds, seconds))
    slow = above_ceiling({stage: taken / json_seconds for stage, taken in seconds.items()})
    if slow and not options.report:
        print(
            f"\nAbove their ceiling: {', '.join(slow)}. Measure again in a quiet minute before you look for the cause."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
