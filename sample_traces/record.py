"""Records the sample traces on a GPU, with syncscan's own capture: `python sample_traces/record.py OUT [NAME…]`.

Beside each `NAME.pt.trace.json.gz`, `recorded.json` gets what they were recorded with, their sizes and checksums, and
for each the lines that torch's sync debug mode warns of in one step, which is another witness than the callbacks.
"""

import gzip
import hashlib
import json
import platform
import sys
import tempfile
from pathlib import Path

import torch
from workloads import WORKLOADS

from syncscan.capture import device
from syncscan.capture.session import profile
from syncscan.capture.warned import Warned

ACTIVE = {"lines": 2, "lines.stacks": 1}
"""Recorded steps where three would make a file too big."""

ROOT = Path(__file__).resolve().parent.parent


def main(out: Path, names: list[str]) -> None:
    """Record the named workloads, or all."""
    out.mkdir(parents=True, exist_ok=True)
    traces = {name: record(name, out) for name in names or WORKLOADS}
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "gpu": torch.cuda.get_device_name(),
        "traces": traces,
    }
    (out / "recorded.json").write_text(json.dumps(facts, indent=1) + "\n")


def record(name: str, out: Path) -> dict[str, object]:
    """Record one workload, and return its entry in `recorded.json`."""
    step = WORKLOADS[name]()
    target = out / f"{name}.pt.trace.json.gz"
    torch.cuda.reset_peak_memory_stats()
    with (
        tempfile.TemporaryDirectory() as folder,
        profile(folder, name, active=ACTIVE.get(name, 3), stacks=name.endswith(".stacks")) as prof,
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
    watch = Warned()
    watch.open()
    try:
        step()  # type: ignore[operator]
    finally:
        watch.close()
    return [[[relative_path(file), line, function] for file, line, function in stack[:12]] for _, stack in watch.stacks]


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
    main(Path(sys.argv[1]), sys.argv[2:])
