"""`python -m tests.fuzz`: from a seed and some seconds to how many inputs went right; what didn't is kept."""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.judge import judged
from tests.fuzz.mutate import made

SAMPLES = Path(__file__).parents[2] / "sample_traces"
LARGEST = 60_000
"""Limit in packed bytes of the recordings to use, and of each the first events: enough of everything."""
MOST_EVENTS = 400


def bases() -> list[dict[str, Any]]:
    """The recordings that inputs are made of."""
    matches = []
    for path in sorted(SAMPLES.glob("*.json.gz")):
        if path.stat().st_size <= LARGEST:
            document = json.loads(gzip.decompress(path.read_bytes()))
            events = document["traceEvents"]
            names = [event for event in events if event.get("ph") == "M"]
            rest = sorted((e for e in events if e.get("ph") != "M"), key=lambda e: float(e.get("ts", 0)))
            matches.append({**document, "traceEvents": [*names, *rest[:MOST_EVENTS]]})
    return matches


def main() -> int:
    """Judge inputs until the time is up; 1 if one of them went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="inputs are told by it and their numbers")
    parser.add_argument("--only", type=int, help="judge the input of this number alone")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs that went wrong")
    given = parser.parse_args()
    documents, began, wrong, count = bases(), time.monotonic(), 0, 0
    for number in itertools.count() if given.only is None else (given.only,):
        if time.monotonic() - began > given.seconds:
            break
        r = Random(f"{given.seed} {number}")
        stored, suffix, valid = made(r.choice(documents), r)
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder, f"input{suffix}"), Path(folder, "out")
            path.write_bytes(stored)
            out.mkdir()
            text = judged(path, out, r, valid)
        count += 1
        if text:
            wrong += 1
            print(f"--seed {given.seed} --only {number}: {'; '.join(text)}", flush=True)
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{given.seed}-{number}{suffix}").write_bytes(stored)
    print(f"right: {count - wrong} of {count} inputs, in {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
