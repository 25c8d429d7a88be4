"""From a small trace to a big one of the same kind: its text again and again, later and with other ids.

    python -m benchmarks.tile IN OUT MEGABYTES

Only numbers change, so that the text keeps the layout in which the profiler wrote it.
"""

from __future__ import annotations

import argparse
import gzip
import re
from pathlib import Path
from typing import IO

IDS = ("correlation", "External id", "Python id", "Python parent id", "Ev Idx", "Sequence number", "id")
_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_EVENT_END = re.compile(r"\}\s*\](?=[^\]]*\Z)")
_NUMBERS = re.compile(
    r"(?P<ts>(?<=\"ts\": )\d+\.\d{3})|(?P<step>(?<=ProfilerStep#)\d+)|(?P<id>"
    + "|".join(rf"(?<=\"{name}\": )\d+" for name in IDS)
    + ")"
)


def tile(source: Path, target: Path, megabytes: float) -> int:
    """Write a trace of at least this many MB (10^6 bytes) and return its size in bytes.

    Args:
        source: a trace as kineto writes it, with `ts` in µs and three decimals.
        target: overwritten; packed if its name ends in `.gz`.
        megabytes: of uncompressed text.
    """
    stored = source.read_bytes()
    text = (gzip.decompress(stored) if stored[:2] == b"\x1f\x8b" else stored).decode()
    begin = _LIST.search(text)
    end = _EVENT_END.search(text)
    if begin is None or end is None:
        raise ValueError(f"{source} is no trace.")
    body = text[begin.end() : end.start() + 1]
    with gzip.open(target, "wb", 6) if target.suffix == ".gz" else target.open("wb") as out:
        return _write(out, text[: begin.end()], body, text[end.start() + 1 :], int(megabytes * 1e6))


def _write(out: IO[bytes], head: str, body: str, tail: str, size: int) -> int:
    """Write head, repeated body and tail; numbers are shifted by their span, so that none comes twice."""
    kinds = [m.lastgroup for m in _NUMBERS.finditer(body)]
    found = [m[0].replace(".", "") for m in _NUMBERS.finditer(body)]
    fixed = _NUMBERS.sub("\0", body).split("\0")
    span = {kind: _span([int(n) for n, k in zip(found, kinds, strict=True) if k == kind]) for kind in set(kinds)}
    numbers = [(int(n), span[k], k == "ts") for n, k in zip(found, kinds, strict=True)]
    written = out.write(head.encode())
    turn = 0
    while written < size or not turn:
        texts = [_shown(n + turn * by, is_ts) for n, by, is_ts in numbers]
        again = "".join(a + b for a, b in zip(fixed, texts, strict=False)) + fixed[-1]
        written += out.write((("," if turn else "") + again).encode())
        turn += 1
    return written + out.write(tail.encode())


def _shown(number: int, is_ts: bool) -> str:
    return f"{number // 1000}.{number % 1000:03}" if is_ts else str(number)


def _span(numbers: list[int]) -> int:
    return max(numbers) - min(numbers) + 1000 if numbers else 0


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="IN")
    parser.add_argument("target", type=Path, metavar="OUT")
    parser.add_argument("megabytes", type=float, metavar="MEGABYTES")
    tile(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
