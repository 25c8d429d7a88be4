"""Records the sample traces on a GPU, with syncscan's own capture: `python sample_traces/record.py OUT [NAME…]`.

`python sample_traces/record.py --turns 3 OUT NAME NAME` records two steps in turns, 100 timed in each, and leaves the
turn with the median ratio: a host that is slower for a while is so for both.

Beside each `NAME.pt.trace.json.gz`, `recorded.json` gets what they were recorded with, their sizes and checksums, and
for each the lines that torch's sync debug mode warns of in one step, which is another witness than the callbacks.
"""

import argparse
import gzip
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import torch
from workloads import WORKLOADS

from syncscan.capture import device
from syncscan.capture.session import profile

ACTIVE = {"lines": 2, "lines.stacks": 1}
"""Recorded steps where three would make a file too big."""

ROOT = Path(__file__).resolve().parent.parent


def main(out: Path, names: list[str], calibrate: int = 10) -> None:
    """Record the named workloads, or all."""
    out.mkdir(parents=True, exist_ok=True)
    traces = {name: record(name, out, calibrate) for name in names or WORKLOADS}
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "gpu": torch.cuda.get_device_name(),
        "traces": traces,
    }
    (out / "recorded.json").write_text(json.dumps(facts, indent=1) + "\n")


def in_turns(out: Path, turns: int, before: str, after: str) -> None:
    """Record two workloads in turns, each in a process of its own, and leave the turn with the median ratio."""
    taken = []
    for turn in range(turns):
        folder = out / f"turn{turn}"
        for name in (before, after) if turn % 2 == 0 else (after, before):
            command = [sys.executable, __file__, "--calibrate", "100", str(folder / name), name]
            subprocess.run(command, check=True)
        times = [_unprofiled_ms(folder / name, name) for name in (before, after)]
        taken.append((times[1] / times[0], times, folder))
        print(f"turn {turn}: {times[0]:.3f} ms, then {times[1]:.3f} ms", flush=True)
    taken.sort(key=lambda turn: turn[0])
    chosen = taken[len(taken) // 2][2]
    for name in (before, after):
        shutil.copy(chosen / name / f"{name}.pt.trace.json.gz", out)
        facts = json.loads((chosen / name / "recorded.json").read_text())
        (out / f"{name}.recorded.json").write_text(json.dumps(facts, indent=1) + "\n")
    (out / "turns.json").write_text(json.dumps([times for _, times, _ in taken], indent=1) + "\n")


def _unprofiled_ms(folder: Path, name: str) -> float:
    """Return the time of a recorded workload's step without the profiler, ms."""
    facts = json.loads((folder / "recorded.json").read_text())
    return float(facts["traces"][name]["unprofiled_step_ms"])


def record(name: str, out: Path, calibrate: int = 10) -> dict[str, object]:
    """Record one workload, and return its entry in `recorded.json`."""
    step = WORKLOADS[name]()
    target = out / f"{name}.pt.trace.json.gz"
    torch.cuda.reset_peak_memory_stats()
    with (
        tempfile.TemporaryDirectory() as folder,
        profile(folder, name, active=ACTIVE.get(name, 3), stacks=name.endswith(".stacks"), calibrate=calibrate) as prof,
    ):
        while not prof.done:
            step()
            prof.step()
        write(target, relative(gzip.decompress(prof.paths[0].read_bytes())))
    entry = {
        "bytes": target.stat().st_size,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        "unprofiled_step_ms": round((prof.step_us or 0) / 1000, 3),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        "warned": warned(step),
    }
    print(f"{name:20s} {entry['bytes']:9,d} bytes  {entry['unprofiled_step_ms']:9.3f} ms a step")
    return entry


def warned(step: object) -> list[list[list[object]]]:
    """The stacks, innermost frame first, of what torch's sync debug mode warns of in one step."""
    device.drain()
    stacks: list[list[list[object]]] = []

    def show(message: object, *where: object) -> None:
        if "called a synchronizing CUDA operation" in str(message):
            frames = [f for f in reversed(traceback.extract_stack()) if f.filename not in (__file__, warnings.__file__)]
            stacks.append([[relative_path(f.filename), f.lineno, f.name] for f in frames[:12]])

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()  # type: ignore[operator]
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return stacks


def write(target: Path, content: bytes) -> None:
    """Compress so that the same content makes the same bytes."""
    target.write_bytes(gzip.compress(content, 9, mtime=0))


def relative(content: bytes) -> bytes:
    """Make paths below the repository relative to it: where it lay when recorded says nothing to a reader."""
    return content.replace(f"{ROOT}/".encode(), b"")


def relative_path(file: str) -> str:
    """The same for one path."""
    return file.removeprefix(f"{ROOT}/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--calibrate", type=int, default=10, help="steps timed without the profiler")
    parser.add_argument("--turns", type=int, help="record two workloads in turns, so often")
    options = parser.parse_args()
    if options.turns:
        in_turns(options.out, options.turns, *options.names)
    else:
        main(options.out, options.names, options.calibrate)
