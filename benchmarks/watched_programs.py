"""Is each line's watched share the true one, in 30 programs? `python -m benchmarks.watched_programs`, on a GPU.

The programs are generated from a catalogue: one wait of each kind behind work of the device, hosts that are busy with
ops or with Python, several waits per step, training, and other threads that compute, wait or load. Each waiting line
stands between two clocks, so its part of the time is known. Printed is, for each such line, that part, the watched part
by the usual sampler, and by the samples alone: how many of them were due within the line's clocks. The last tells the
watch's own error from that of having few samples. Several programs run at a time, as this changes what is measured and
what is watched alike. `--jobs` runs the programs of `benchmarks.watched_jobs` instead, of which some lines are no
waits: their whole share is compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.watched_jobs import JOBS, Job
from syncscan.watching.sampler import RATE, Tick
from syncscan.watching.thread_position import DEVICE
from syncscan.watching.watch import Watch
from syncscan.watching.watch_file import read

WAITS = {
    "item": "loss.item()",
    "float": "float(loss)",
    "int": "int(count)",
    "truth": "bool(flag)",
    "tolist": "row.tolist()",
    "cpu": "row.cpu()",
    "to": 'row.to("cpu")',
    "numpy": "row.cpu().numpy()",
    "nonzero": "mask.nonzero()",
    "index": "b[:64][mask]",
    "masked_select": "b[:64].masked_select(mask)",
    "unique": "ints.unique()",
    "synchronize": "torch.cuda.synchronize()",
    "stream": "torch.cuda.current_stream().synchronize()",
    "event": "event.synchronize()",
    "equal": "torch.equal(b, b)",
    "format": 'f"{loss}"',
    "repeat": "row.repeat_interleave(counts)",
}
"""Calls that wait for the device."""
HOSTS = {
    "none": "",
    "ops": "for _ in range(300):\n        small = small * 1.01",
    "python": "for k in range(60_000):\n        total += k * k",
    "long_python": "for k in range(250_000):\n        total += k * k",
}
"""Work of the host before each wait."""
THREADS = {
    "none": "",
    "computes": "for k in range(20_000):\n            total += k\n        time.sleep(0.002)",
    "waits": "with torch.cuda.stream(stream):\n            (side @ side).sum().item()\n        time.sleep(0.003)",
    "loads": "numbers = torch.randn(512, 512).sort()\n        time.sleep(0.004)",
}
"""Bodies of a loop on another thread."""


Sample = tuple[int, int, int, bool, str, int, str]
"""When it was taken (ns), the periods it counts for, lateness (ns), whether Python ran, file, line, kind."""


class Spec(NamedTuple):
    """A program of the catalogue: its waits, the host's work, how many matrix products, whether it trains."""

    waits: tuple[str, ...]
    host: str = "none"
    products: int = 12
    trains: bool = False
    thread: str = "none"

    @property
    def name(self) -> str:
        """Return a name that says what it does."""
        parts = ["+".join(self.waits), self.host, "trains" if self.trains else "", self.thread]
        return " ".join(part for part in parts if part and part != "none")


CATALOGUE = (
    *(Spec((wait,)) for wait in "item float tolist cpu numpy nonzero index masked_select unique synchronize".split()),
    *(Spec((wait,)) for wait in "stream event truth repeat".split()),
    Spec(("item",), "ops", 2),
    Spec(("cpu",), "ops", 6),
    Spec(("nonzero",), "ops", 12),
    Spec(("float",), "python", 16),
    Spec(("item",), "long_python", 20),
    Spec(("synchronize",), "python", 30),
    Spec(("item", "cpu"), products=8),
    Spec(("nonzero", "truth", "synchronize"), products=6),
    Spec(("format", "tolist", "to"), products=6),
    Spec(("repeat", "equal", "int"), "python", 8),
    Spec(("item",), trains=True),
    Spec(("item", "int"), "python", 4, trains=True),
    Spec(("tolist", "stream"), "ops", 4, trains=True),
    Spec(("item",), "ops", 12, thread="computes"),
    Spec(("item", "nonzero"), thread="waits"),
    Spec(("synchronize",), "python", 16, trains=True, thread="loads"),
)

PROGRAMS: tuple[Spec | Job, ...] = (*CATALOGUE, *JOBS)

HEAD = """
import threading, time, torch
clock = time.monotonic_ns
spent = []
device = "cuda" if torch.cuda.is_available() else "cpu"
a = torch.randn(SIZE, SIZE, device=device)
small = torch.randn(64, 64, device=device)
side = torch.randn(1024, 1024, device=device)
counts = torch.ones(64, dtype=torch.long, device=device)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).to(device)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(1024, 1024, device=device)
stream = torch.cuda.Stream() if device == "cuda" else None
over = threading.Event()
total = 0
"""


def source(spec: Spec) -> str:
    """Return the text of a program, with each wait on a line of its own between two clocks."""
    rows = [HEAD, "def other():\n    global total\n    while not over.is_set():"]
    rows.append(f"        {THREADS[spec.thread] or 'return'}\n")
    rows.append("def step():\n    global small, total")
    if spec.trains:
        rows.append("    loss = model(x).square().mean()\n    optimizer.zero_grad()")
        rows.append("    loss.backward()\n    optimizer.step()")
    for wait in spec.waits:
        rows.append(f"    b = a\n    for _ in range({spec.products}):\n        b = torch.tanh(b @ a)")
        rows.append("    row = b[0, :64]\n    mask = b[:64] > 0.5\n    loss = row.sum()\n    count = mask.sum()")
        rows.append("    flag = mask.any()\n    ints = mask[:8].long()")
        rows.append("    event = torch.cuda.Event() if stream else None")
        rows.append("    if event:\n        event.record()")
        rows.append(f"    {HOSTS[spec.host]}")
        rows.append(f"    began = clock()\n    {WAITS[wait]}  # {wait}")
        rows.append(f'    spent.append(("{wait}", began, clock()))')
    return "\n".join(rows)


class Recorded(Watch):
    """A watch that stores each sample: when it was taken, periods, lateness, whether Python ran, its line and kind."""

    def __init__(self, out: str | Path, **arguments: Any) -> None:
        super().__init__(out, **arguments)
        self.ticks: list[Sample] = []

    def _count_sample(self, tick: Tick) -> tuple[int, Any, int]:
        stand = self._places(tick.stack)
        if stand is not None:
            kind = stand.kind
            ran = tick.ran or tick.brief
            self.ticks.append((tick.at, tick.times, tick.late, ran, stand.file, stand.line, kind))
        return super()._count_sample(tick)


@dataclass
class Result:
    """A run: the clocks of its waits, the samples, and the shares of each waiting line."""

    name: str
    rows: list[dict[str, Any]]
    spent: list[tuple[str, int, int]]
    ticks: list[Sample]
    steps: list[int]


def run(spec: Spec | Job, seconds: float, rate: int, folder: Path, size: int = 2048) -> Result:
    """Run a program under a watch, and return the shares."""
    path = folder / f"program_{abs(hash(spec.name))}.py"
    text = spec.text if isinstance(spec, Job) else source(spec)
    path.write_text(text.replace("SIZE", str(size)))
    loaded = importlib.util.spec_from_file_location(path.stem, path)
    assert loaded is not None
    assert loaded.loader is not None
    program = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(program)
    threading = program.threading
    other = threading.Thread(target=program.other, daemon=True)
    other.start()
    for _ in range(5):
        program.step()
    steps: list[int] = []
    watch = Recorded(folder, name=path.stem, interval=1e6, rate=rate, hook=False).start()
    program.spent.clear()
    began = time.monotonic_ns()
    while time.monotonic_ns() - began < seconds * 1e9:
        program.step()
        watch.step()
        steps.append(time.monotonic_ns())
    elapsed = time.monotonic_ns() - began
    watch.stop()
    program.over.set()
    other.join()
    assert watch.path is not None
    window = read(watch.path).windows[-1]
    lines = path.read_text().splitlines()
    rows = []
    works = spec.works if isinstance(spec, Job) else ()
    for wait in (*spec.waits, *works):
        number = next(n for n, text in enumerate(lines, start=1) if text.endswith(f"  # {wait}"))
        shown = [line for line in window.lines if line.line == number and line.file == str(path)]
        inside = [(b, e) for name, b, e in program.spent if name == wait]
        rows.append(
            {
                "program": spec.name,
                "line": wait,
                "measured": sum(e - b for b, e in inside) / elapsed,
                "waiting": sum(line.share if wait in works else line.waiting for line in shown),
                "share": sum(line.share for line in shown),
                "due": within(inside, [at - late for at, _, late, *_ in watch.ticks]),
                "samples": window.samples,
                "steps": watch.steps,
                "step_ms": elapsed / 1e6 / max(1, watch.steps),
            }
        )
    return Result(spec.name, rows, program.spent, watch.ticks, steps)


def within(intervals: list[tuple[int, int]], times: list[int]) -> float:
    """Return the part of sorted times that lies in sorted intervals."""
    count = k = 0
    for at in times:
        while k < len(intervals) and intervals[k][1] < at:
            k += 1
        count += k < len(intervals) and intervals[k][0] <= at
    return count / max(1, len(times))


def lane(numbers: list[int], gpu: int, seconds: float, rate: int, size: int, report: Any, keep: Path | None) -> None:
    """Run some programs, one after the other, on one GPU; put each one's rows."""
    if torch.cuda.is_available():
        torch.cuda.set_device(gpu)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            try:
                result = run(PROGRAMS[number], seconds, rate, Path(folder), size)
            except Exception as error:
                report.put([{"program": PROGRAMS[number].name, "failed": f"{type(error).__name__}: {error}"}])
                continue
            if keep is not None:
                raw = {"name": result.name, "spent": result.spent, "ticks": result.ticks, "steps": result.steps}
                (keep / f"program{number}.json").write_text(json.dumps(raw))
            report.put(result.rows)


def measured(
    numbers: list[int], lanes: int, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> Iterator[list[dict[str, Any]]]:
    """Run programs in several processes at a time, and yield each one's rows as it ends."""
    spawn = multiprocessing.get_context("spawn")
    report = spawn.Queue()
    gpus = max(1, torch.cuda.device_count())
    processes = [
        spawn.Process(target=work, args=(numbers[k::lanes], k % gpus, *arguments[:4], report, arguments[4]))
        for k in range(lanes)
    ]
    for process in processes:
        process.start()
    for _ in numbers:
        yield report.get(timeout=300)
    for process in processes:
        process.join()


def line(row: dict[str, Any]) -> str:
    """Return a row as text."""
    if "failed" in row:
        return f"  {row['program']:42} failed: {row['failed']}"
    beyond = " *" if row["measured"] >= 0.05 and abs(row["waiting"] - row["measured"]) > 0.03 else ""
    return (
        f"  {row['program']:42} {row['line']:14} measured {row['measured']:6.1%}  watched {row['waiting']:6.1%}"
        f"  due {row['due']:6.1%}  ({row['samples']} samples, step {row['step_ms']:.1f} ms){beyond}"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each program")
    parser.add_argument("--rate", type=int, default=97, help=f"samples a second; a watch's own are {RATE}")
    parser.add_argument("--lanes", type=int, default=4, help="programs that run at a time")
    parser.add_argument("--programs", type=int, nargs="+", default=list(range(len(CATALOGUE))), metavar="NUMBER")
    parser.add_argument("--jobs", action="store_true", help="run the programs of benchmarks.watched_jobs")
    parser.add_argument("--size", type=int, default=2048, help="of the matrices")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="store each program's clocks and samples as JSON")
    arguments = parser.parse_args()
    if not torch.cuda.is_available() and arguments.size > 256:
        parser.error("this measures on a GPU, and there is none.")
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    settings = (arguments.seconds, arguments.rate, arguments.size, arguments.keep)
    rows: list[dict[str, Any]] = []
    numbers = list(range(len(CATALOGUE), len(PROGRAMS))) if arguments.jobs else arguments.programs
    for part in measured(numbers, arguments.lanes, lane, settings):
        rows += part
        for row in part:
            print(line(row), flush=True)
        if arguments.keep is not None:
            (arguments.keep / "rows.json").write_text(json.dumps(rows, indent=1))
    judged = [row for row in rows if row.get("measured", 0) >= 0.05]
    near = sum(abs(row["waiting"] - row["measured"]) <= 0.03 for row in judged)
    print(f"{near} of {len(judged)} lines of 5 % and more are within 3 points, as {DEVICE} waits", flush=True)


if __name__ == "__main__":
    main()
