"""Records the programs with syncscan's own capture: `python sample_traces/programs/record.py OUT [PATTERN…]`.

Writes OUT/NAME.pt.trace.json.gz for each variant that fits, paths relative to the repository, and OUT/recorded.json.
"""

import argparse
import gc
import gzip
import hashlib
import json
import os
import platform
import tempfile
from pathlib import Path

import torch
from catalogue import VARIANTS, matching
from setting import Setting

from syncscan.capture.session import profile

ROOT = Path(__file__).resolve().parent.parent.parent

PLANS = {
    "inference.cold": {"wait": 0, "warmup": 0, "active": 4, "calibrate": 0, "settle": 0},
    "inference.single": {"active": 1},
}
"""Where a recording is to begin with the very first call, or to hold a single step."""
USUAL: dict[str, float] = {"wait": 1, "warmup": 3, "active": 2, "calibrate": 20, "settle": 5}


def main(out: Path, patterns: list[str]) -> None:
    """Record the variants that fit and add them to `recorded.json`."""
    out.mkdir(parents=True, exist_ok=True)
    index = out / "recorded.json"
    traces = json.loads(index.read_text())["traces"] if index.exists() else {}
    for name in matching(patterns):
        try:
            entry = record(name, out)
        except (RuntimeError, ImportError, KeyError) as error:
            print(f"{name:24s} {type(error).__name__}: {error}"[:200])
            continue
        if entry is not None:
            traces[name] = entry
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "traces": traces,
    }
    if os.environ.get("RANK", "0") == "0":
        index.write_text(json.dumps(facts, indent=1) + "\n")


def record(name: str, out: Path) -> dict[str, object] | None:
    """Record one variant; its entry in `recorded.json`, on rank 0 alone."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    step = VARIANTS[name](Setting(device, small=device == "cpu"))
    with (
        tempfile.TemporaryDirectory() as folder,
        profile(folder, name, notify=print, **{**USUAL, **PLANS.get(name, {})}) as prof,
    ):
        while not prof.done:
            step()
            prof.step()
        content = gzip.decompress(prof.paths[0].read_bytes()).replace(f"{ROOT}/".encode(), b"")
    del step
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if os.environ.get("RANK", "0") != "0":
        return None
    target = out / f"{name}.pt.trace.json.gz"
    target.write_bytes(gzip.compress(content, 9, mtime=0))
    entry: dict[str, object] = {
        "bytes": target.stat().st_size,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        "unprofiled_step_ms": round((prof.step_us or 0) / 1000, 3),
    }
    print(f"{name:24s} {entry['bytes']:9,d} bytes  {entry['unprofiled_step_ms']:9.3f} ms a step", flush=True)
    return entry


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("out", type=Path)
    asked.add_argument("patterns", nargs="*")
    asked.add_argument("--sample", type=float, default=0.0, help="seconds in which the host is sampled afterwards")
    given = asked.parse_args()
    USUAL["sample"] = given.sample
    main(given.out, given.patterns)
