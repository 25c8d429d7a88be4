"""Compare seconds and peak memory of syncscan and other readers by trace size, each in a fresh process.

    python -m benchmarks.reading [--sizes 100 276 500 2000] [--source TRACE ... [--vary]] [--runs 3]
                                 [--only "syncscan|typed"]

Prints a Markdown table a size, and what each stage of the analysis took. The traces are tiled from one recording, or
from several in turn, and stay in `--folder`; with `--vary` each turn is other code (`benchmarks.tile`).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tile import tile

SOURCE = Path(__file__).parents[1] / "sample_traces" / "maskedloss.v0.pt.trace.json.gz"

ORJSON = "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())"
TYPED = """
import sys, msgspec
class Args(msgspec.Struct, gc=False):
    correlation: int | None = None
    external: int | None = msgspec.field(default=None, name="External id")
class Event(msgspec.Struct, gc=False):
    ph: str
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0
    dur: float = 0
    args: Args | None = None
class Trace(msgspec.Struct):
    traceEvents: list[Event]
msgspec.json.Decoder(Trace).decode(open(sys.argv[1], "rb").read())
"""
COLUMNS = """
import sys
def columns(events):
    seen = [[] for _ in range(8)]
    add = [column.append for column in seen]
    for event in events:
        args = event.get("args") or {}
        for put, key in zip(add, ("name", "cat", "pid", "tid", "ts", "dur")):
            put(event.get(key))
        add[6](args.get("correlation"))
        add[7](args.get("External id"))
"""
"""Code that turns an engine's events into columns that can be queried: eight of syncscan's fifteen."""
ENGINES = {
    "json": 'import json; columns(json.load(open(sys.argv[1]))["traceEvents"])',
    "orjson": 'import orjson; columns(orjson.loads(open(sys.argv[1], "rb").read())["traceEvents"])',
    "simdjson": 'import simdjson; columns(simdjson.Parser().parse(open(sys.argv[1], "rb").read())["traceEvents"])',
    "simdjson, nothing taken": 'import simdjson; parsed = simdjson.Parser().parse(open(sys.argv[1], "rb").read())',
    "ijson": 'import ijson; columns(ijson.items(open(sys.argv[1], "rb"), "traceEvents.item", use_float=True))',
}
PYARROW = """
import io, sys
import pyarrow as pa, pyarrow.json as pj
text = open(sys.argv[1], "rb").read()
at = text.index(b"[", text.index(b'"traceEvents"')) + 1
objects = text[at : text.rindex(b"]")].replace(b"},\\n  {", b"}\\n  {")  # it takes objects without commas between them
args = pa.struct([("correlation", pa.int64()), ("External id", pa.int64())])
columns = [("name", pa.string()), ("cat", pa.string()), ("ts", pa.float64()), ("dur", pa.float64()), ("args", args)]
options = pj.ParseOptions(pa.schema(columns), newlines_in_values=True, unexpected_field_behavior="ignore")
pj.read_json(io.BytesIO(objects), read_options=pj.ReadOptions(block_size=1 << 23), parse_options=options)
"""
"""Two columns fewer than the others, as a process or thread may be a number or a text, which its columns can't be."""
HTA = """
import sys
from hta.common.trace_parser import parse_trace_file
parse_trace_file(sys.argv[1])
"""


@dataclass(frozen=True)
class Reader:
    """One way to read a trace: its command, and the module that it needs."""

    name: str
    command: tuple[str, ...]
    packed: bool = False
    needs: str = ""
    appetite: float = 0
    """Memory as a multiple of the text; a reader that the machine can't feed is left out."""


PY = sys.executable
READERS = (
    Reader("`json.load`", (PY, "-c", "import json, sys; json.load(open(sys.argv[1]))"), appetite=4.3),
    Reader("`orjson.loads`", (PY, "-c", ORJSON), needs="orjson", appetite=7.2),
    Reader("plain typed msgspec", (PY, "-c", TYPED), appetite=3),
    *(
        Reader(
            engine if "," in engine else f"{engine}, as columns",
            (PY, "-c", COLUMNS + code),
            needs=engine.partition(",")[0],
            appetite=8,
        )
        for engine, code in ENGINES.items()
    ),
    Reader("pyarrow, six columns", (PY, "-c", PYARROW), needs="pyarrow", appetite=5),
    Reader("HolisticTraceAnalysis, parsing", (PY, "-c", HTA), needs="hta"),
    Reader("`gzip -dc`", ("gzip", "-dc"), packed=True),
    Reader("syncscan, reading", (PY, "-c", "import sys; from syncscan.load import load; load(sys.argv[1])")),
    Reader("**syncscan analyze**", (PY, "-m", "syncscan", "analyze", "--format", "json")),
    Reader("**syncscan analyze**, packed", (PY, "-m", "syncscan", "analyze", "--format", "json"), packed=True),
)
"""Readers to compare; ratios are given to json.load, plain typed msgspec and gzip."""


@dataclass(frozen=True)
class Cost:
    """The cost of one run: wall time, and the most memory that its processes held together."""

    seconds: float
    peak: int


def measure(command: tuple[str, ...]) -> Cost:
    """Run a command in a fresh process, its output thrown away.

    Raises:
        RuntimeError: it failed.
    """
    start = time.perf_counter()
    with tempfile.TemporaryFile() as text:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=text, env=_installed())
        together = alone = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            together, alone = max(together, _resident(process.pid)), max(alone, _peak(process.pid))
            time.sleep(0.01)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            text.seek(0)
            raise RuntimeError(text.read().decode("utf-8", "replace").strip().splitlines()[-1])
    # The kernel's count begins with what this process held when it started the other: it is for want of /proc alone.
    alone = alone or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, max(together, alone))


def _peak(pid: int) -> int:
    """The most memory that a process has held since it began its program, in bytes; 0 where /proc doesn't tell."""
    try:
        report = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(report[1]) * 1024 if report else 0


def _installed() -> dict[str, str]:
    """The environment, but that modules are compiled once: as pip leaves a package, and no checkout is by itself."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "syncscan-benchmark-compiled"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _resident(pid: int) -> int:
    """Memory of a process and its children in bytes; 0 where /proc doesn't tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_resident(int(child)) for child in children)


def _warm(path: Path) -> None:
    """Have the system cache the file; a piece at a time, as a child is charged for what its parent holds."""
    with path.open("rb") as f:
        while f.read(1 << 20):
            pass


def best(reader: Reader, path: Path, runs: int) -> Cost:
    """The fastest of some runs, and the largest peak of all."""
    costs = [measure((*reader.command, str(path))) for _ in range(runs)]
    return Cost(min(c.seconds for c in costs), max(c.peak for c in costs))


def _free() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def table(size: float, folder: Path, sources: list[Path], vary: bool, runs: int, only: str) -> None:
    """Print the table of one size in MB."""
    of = "-".join(source.name.partition(".")[0] for source in sources) + ("-varied" if vary else "")
    plain = folder / f"{of}.{size:g}.json"
    packed = plain.with_suffix(".json.gz")
    if not plain.exists():
        tile(sources, plain, size, vary)
    if not packed.exists():
        with packed.open("wb") as out:
            subprocess.run(["gzip", "-6", "-c", str(plain)], stdout=out, check=True)
    bytes_ = plain.stat().st_size
    _warm(plain)
    _warm(packed)
    print(f"\n{bytes_ / 1e6:,.0f} MB, {packed.stat().st_size / 1e6:,.0f} MB packed\n")
    print("| reader | seconds | of json.load | of typed msgspec | of gzip -dc | peak MB | of the file |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    to: dict[str, float] = {}
    for reader in READERS:
        if (reader.needs and importlib.util.find_spec(reader.needs) is None) or not re.search(only, reader.name):
            continue
        if reader.appetite * bytes_ > 0.8 * _free():
            print(f"| {reader.name} | needs {reader.appetite * bytes_ / 1e9:.0f} GB of memory | | | | | |")
            continue
        try:
            cost = best(reader, packed if reader.packed else plain, runs)
        except RuntimeError as e:
            print(f"| {reader.name} | failed: {e} | | | | | |")
            continue
        to[reader.name] = cost.seconds
        ratios = [
            cost.seconds / to[n] if n in to else None for n in ("`json.load`", "plain typed msgspec", "`gzip -dc`")
        ]
        shown = " | ".join("" if r is None else f"{r:.2f}" for r in ratios)
        print(
            f"| {reader.name} | {cost.seconds:.2f} | {shown} | {cost.peak / 1e6:,.0f} | {cost.peak / bytes_:.2f} |",
            flush=True,
        )
    print(f"\n```\n{_stages(plain)}```")


def _stages(path: Path) -> str:
    """Return the time of each stage of one analysis, as `--timings` has it."""
    command = (PY, "-m", "syncscan", "analyze", "--format", "json", "--timings", str(path))
    run = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, env=_installed()
    )
    errors = run.stderr
    return errors[errors.index("stage ") :]


def main() -> None:
    """Parse the arguments and print a table a size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", nargs="+", type=float, default=[100, 276, 500, 2000], metavar="MB")
    parser.add_argument("--source", type=Path, nargs="+", default=[SOURCE], help="recordings to tile, in turn")
    parser.add_argument("--vary", action="store_true", help="let each turn be other code")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "syncscan-benchmarks")
    parser.add_argument("--runs", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--only", default="", help="readers whose name matches this expression")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for size in args.sizes:
        table(size, args.folder, args.source, args.vary, args.runs, args.only)


if __name__ == "__main__":
    main()
