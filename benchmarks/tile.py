"""Build a big trace from small ones of its kind: their text repeated, later and with other ids.

    python -m benchmarks.tile IN [IN ...] OUT MEGABYTES [--vary]

Only numbers change, so that the text keeps the layout in which the profiler wrote it. Several recordings take turns,
as parts of one program. With `--vary` each turn is other code too: the program's lines and scopes, shapes and kernels
have names of their own, as in a trace whose waits come from many places; a plain tile flatters whoever remembers.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

IDS = ("correlation", "External id", "Python id", "Python parent id", "Ev Idx", "Sequence number", "id")
_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_EVENT_END = re.compile(r"\}\s*\](?=[^\]]*\Z)")
_NUMBERS = (
    r"(?<=\"ts\": )(?P<ts>\d+\.\d{3})|(?<=ProfilerStep#)(?P<step>\d+)|(?P<id>"
    + "|".join(rf"(?<=\"{name}\": )\d+" for name in IDS)
    + ")"
)
_CODE = (
    r'|"name": "(?!torch/|<|nn\.|/usr)[^"]*?\.py\((?P<line>\d+)(?=\): )'
    r'|(?<="Input Dims": \[\[)(?P<size>\d+)'
    r'|"cat": "(?:gpu_)?user_annotation", "name": "(?!Profiler)[^"]+(?P<scope>)"'
    r'|"cat": "kernel", "name": "[^"]+(?P<kernel>)"'
)
"""Text that distinguishes other code of the same kind: lines of the program, sizes, scopes and kernels."""
_THREAD = re.compile(r'"pid": (\d+), "tid": (\d+)')
PROGRAM = 1000
"""The process id that recordings which take turns are given."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in a recording's text that is another one in each turn; None where only the turn is written."""

    kind: str
    value: int | None

    def shown(self, added: dict[str, int], turn: int) -> str:
        if self.value is None:
            return f"~{turn}" if turn else ""
        if self.kind in ("line", "size"):
            return str(self.value + turn)
        number = self.value + added.get(self.kind, 0)
        return f"{number // 1000}.{number % 1000:03}" if self.kind == "ts" else str(number)


@dataclass(frozen=True, slots=True)
class _Recording:
    """A trace's text: what stands before and behind its events, and these, cut at the numbers."""

    head: str
    fixed: tuple[str, ...]
    numbers: tuple[_Number, ...]
    tail: str

    def spans(self) -> dict[str, tuple[int, int]]:
        """Kind of number → the least and the largest of it."""
        result: dict[str, list[int]] = {}
        for number in self.numbers:
            if number.value is not None:
                result.setdefault(number.kind, []).append(number.value)
        return {kind: (min(values), max(values)) for kind, values in result.items()}


def tile(sources: Sequence[Path], target: Path, megabytes: float, vary: bool = False) -> int:
    """Write a trace of at least this many MB (10^6 bytes) and return its size in bytes.

    Args:
        sources: traces as kineto writes them, with `ts` in µs and three decimals; of several all are taken to be of
            one program, with the same threads.
        target: overwritten; packed if its name ends in `.gz`.
        megabytes: of uncompressed text.
        vary: whether each turn is other code: lines, scopes, sizes and kernels.
    """
    pattern = re.compile(_NUMBERS + _CODE if vary else _NUMBERS)
    recordings = [_recording(source, pattern, len(sources) > 1) for source in sources]
    with gzip.open(target, "wb", 6) if target.suffix == ".gz" else target.open("wb") as out:
        return _write(out, recordings, int(megabytes * 1e6))


def _recording(source: Path, pattern: re.Pattern[str], of_several: bool) -> _Recording:
    stored = source.read_bytes()
    text = (gzip.decompress(stored) if stored[:2] == b"\x1f\x8b" else stored).decode()
    begin = _LIST.search(text)
    end = _EVENT_END.search(text)
    if begin is None or end is None:
        raise ValueError(f"{source} is no trace.")
    body = text[begin.end() : end.start() + 1]
    if of_several:
        body = _of_one_program(body)
    fixed, numbers, at = [], [], 0
    for match in pattern.finditer(body):
        kind = str(match.lastgroup)
        first, last = match.span(kind)
        fixed.append(body[at:first])
        numbers.append(_Number(kind, int(body[first:last].replace(".", "")) if first < last else None))
        at = last
    return _Recording(text[: begin.end()], (*fixed, body[at:]), tuple(numbers), text[end.start() + 1 :])


def _of_one_program(body: str) -> str:
    """Repeat the text with the host's threads numbered: first the one that runs steps, then by their work."""
    threads = Counter(_THREAD.findall(body))
    stepping = re.search(r'"name": "ProfilerStep[^}]*?"pid": (\d+), "tid": (\d+)', body)
    first = stepping.groups() if stepping else threads.most_common(1)[0][0]
    host = [first, *(t for t, _ in threads.most_common() if t[0] == first[0] and t != first)]
    named = {thread: f'"pid": {PROGRAM}, "tid": {PROGRAM + place}' for place, thread in enumerate(host)}
    return _THREAD.sub(lambda result: named.get((result[1], result[2]), result[0]), body)


def _write(out: IO[bytes], recordings: Sequence[_Recording], size: int) -> int:
    """Write head, repeated bodies and tail; numbers are shifted by their span, so that none comes twice."""
    spans = [recording.spans() for recording in recordings]
    written = out.write(recordings[0].head.encode())
    began = spans[0]["ts"][0]
    reached: dict[str, int] = {}
    for turn in itertools.count():
        for recording, span in zip(recordings, spans, strict=True):
            added = {**reached, "ts": began - span["ts"][0]}
            written += out.write((("," if reached else "") + _joined(recording, added, turn)).encode())
            for kind, (least, most) in span.items():
                reached[kind] = reached.get(kind, 0) + most - (least if len(recordings) == 1 else 0) + 1000
            began += span["ts"][1] - span["ts"][0] + 1000
        if written >= size:
            return written + out.write(recordings[0].tail.encode())
    raise AssertionError


def _joined(recording: _Recording, added: dict[str, int], turn: int) -> str:
    texts: Iterable[str] = (number.shown(added, turn) for number in recording.numbers)
    return "".join(itertools.chain.from_iterable(zip(recording.fixed, texts, strict=False))) + recording.fixed[-1]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="IN", nargs="+")
    parser.add_argument("target", type=Path, metavar="OUT")
    parser.add_argument("megabytes", type=float, metavar="MEGABYTES")
    parser.add_argument("--vary", action="store_true", help="each turn is other code")
    tile(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
