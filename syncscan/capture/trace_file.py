"""Write a finished profiler's trace with the capture's metadata as one whole gzipped file."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from isal import igzip

from syncscan.errors import UsageError

CHUNK = 1 << 22
SUFFIX = ".pt.trace.json.gz"
"""File suffix; TensorBoard's plugin only reads `NAME[.DIGITS].pt.trace.json[.gz]`."""


def prepare(out: Path) -> None:
    """Create the folder, and check now rather than after the run that files can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise UsageError(f"Can't write traces to {out}: {error.strerror or error}.", "Give another folder.") from error


def write_trace(profiler: Any, out: Path, name: str, metadata: Mapping[str, Any]) -> Path:
    """Export what a stopped `torch.profiler.profile` recorded, with `metadata` under the top-level key "syncscan".

    The file is `out/NAME.DIGITS.pt.trace.json.gz`, DIGITS being the time in ns. It appears under its name only when it
    is whole; what was half-written goes with its temporary folder.
    """
    out.mkdir(parents=True, exist_ok=True)  # it may have gone since
    final = out / f"{name}.{time.time_ns()}{SUFFIX}"
    with tempfile.TemporaryDirectory(dir=out, prefix=".syncscan-") as folder:
        raw, packed = Path(folder) / final.stem, Path(folder) / final.name
        profiler.export_chrome_trace(str(raw))
        if not _whole(raw):
            raise OSError(f"the profiler couldn't write its whole trace to {out}: is the disk full?")
        _apart(_pack, raw, packed, metadata)
        packed.replace(final)
    return final


def write_metadata(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Replace the metadata of a trace that `write_trace` has written; the file is whole at any time."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".syncscan-") as folder:
        packed = Path(folder) / path.name
        _apart(_repack, path, packed, before, after)
        packed.replace(path)


def _apart(work: Callable[..., None], *arguments: Any) -> None:
    """Compress on a thread of its own, and never on one that trains.

    isal leaves the upper halves of AVX registers in use (its CRC ends without `vzeroupper`), and each SSE instruction
    of the thread waits for them afterwards: steps took 5 to 14 % longer, an allocation of torch's 1.2 to 1.35 times
    as long, until something else cleared them (H200, Xeon with AVX-512, torch 2.11, isal 1.9.1). Registers are a
    thread's own.
    """
    with ThreadPoolExecutor(1) as own:
        try:
            working = own.submit(work, *arguments)
        except RuntimeError:  # at the interpreter's end no thread starts any more, and none trains
            work(*arguments)
        else:
            working.result()


def _pack(raw: Path, packed: Path, metadata: Mapping[str, Any]) -> None:
    with raw.open("rb") as source, igzip.open(packed, "wb", compresslevel=3) as target:
        copy_with(source, target, "syncscan", metadata)


def _repack(path: Path, packed: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Copy a trace with other metadata; raise if another program has changed it."""
    old, new = _member("syncscan", before), _member("syncscan", after)
    with igzip.open(path, "rb") as source, igzip.open(packed, "wb", compresslevel=3) as target:
        head = source.read(CHUNK)
        at = head.find(b"{") + 1
        head += source.read(max(0, at + len(old) - len(head)))
        if not head.startswith(old, at):
            raise OSError("it has been changed")
        target.write(head[:at] + new + head[at + len(old) :])
        while chunk := source.read(CHUNK):
            target.write(chunk)


def _whole(exported: Path) -> bool:
    """Return whether an export exists and is complete: kineto only logs write errors (`output_json.cpp`)."""
    if not exported.exists():
        return False
    with exported.open("rb") as file:
        file.seek(max(0, exported.stat().st_size - 64))
        return file.read().rstrip().endswith(b"}")


def copy_with(source: BinaryIO, target: Any, key: str, value: Mapping[str, Any]) -> None:
    """Copy a JSON object, with one more key at its head.

    `profiler.add_metadata_json` would do if the table were known before the profiler stops: what is added later is
    dropped by kineto, and the last recorded sync may be the very last call of the recording.
    """
    head = source.read(CHUNK)
    at = head.find(b"{") + 1
    if at == 0 or head[: at - 1].strip():
        raise ValueError("the profiler's export is not a JSON object")
    target.write(head[:at] + _member(key, value) + head[at:])
    while chunk := source.read(CHUNK):
        target.write(chunk)


def _member(key: str, value: Mapping[str, Any]) -> bytes:
    """Return the first member of a JSON object, as it stands after the brace."""
    return f"\n  {json.dumps(key)}: {json.dumps(value)},".encode()
