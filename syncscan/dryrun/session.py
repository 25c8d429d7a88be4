"""What torch's modes see of a pretended run goes in; each wait is placed in the program and recorded.

One session is on at a time, on the thread that began it: modes are a thread's own.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from syncscan.dryrun.recording import ForwardOp, Place, Recording, Wait
from syncscan.dryrun.stacks import Stacks, trimmed

REMEMBERED = 20_000
"""Forward ops whose lines are kept for the backward pass: several steps of a big model."""
MOST_WAITS = 200_000
"""Recorded at the most; more are counted, and said."""


NOTHING = "No op ran on the pretended device: the program never asked for it, on the thread that was watched."


@dataclass(slots=True)
class Call:
    """A function of torch that the program called, while it runs.

    `place` is where a tensor made inside lies, where the call says so; `quiet` leaves out what ops inside wait for.
    """

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    place: str | type[Unsaid] | None = None
    quiet: bool = False
    moving: bool = False


class Unsaid:
    """The call doesn't say where what it makes lies: beside what it is given."""


class Session:
    """One pretended run."""

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.recording = Recording()
        self.stacks = Stacks()
        self.calls: list[Call] = []
        self.seen = 0
        self.unknown: Counter[str] = Counter()
        self.where: dict[str, tuple[str, int]] = {}
        self.notes: list[str] = []
        self.left_out = 0
        self._forward: dict[int, tuple[str, int, Any]] = {}
        self._node = self.torch._C._current_autograd_node

    @contextmanager
    def calling(self, call: Call) -> Iterator[None]:
        """What runs inside is part of this call."""
        self.calls.append(call)
        try:
            yield
        finally:
            self.calls.pop()

    def say(self, note: str) -> None:
        """A sentence that the report has to say, once."""
        if note not in self.notes:
            self.notes.append(note)

    def not_understood(self, what: str) -> None:
        """An op or call whose CUDA side nobody knows: it is counted and named with its line."""
        self.unknown[what] += 1
        if what not in self.where:
            stack, _, _ = self.stacks.now()
            file, line, _ = next((f for f in stack if not _is_torch(f[0])), ("?", 0, ""))
            self.where[what] = (file, line)

    def wait(self, *waits: Wait) -> None:
        """The host waits here, for each of these in turn."""
        for wait in waits:
            if self.recording.waits >= MOST_WAITS:
                self.left_out += 1
                continue
            node = self._node()
            name, sequence = ("", None) if node is None else (node.name(), _sequence(node))
            stack, module, borrowed = self.stacks.now(backward=node is not None)
            forward = self._forward_of(sequence) if sequence is not None else None
            place = Place(stack, module, name, sequence if forward else None, borrowed)
            self.recording.wait(wait, place, forward)

    def followed(self, name: str, begin: int, first: int, last: int) -> None:
        """Autograd gave the numbers from first to last to an op: its line is kept for the backward pass."""
        captured = self.torch._C._profiler.gather_traceback(True, False, False)
        for sequence in range(first, last):
            self._forward[sequence] = (name, begin, captured)
        while len(self._forward) > REMEMBERED:
            self._forward.pop(next(iter(self._forward)))

    def _forward_of(self, sequence: int) -> ForwardOp | None:
        if sequence not in self._forward:
            return None
        name, begin, captured = self._forward[sequence]
        frames = self.torch._C._profiler.symbolize_tracebacks([captured])[0]
        stack = [(f["filename"], f["line"], f["name"]) for f in frames if "syncscan/dryrun" not in f["filename"]]
        return ForwardOp(name, begin, trimmed(stack))

    def coverage(self) -> list[str]:
        """Sentences on what was run and what of it wasn't understood."""
        said = list(self.notes)
        count = sum(self.unknown.values())
        if count:
            places = "; ".join(f"{what} ({self.where[what][0]}:{self.where[what][1]})" for what in sorted(self.unknown))
            said.append(f"{count} ops of {self.seen} not understood, and whether they wait is unknown: {places}.")
        else:
            said.append(f"All {self.seen} ops on the pretended device were understood." if self.seen else NOTHING)
        if self.left_out:
            said.append(f"{self.left_out} more waits were counted and not recorded.")
        return said

    def trace(self) -> bytes:
        """The run as a trace's JSON."""
        return self.recording.trace(self.coverage())


def _sequence(node: Any) -> int | None:
    number = int(node._sequence_nr())
    return number if number < 2**62 else None


def _is_torch(file: str) -> bool:
    return "/torch/" in file.replace("\\", "/")
