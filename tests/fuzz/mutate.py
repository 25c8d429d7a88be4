"""Turn a recorded trace and a random generator into a hostile trace; one seed always gives the same bytes."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

Document = dict[str, Any]
Event = dict[str, Any]

NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    1,
    0.5,
    -0.0,
    5e-324,
    1e18,
    4.6e15,
    -4.6e15,
    1e308,
    -1e308,
    math.nan,
    math.inf,
    -math.inf,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**40,
    10**400,
)
WORDS: tuple[Any, ...] = (
    *("", " ", "1", "-1", "1.5e3", "1e999", "NaN", "0x1f", "1_0", "٣", "9" * 4500),
    *("\ud800", "x\udfffy", "\0", "\u202e", "\u2028", "\x1b[2J"),
    *("<img src=x onerror=alert(1)>", "</script>", "=1+1", "::error::x", "]]>", "@all", "https://x.example", "| ` |"),
    *("/etc/passwd", "/dev/zero(1): f", "train.py(٣): f", "a.py(99999999999999999999): f"),
    *("ProfilerStep#99999999999999999999", "ProfilerStep#-1", "ProfilerStep#1"),
    *("cudaStreamSynchronize", "cudaEventSynchronize", "Memcpy", "aten::item"),
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"a": {"b": []}}, [1, "a", None])
RAW = (
    *(b"NaN", b"-Infinity", b"1e999", b"01", b"+1", b".5", b"1.", b"7" * 5000, b"None", b"/*x*/0"),
    *(b"'x'", b'"\\ud83d"', b'"\\x41"', b'"a\nb"', b'"a"b"', b'"open'),
    *(b"[1,]", b'{"a" 1}', b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000),
)
TOKENS = (
    *(b'"', b"\\", b"]", b"}", b"{", b"[", b",", b":", b"]}", b'},{"ph":"X"', b'"traceEvents":[', b"}" * 9, b"[" * 99),
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\x1b", b"null", b"e999", b"\\u12"),
)


def value(r: Random) -> Any:
    """Something that shouldn't stand where it will."""
    return r.choice(r.choice((NUMBERS, NUMBERS, WORDS, WORDS, OTHERS)))


def places(document: Any, r: Random, count: int) -> list[tuple[Any, Any]]:
    """Random places of a document, at any depth: a container, and a key or an index in it."""
    matches = []
    for _ in range(count):
        at, place = document, None
        while isinstance(at, dict | list) and at and (place is None or r.random() < 0.85):
            key = r.choice(list(at)) if isinstance(at, dict) else r.randrange(len(at))
            place, at = (at, key), at[key]
        if place is not None:
            matches.append(place)
    return matches


def events_of(document: Document) -> list[Event]:
    """The complete events."""
    events = document.get("traceEvents")
    return [e for e in events if isinstance(e, dict)] if isinstance(events, list) else []


def replace_values(document: Document, r: Random) -> None:
    """A few values anywhere."""
    for container, key in places(document, r, r.choice((1, 3, 30))):
        container[key] = value(r)


def replace_everywhere(document: Document, r: Random) -> None:
    """One field of all events, or of some."""
    key, replacement, share = (
        r.choice(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args")),
        value(r),
        r.choice((1, 0.3)),
    )
    for event in events_of(document):
        if r.random() < share:
            event[key] = replacement


def replace_args(document: Document, r: Random) -> None:
    """One argument of all events, or of some: ids, streams, the rows of synchronizations."""
    keys = ("correlation", "External id", "Sequence number", "Fwd thread id", "device", "stream", "bytes", "kind")
    key, replacement, share = r.choice((*keys, "wait_on_cuda_event_record_corr_id")), value(r), r.choice((1, 0.3))
    for event in events_of(document):
        if isinstance(event.get("args"), dict) and r.random() < share:
            event["args"][key] = replacement


def warp_times(document: Document, r: Random) -> None:
    """Clocks that run backwards, stand still, jump, or count in another unit."""
    warp: Callable[[float], Any] = r.choice(
        (
            lambda t: -t,
            lambda t: 0,
            lambda t: t * 1e9,
            lambda t: t + 4e15,
            lambda t: str(t),
            lambda t: t + r.uniform(-1e5, 1e5),
        )
    )
    keys, share = r.choice((("ts",), ("dur",), ("ts", "dur"))), r.choice((1, 0.5, 0.02))
    for event in events_of(document):
        for key in keys:
            if isinstance(event.get(key), int | float) and r.random() < share:
                event[key] = warp(event[key])


def reorder(document: Document, r: Random) -> None:
    """Events shuffled, doubled, or left out."""
    events = document.get("traceEvents")
    if isinstance(events, list):
        r.choice(
            (lambda: r.shuffle(events), lambda: events.extend(events[: r.randrange(300)]), lambda: events.clear())
        )()


def nest(document: Document, r: Random) -> None:
    """Ops in ops in ops synchronously at the bottom."""
    depth, events = r.choice((50, 600)), document.get("traceEvents")
    if isinstance(events, list):
        place = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
        events += [{**place, "name": f"n{i}", "ts": i, "dur": 3.0 * depth - 2 * i} for i in range(depth)]
        events.append({**place, "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": depth, "dur": depth / 2})


def replace_table(document: Document, r: Random) -> None:
    """Values in the table that capture stores, or a table where there was none."""
    row = [1_000, 1, "stream", 0, 0, 0, 1]
    lines = {
        "source": "callbacks",
        "columns": ["epoch_ns", "tid", "kind", "stack", "module", "handle", "stack_tid"],
        "frames": [["train.py", 3, "step"]],
        "stacks": [[0]],
        "modules": ["Net"],
        "syncs": [row],
        "calls": [[0, 10**18, 1, 0]],
    }
    table = document.setdefault("syncscan", {"unprofiled_step_us": 900.0, "lines": lines})
    for container, key in places(table, r, r.choice((1, 4))):
        container[key] = value(r)


def nest_many(document: Document, r: Random) -> None:
    """Ops in ops in ops, with many behind them, or with a call in each and a frame around: what was once a square."""
    depth, events = r.choice((300, 3_000, 12_000)), document.get("traceEvents")
    if not isinstance(events, list):
        return
    place = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    events += [{**place, "name": "nested", "ts": 2 * i, "dur": 6 * depth - 2 * i} for i in range(depth)]
    if r.random() < 0.5:
        events += [{**place, "name": "behind", "ts": 6 * depth + 2 * i, "dur": 1} for i in range(2 * depth)]
        return
    call = {**place, "cat": "cuda_runtime", "name": "cudaStreamGetPriority"}
    events += [{**call, "ts": 2 * i + 1, "dur": 0.5} for i in range(depth)]
    events.append({**place, "cat": "python_function", "name": "a.py(1): f", "ts": 0, "dur": 9 * depth})


STRUCTURE = (
    *(replace_values, replace_everywhere, replace_args, warp_times, reorder, nest, nest_many),
    *(replace_table, replace_table),
)


def written(document: Document, r: Random) -> bytes:
    """JSON text in one of the ways in which writers write it; sometimes with what is no JSON where a value was."""
    layout: dict[str, Any] = r.choice(({}, {"separators": (",", ":")}, {"indent": 1}))
    text = json.dumps(document, ensure_ascii=r.random() < 0.7, **layout).encode("utf-8", "surrogatepass")
    if r.random() < 0.15:
        at = text.find(b":", r.randrange(len(text))) + 1
        end = min((p for c in b",}" if (p := text.find(bytes([c]), at)) >= 0), default=at)
        text = text[:at] + r.choice(RAW) + text[end:]
    return text


def flip(text: bytes, r: Random) -> bytes:
    """Some bytes are others."""
    changed = bytearray(text)
    for _ in range(r.choice((1, 5, 50))):
        changed[r.randrange(len(changed))] = r.randrange(256)
    return bytes(changed)


def insert(text: bytes, r: Random) -> bytes:
    """Marks where none belong."""
    for _ in range(r.choice((1, 3))):
        at = r.randrange(len(text) + 1)
        text = text[:at] + r.choice(TOKENS) + text[at + r.choice((0, 0, 2)) :]
    return text


def cut(text: bytes, r: Random) -> bytes:
    """The begin, the end or something between is missing."""
    a, b = sorted((r.randrange(len(text)), r.randrange(len(text))))
    return r.choice((text[:a], text[a:], text[:a] + text[b:], text[:a] + bytes(b - a) + text[b:]))


def follow(text: bytes, r: Random) -> bytes:
    """Something stands behind the end, or a part stands there twice."""
    a = r.randrange(len(text))
    return r.choice(
        (text + text, text + b"]", text + bytes(70_000), text[:a] + text[max(0, a - 999) :], text + b'{"ph":"X"}')
    )


def recode(text: bytes, r: Random) -> bytes:
    """Another encoding than UTF-8, or other ends of lines."""
    decoded = text.decode("utf-8", "replace")
    return r.choice((b"\xef\xbb\xbf" + text, decoded.encode("utf-16"), text.replace(b", ", b",\r\n")))


BYTES = (flip, insert, insert, cut, follow, recode)


def packed(text: bytes, r: Random) -> tuple[bytes, str, bool]:
    """Stored bytes, how their name ends, and whether all of the text can be had from them."""
    pack, suffix = r.choice(((gzip.compress, ".gz"), (_zstd, ".zst"), (bytes, ""), (bytes, "")))
    at = r.randrange(len(text) + 1)
    parts = [text] if r.random() < 0.7 else [text[:at], text[at:]]
    stored = b"".join(pack(part) for part in parts)
    if suffix == ".zst" and r.random() < 0.3:
        stored = b"\x5a\x2a\x4d\x18\x04\0\0\0abcd" + stored
    if suffix and r.random() < 0.4:
        return r.choice((cut, flip, insert))(stored, r), suffix, False
    return stored, suffix, True


def _zstd(text: bytes) -> bytes:
    import zstandard

    compressed: bytes = zstandard.ZstdCompressor(level=1).compress(text)
    return compressed


def made(base: Document, r: Random) -> tuple[bytes, str, Any]:
    """A file made of a trace: its bytes, how its name ends, what any JSON reader reads of it (None: nothing)."""
    document = json.loads(json.dumps(base))
    for _ in range(r.choice((0, 1, 1, 2, 3))):
        r.choice(STRUCTURE)(document, r)
    text = written(document, r)
    damaged = r.random() < 0.35
    if damaged:
        text = r.choice(BYTES)(text, r)
    stored, suffix, whole = packed(text, r)
    return stored, f".json{suffix}", None if damaged or not whole else valid(text)


def valid(text: bytes) -> Any:
    """Return the value that any JSON reader reads; None if the text isn't JSON."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        return json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
