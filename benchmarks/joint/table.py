"""Print what removing syncs and compiling gained, alone and together: `python -m benchmarks.joint.table [RESULTS]`.

Each program was timed in six states, in turn: with its syncs or without, eager, under `torch.compile`, and under
`torch.compile(mode="reduce-overhead")`. `recorded/results.jsonl` is of an NVIDIA H100 with torch 2.11, made by
`run.sh`; the tars beside it hold the profiler's recordings of the eager programs and of seven compiled ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded" / "results.jsonl"
STATES = ("sync eager", "none eager", "sync compile", "none compile", "sync reduce", "none reduce")


def rows(results: Path) -> list[tuple[str, list[float]]]:
    """Return each program's name and the median step time of each of `STATES`, in ms."""
    programs: list[dict[str, Any]] = [json.loads(line) for line in results.read_text().splitlines()]
    return sorted((p["program"], [statistics.median(p["ms"][state]) for state in STATES]) for p in programs)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=RECORDED)
    print("| ms per step | as it is | syncs removed | compile | both | reduce-overhead | both |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, times in rows(parser.parse_args().results):
        print(f"| `{name}` | " + " | ".join(f"{ms:.2f}" for ms in times) + " |")


if __name__ == "__main__":
    main()
