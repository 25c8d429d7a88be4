"""Races: two uses of one memory, by host and device or by two streams, that nothing orders."""

from __future__ import annotations

from enum import Enum

import msgspec

from syncscan.model.finding import Confidence


class RaceKind(str, Enum):
    """Kinds of races, by the later use."""

    READ_BEFORE_COPY = "read-before-copy"
    WRITE_BEFORE_COPY = "write-before-copy"
    UNORDERED_STREAMS = "unordered-streams"
    FREED_IN_USE = "freed-in-use"


class RaceLine(msgspec.Struct, frozen=True):
    """A line of the program that uses the memory."""

    file: str
    """Below the folder that the program was started from; "" in a recording without stacks."""
    line: int
    """In a recording that of the function's `def`, unless one line alone can have made the call; 0 without stacks."""
    function: str
    """In a recording without stacks the scopes and the op."""

    def __str__(self) -> str:
        """Return `train.py:12`; without stacks the scopes and the op."""
        return f"{self.file}:{self.line}" if self.file else self.function


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """Two unordered uses of the same memory."""

    id: str
    kind: RaceKind
    first: RaceLine | None
    """The earlier use; None where its line wasn't noted."""
    second: RaceLine
    """The later use; of a freed tensor the line that may still use it."""
    count: int
    """How often it occurred in the run."""
    confidence: Confidence
    title: str
    why: str
    fix: str

    @property
    def lines(self) -> str:
        """Its two lines, as in `read in train.py:12, copied in train.py:10`."""
        later, earlier = _VERBS[self.kind]
        first = f", {earlier} {self.first}" if self.first and self.first != self.second else ""
        return f"{later} {self.second}{first}"


_VERBS = {
    RaceKind.READ_BEFORE_COPY: ("read in", "copied in"),
    RaceKind.WRITE_BEFORE_COPY: ("written in", "copied in"),
    RaceKind.UNORDERED_STREAMS: ("used in", "used before in"),
    RaceKind.FREED_IN_USE: ("used in", "used before in"),
}
TEXTS = {
    RaceKind.READ_BEFORE_COPY: {
        "title": "the host reads memory that a copy may still be filling",
        "why": (
            "A copy with non_blocking=True to the host returns before the values have arrived: until the stream is "
            "synchronized, the host reads the old values."
        ),
        "fix": (
            "Wait between the copy and the read: event.record() after the copy and event.synchronize() before the "
            "read, or torch.cuda.current_stream().synchronize()."
        ),
    },
    RaceKind.WRITE_BEFORE_COPY: {
        "title": "the host writes to pinned memory that a copy may still use",
        "why": (
            "A copy with non_blocking=True from pinned memory (on XPU and MPS any) reads it after the call: the "
            "device gets whatever the host writes there meanwhile."
        ),
        "fix": (
            "Wait for the copy before the memory is filled again: event.record() after the copy and "
            "event.synchronize() before the write, or alternate between two buffers, each with its event."
        ),
    },
    RaceKind.UNORDERED_STREAMS: {
        "title": "two streams use one tensor without synchronization",
        "why": "Work of different streams runs in any order unless one waits for the other.",
        "fix": (
            "Have the second stream wait for the first before it uses the tensor: stream.wait_stream(other), or "
            "event.record() there and stream.wait_event(event) here."
        ),
    },
    RaceKind.FREED_IN_USE: {
        "title": "a tensor is freed while another stream may still use it",
        "why": (
            "The allocator reuses its memory on the stream that it was allocated on, and doesn't know about work on "
            "the other stream."
        ),
        "fix": (
            "Call tensor.record_stream(stream) for the stream that uses it, or have the stream that it was allocated "
            "on wait for that stream before the tensor is freed."
        ),
    },
}
"""Kind → its sentences. Source: torch's notes on CUDA semantics, `Tensor.record_stream`."""

HEADING = "What the sync protected"

EXAMPLES = {
    RaceKind.READ_BEFORE_COPY: (
        "host = values.to('cpu', non_blocking=True)\nprint(host.sum())  # the values may not have arrived",
        "host = values.to('cpu', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # after the copy, on its stream\n"
        "...  # the host continues until it needs the values\n"
        "copied.synchronize()  # before the first read, also through views and arrays\n"
        "print(host.sum())",
    ),
    RaceKind.WRITE_BEFORE_COPY: (
        "batch = pinned.to('cuda', non_blocking=True)\npinned.copy_(following)  # may reach the device instead",
        "batch = pinned.to('cuda', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # after the copy, on its stream\n"
        "...  # the host continues until it refills the memory\n"
        "copied.synchronize()  # before the write; not needed for new memory each time, as from a pinning loader\n"
        "pinned.copy_(following)",
    ),
}
"""Kind → a program that races, and its right form."""


def section(kind: RaceKind) -> str:
    """Return the section of a rule's documentation on the race that its fix brings in where the wait is forgotten."""
    wrong, right = EXAMPLES[kind]
    text = TEXTS[kind]
    return (
        f"{text['why']} This is a race (`{kind.value}`), which goes wrong only with some timings:\n\n"
        f"```python\n{wrong}\n```\n\n"
        f"The correct form waits only for the copy:\n\n```python\n{right}\n```\n\n"
        "`syncscan dryrun --fail-on race` finds it without a GPU."
    )
