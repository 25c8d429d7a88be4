"""Times the programs with `torch.utils.benchmark`: `python sample_traces/programs/measure.py [PATTERN…] [--json FILE]`.

Each line: the time of a step, and steps a second. `measured.json` also has columns of an earlier timer.
"""

import argparse
import gc
import json
from pathlib import Path

import torch
from catalogue import VARIANTS, matching
from setting import Setting
from torch.utils.benchmark import Timer


def main() -> None:
    """Measure the variants that fit, one after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    chosen = parser.parse_args()
    results = {}
    for name in matching(chosen.patterns):
        results[name] = measure(name, chosen.seconds)
        show(name, results[name])
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1) + "\n")


def measure(name: str, seconds: float) -> dict[str, object]:
    """Time one variant; an error is its result."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        step = VARIANTS[name](Setting(device, small=device == "cpu"))
        timing = Timer("step()", globals={"step": step}).blocked_autorange(min_run_time=seconds)
    except (RuntimeError, ImportError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    del step
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return {
        "device": device,
        "median_us": timing.median * 1e6,
        "spread": timing.iqr / timing.median,
        "samples": len(timing.times),
        "steps_per_second": 1 / timing.mean,
    }


def show(name: str, r: dict[str, object]) -> None:
    """One line of the table."""
    if "error" in r:
        print(f"{name:24s} {r['error']}", flush=True)
        return
    print(
        f"{name:24s} {r['median_us'] / 1e3:9.3f} ms a step  {r['steps_per_second']:8.1f} steps/s  "
        f"spread {r['spread']:.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()
