"""Measure the cost of a wait in an analysis, from detect to JSON: `python -m benchmarks.cost_of_waits TRACE…`.

A trace is analyzed as it is, and once more with its waits called by the names of calls and copies that wait for
nothing: the same events, without sync points. Both take turns, each in a fresh process. Printed are, of each trace, the
processor's time of both (the least of all turns), and what a wait costs beyond its events, and in all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.cli import lean
from syncscan.load import load
from syncscan.model.runtime_calls import allocates, frees, is_blocking_copy, is_synchronize
from syncscan.model.trace import Trace

IDLE, ASYNC, INSIDE = "cudaStreamIsCapturing", "cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"
"""A call that never waits, one that copies without waiting, and a copy that no host waits for."""


def without_waits(trace: Trace) -> Trace:
    """Return the trace with its calls renamed to ones that wait for nothing."""

    def other(name: str) -> str:
        if is_synchronize(name) or frees(name) or allocates(name):
            return IDLE
        if is_blocking_copy(name):
            return ASYNC
        return INSIDE if name.startswith("Memcpy") else name

    return replace(trace, strings=tuple(map(other, trace.strings)))


def seconds(path: str, waits: bool) -> tuple[float, int]:
    """Return the processor time of the stages behind loading and the number of waits; with or without the waits."""
    lean.before_reading()
    trace = load(path) if waits else without_waits(load(path))
    began = time.process_time()
    analysis = analyze_trace(trace)
    analysis.to_json()
    return time.process_time() - began, sum(finding.count for finding in analysis.findings)


IN_A_FRESH_PROCESS = """
import sys
from syncscan.cli import lean
lean.begin()
from benchmarks.cost_of_waits import seconds
print(*seconds(sys.argv[1], sys.argv[2] == "True"))
"""
"""As the command begins."""


def measured(path: Path, waits: bool) -> tuple[float, int]:
    """Return the measurement of a process of its own."""
    command = (sys.executable, "-c", IN_A_FRESH_PROCESS, str(path), str(waits))
    taken, result = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(taken), int(result)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    print("| trace | waits | its events alone, s | with waits, s | a wait beyond its events, µs | in all, µs |")
    print("|---|--:|--:|--:|--:|--:|")
    for path in arguments.traces:
        turns = range(arguments.turns)
        waits, free = zip(*((measured(path, True), measured(path, False)) for _ in turns), strict=True)
        (most, result), (least, left) = min(waits), min(free)
        each = [1e6 * taken / max(result, 1) for taken in (most - least, most)]
        print(f"| {path.name} | {result:,} | {least:.3f} | {most:.3f} | {each[0]:.0f} | {each[1]:.0f} |", flush=True)
        if left > result / 100:
            print(f"({left} waits were left: what a wait costs is more.)")


if __name__ == "__main__":
    main()
