"""From the text of a trace and events of our own to the text of its annotated twin, chunk by chunk."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator

from syncscan.report.annotate.structure import Envelope


def splice(chunks: Iterable[bytes], around: Envelope, added: Iterable[bytes]) -> Iterator[bytes]:
    """The trace with more events behind its own; the text of its own stays as it is.

    Two viewers decide the shape. TensorBoard's plugin reads no bare list, so one gets an object around it; and it cuts
    a trace behind its last `]`, so members that stand behind the events move before them when they hold one.

    Args:
        chunks: the uncompressed text that `around` was found in.
        around: where its events stand.
        added: JSON text of one event each.

    Source: torch_tb_profiler 0.4.3: `append_gpu_metrics` in `run.py`, `_preprocess_file` in `profiler/data.py`.
    """
    front, back = _frame(around)
    yield front
    yield from between(chunks, around.start, around.end)
    yield from _listed(added, bool(around.events))
    yield back


def rewrite(events: Iterable[bytes], around: Envelope, added: Iterable[bytes]) -> Iterator[bytes]:
    """The same trace with only some of its events.

    Args:
        events: JSON text of one recorded event each.
        around: where the events stood.
        added: JSON text of one event each.
    """
    front, back = _frame(around)
    yield front
    yield from _listed(itertools.chain(events, added), False)
    yield back


def _listed(events: Iterable[bytes], behind_others: bool) -> Iterator[bytes]:
    for event in events:
        yield (b",\n" if behind_others else b"\n") + event
        behind_others = True


def _frame(around: Envelope) -> tuple[bytes, bytes]:
    """The text before the first event and behind the last one."""
    late = around.late_members
    moved = late if b"]" in late else b""
    back = b"\n]" + (b",\n" + late if late and not moved else b"") + b"\n}\n"
    return _head(around, moved) + b"[", back


def _head(around: Envelope, moved: bytes) -> bytes:
    if around.bare:
        return b'{"traceEvents": '
    if not moved:
        return around.head
    before, brace, behind = around.head.partition(b"{")
    return before + brace + b"\n" + moved + b"," + behind


def between(chunks: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    """The bytes from offset `start` up to `end`."""
    offset = 0
    for chunk in chunks:
        lo, hi = max(start - offset, 0), min(end - offset, len(chunk))
        if lo < hi:
            yield chunk[lo:hi]
        offset += len(chunk)


def valid_text(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text with every byte that is no UTF-8 replaced, as viewers refuse the whole file for one of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    clean = True
    for chunk in chunks:
        if clean and chunk.isascii():
            yield chunk
            continue
        yield decoder.decode(chunk).encode()
        clean = not decoder.getstate()[0]
    yield decoder.decode(b"", final=True).encode()
