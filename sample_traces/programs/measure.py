"""Measures the programs with `syncscan.time_step`: `python sample_traces/programs/measure.py [PATTERN…] [--json FILE]`.

Each line: the time of a step, steps a second, and what `time.time()` without a synchronize would report.
"""

import argparse
import gc
import json
from pathlib import Path

import torch
from catalogue import VARIANTS, matching
from setting import Setting

from syncscan.capture.timing import time_step


def main() -> None:
    """Measure the variants that fit, one after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=30)
    chosen = parser.parse_args()
    results = {}
    for name in matching(chosen.patterns):
        results[name] = measure(name, chosen.repetitions, chosen.seconds)
        show(name, results[name])
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1) + "\n")


def measure(name: str, repetitions: int, seconds: float) -> dict[str, object]:
    """Time one variant; an error is its result."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        step = VARIANTS[name](Setting(device, small=device == "cpu"))
        timing = time_step(step, repetitions=repetitions, seconds=seconds, compare_naive=device != "cpu", name=name)
    except (RuntimeError, ImportError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    naive = {n.mistake: n.us for n in timing.naive}
    del step
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return {
        "device": timing.device,
        "median_us": timing.median_us,
        "p5_us": timing.percentile(5),
        "p95_us": timing.percentile(95),
        "spread": timing.spread,
        "stable": timing.stable,
        "samples": len(timing.samples_us),
        "steps_per_second": 1e6 / timing.mean_us,
        "unsynchronised_us": naive.get("time.time() without synchronizing"),
        "first_call_us": next((o.us for o in timing.one_offs if o.name == "first call"), None),
    }


def show(name: str, r: dict[str, object]) -> None:
    """One line of the table."""
    if "error" in r:
        print(f"{name:24s} {r['error']}", flush=True)
        return
    launched = f"{r['unsynchronised_us'] / 1e3:9.3f}" if r["unsynchronised_us"] else "        –"
    print(
        f"{name:24s} {r['median_us'] / 1e3:9.3f} ms a step  {r['steps_per_second']:8.1f} steps/s  "
        f"unsynchronized {launched} ms  spread {r['spread']:.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()
