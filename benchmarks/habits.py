"""Compare the projected step without a habit with the recorded one: a Markdown table.

    python -m benchmarks.habits [FOLDER]     of the recordings in sample_traces/programs/recorded, or in FOLDER

Each pair was recorded on one GPU by sample_traces/programs/record.py; times are those that the captures took without
the profiler. tests/habits/test_recordings.py holds projections to them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from syncscan import api
from syncscan.model.duration import duration
from syncscan.model.habit import Basis

RECORDED = Path(__file__).parent.parent / "sample_traces" / "programs" / "recorded"
PAIRS = (
    ("copy-in-line", "copies.pinned", "copies.prefetched"),
    ("loader-no-workers", "loader.none", "loader.enough"),
    ("loader-few-workers", "loader.few", "loader.enough"),
    ("fp32-matmul", "tips.fp32", "tips.tf32"),
    ("fp32-matmul", "tips.fp32", "tips.bf16"),
    ("optimizer-loop", "tips.optimizer_loop", "tips.optimizer_fused"),
    ("launch-bound", "tips.eager", "tips.graph"),
    ("host-built-tensor", "copies.cpu_built", "copies.pageable"),
    ("inline-pin", "copies.inline_pin", "copies.pinned"),
)
"""Habit, the recording with it, the one without. `host-built-tensor` leaves a pageable copy, which is a sync."""


def row(rule: str, bad: str, good: str, folder: Path = RECORDED) -> str:
    """One pair as a row: the unprofiled step with the habit, the projection with its range, the step without."""
    analysis, without = (api.analyze(folder / f"{name}.pt.trace.json.gz") for name in (bad, good))
    (habit,) = (h for h in analysis.habits if h.rule == rule)
    step = analysis.step.unprofiled_us
    assert step is not None
    assert habit.recoverable_us is not None
    assert habit.recoverable_range_us is not None
    low, high = habit.recoverable_range_us
    bound = "at best " if habit.basis is Basis.UPPER_BOUND else ""
    predicted = f"{bound}{duration(step - habit.recoverable_us)} ({duration(step - high)} to {duration(step - low)})"
    return f"| `{rule}` | `{bad}` | {duration(step)} | {predicted} | {duration(without.step.unprofiled_us or 0.0)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    folder = parser.parse_args().folder
    print("| habit | recording | with it | predicted without | measured without |\n|---|---|---|---|---|")
    for rule, bad, good in PAIRS:
        print(row(rule, bad, good, folder))


if __name__ == "__main__":
    main()
