"""Records of a watch, made by hand."""

from __future__ import annotations

from syncscan.watching.watch_file import (
    Alarm,
    Begin,
    Captured,
    End,
    Record,
    WatchedLine,
    WatchRecords,
    Window,
    WindowSteps,
    of_records,
)

AT = 1_790_000_000.0


def begin(rank: int = 0, world: int = 1) -> Begin:
    return Begin(
        at=AT,
        program="train",
        host="node7",
        pid=4321,
        rank=rank,
        world=world,
        python="3.12.1",
        torch="2.11.0",
        rate=23,
        interval=20.0,
    )


def window(number: int, waiting: float = 0.3, ms: float = 100.0, peers: float = 0.0, line: int = 41) -> Window:
    """Return the window that ends `number` times 20 s after the begin, with one line that waits."""
    steps = WindowSteps(200, ms * 1e3, ms * 1e3, ms * 1.2e3, ms * 2e3)
    lines = (
        WatchedLine("/job/train.py", 12, "main", "", round(0.9 - waiting, 4), 0.0, "host", (0.9 - waiting) * ms * 1e3),
        WatchedLine("/job/train.py", line, "step", "item", waiting, waiting, "device", waiting * ms * 1e3),
    )
    return Window(
        at=AT + 20 * number,
        seconds=20.0,
        total_steps=200 * number,
        step=steps,
        samples=460,
        waiting=waiting,
        input=0.0,
        peers=peers,
        lines=lines,
        others=0.1,
    )


ALARM = Alarm(
    at=AT + 60, file="/job/train.py", line=41, function="step", rule="item", before=0.02, now=0.31, total_steps=620
)
CAPTURED = Captured(at=AT + 62, paths=("/job/out/train.json.gz",), why=str(ALARM), failed=None)
END = End(at=AT + 100, total_steps=1000, samples=2300, lost=0)


def watched(*records: Record) -> WatchRecords:
    """Return a watch with these records, or with four windows and all that may happen."""
    windows = [window(k, waiting) for k, waiting in enumerate((0.02, 0.02, 0.31, 0.31), start=1)]
    return of_records("train.watch.jsonl", records or (begin(), *windows, ALARM, CAPTURED, END))
