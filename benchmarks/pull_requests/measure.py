"""Record each program's `before`, project it without the syncs that the pull request took, and prove before and after.

    python -m benchmarks.pull_requests.measure OUT [--part K/N] [--only NAME …] [--limit SECONDS] [--paired SECONDS]
                                                   [--device cpu]

run.sh calls this, once for each GPU of the machine with a part of the programs. One process makes all recordings,
with the step's time without the profiler, and times blocks of steps of before and after in turn, for `--paired`
seconds; `syncscan prove` then starts its own processes, for some 40 s a program (`--limit 0` leaves it out).
`OUT/results.K.jsonl` gets a line as soon as a program is through, `OUT/recordings` its trace.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.pull_requests.table import REMOVED

PROGRAMS = Path(__file__).parent / "programs"
WARM = 5
BLOCK = 10
"""Steps timed in one go."""


def recorded(name: str, step: Callable[[], Any], out: Path) -> Path:
    """Record some steps, and return the trace's path."""
    import syncscan

    for _ in range(WARM):
        step()
    with syncscan.profile(out, name, calibrate=20) as capture:
        for _ in range(3 + 20 + 1 + 4 + 3 + 2):
            step()
            capture.step()
    (path,) = out.glob(f"{name}*.json*")
    return path


def projected(name: str, trace: Path) -> tuple[dict[str, Any], Any]:
    """Return what the trace says of the step, and the projection without the syncs that go."""
    import syncscan

    analysis = syncscan.analyze(trace)
    chosen = REMOVED.get(name, ["all"])
    projection = analysis.whatif(*chosen)
    own = [f for f in analysis.findings if not f.intended]
    step = analysis.step
    summary = {
        "bound": step.bound.value,
        "reason": step.reason,
        "observed_us": step.observed_us,
        "unprofiled_us": step.unprofiled_us,
        "wait_us": step.wait_us,
        "waits": sum(f.per_step for f in own),
        "rules": sorted({f.rule for f in own}),
        "saving_us": projection.saving_us,
        "baseline_us": projection.baseline_us,
        "range_us": projection.range_us,
        "device_share": step.device_share,
    }
    return summary, projection


def proven(name: str, projection: Any, limit_s: float) -> dict[str, Any]:
    """Return what `syncscan prove` measures of before and after."""
    import syncscan

    file = PROGRAMS / f"{name}.py"
    proof = syncscan.prove(f"{file}:before", f"{file}:after", limit_s=limit_s, projected=projection)
    gain = proof.gain
    return {
        "verdict": proof.verdict.value,
        "gain": gain and [gain.share, gain.low, gain.high],
        "before_us": proof.before_us,
        "after_us": proof.after_us,
        "same": proof.result.same.value,
        "pairs": len(proof.pairs),
        "seconds": proof.seconds,
    }


def paired(before: Callable[[], Any], after: Callable[[], Any], seconds: float, cuda: bool) -> dict[str, Any]:
    """Time blocks of steps of two programs in turn, in this process.

    Returns:
        The median gain over pairs of blocks with the 95 % interval of that median (order statistics), and the median
        step times, µs.
    """
    for step in (before, after):
        for _ in range(2 * WARM):
            step()
    pairs: list[tuple[float, float]] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(pairs) < 12:
        order = (before, after) if len(pairs) % 2 else (after, before)
        times = {step: _block(step, cuda) for step in order}
        pairs.append((times[before], times[after]))
    gains = sorted(1 - new / old for old, new in pairs)
    reach = int(0.98 * len(gains) ** 0.5)
    middle = len(gains) // 2
    low, high = gains[max(0, middle - reach - 1)], gains[min(len(gains) - 1, middle + reach)]
    before_us, after_us = (sorted(column)[len(pairs) // 2] for column in zip(*pairs, strict=True))
    return {"gain": [gains[middle], low, high], "before_us": before_us, "after_us": after_us, "pairs": len(pairs)}


def _block(step: Callable[[], Any], cuda: bool) -> float:
    """Return the time of a step, µs, over a block of steps."""
    import torch

    if cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(BLOCK):
        step()
    if cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / BLOCK * 1e6


def main() -> None:
    """Measure what the command line names."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("out", type=Path)
    words.add_argument("--only", nargs="*", default=sorted(p.stem for p in PROGRAMS.glob("[a-z]*.py")))
    words.add_argument("--limit", type=float, default=40.0, help="seconds of each proof; 0 for none")
    words.add_argument("--paired", type=float, default=6.0, help="seconds of blocks in turn")
    words.add_argument("--part", default="1/1", help="of the programs, as 2/4")
    words.add_argument("--device", default="cuda")
    given = words.parse_args()
    part, parts = map(int, given.part.split("/"))
    names = given.only[part - 1 :: parts]
    os.environ["PULL_REQUESTS_DEVICE"] = given.device
    import torch

    (given.out / "recordings").mkdir(parents=True, exist_ok=True)
    cuda = given.device == "cuda"
    device = torch.cuda.get_device_name() if cuda else "CPU"
    traces = {}
    for name in names:
        torch.manual_seed(0)
        step = importlib.import_module(f"benchmarks.pull_requests.programs.{name}").before()
        traces[name] = recorded(name, step, given.out / "recordings")
        del step
        if cuda:
            torch.cuda.empty_cache()
    for name in names:
        began = time.monotonic()
        line = {"name": name, "device": device, "torch": torch.__version__}
        try:
            summary, projection = projected(name, traces[name]) if cuda else ({}, None)
            line |= {"projected": summary}
            torch.manual_seed(0)
            program = importlib.import_module(f"benchmarks.pull_requests.programs.{name}")
            line |= {"paired": paired(program.before(), program.after(), given.paired, cuda)}
            if given.limit:
                line |= {"proof": proven(name, projection, given.limit)}
        except Exception as error:  # one program that fails leaves the others their time
            line["error"] = f"{type(error).__name__}: {error}"
        with (given.out / f"results.{part}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(name, f"{time.monotonic() - began:.1f} s", line.get("error", ""), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
