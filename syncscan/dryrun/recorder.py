"""Place each wait that torch's modes see in a dry run in the program, and record it.

One session is on at a time, on the thread that began it and those that begin meanwhile: modes are a thread's own.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from syncscan.capture.stack_frames import RUNNER, outward
from syncscan.dryrun.program_paths import (
    CallPaths,
    OwnLines,
    ProgramPart,
    begin_of,
    end_of,
    is_ours,
    with_whole_scopes,
)
from syncscan.dryrun.program_steps import ProgramRounds
from syncscan.dryrun.recording import MAIN, OTHERS, DryRecording, DryWait, ForwardOp, Frame, ProgramPoint, Stack
from syncscan.dryrun.work_order import WorkOrder
from syncscan.facts.program_frames import ModulePaths, shortened
from syncscan.model.libraries import is_library

REMEMBERED = 20_000
"""Forward ops whose lines are kept for the backward pass: several steps of a big model."""
MOST_WAITS = 200_000
"""Most waits that are recorded; further ones are counted and reported."""
APART = 10**9
"""Offset between the forward ops' numbers of two threads; torch counts each thread's from 0."""

_ENGINE = ("_engine_run_backward", "torch/autograd/graph.py")
_WRAPPER = str(Path("torch", "_dynamo", "eval_frame.py"))
"""Frames that torch puts around a dispatch mode's own function."""

NOTHING = "No op ran on the simulated device: the program never used it on the watched thread."


@dataclass(slots=True)
class TorchCall:
    """A function of torch that the program called, while it runs.

    `place` is where a tensor made inside lies, where the call says so; `quiet` leaves out what ops inside wait for;
    `waited` says that one of them has waited.
    """

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    place: str | type[Unsaid] | None = None
    quiet: bool = False
    moving: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True)
class RecordedWait:
    """A wait as it was recorded, on the recording's clock from begin to end.

    `forward` is the stack of the forward op of a wait in a backward pass, innermost frame first.
    """

    wait: DryWait
    begin: int
    end: int
    forward: Stack = ()


class Unsaid:
    """The call doesn't say where what it makes lies: beside what it is given."""


class Stacks:
    """Reads stacks, with the path of the module around them."""

    def __init__(self) -> None:
        import torch

        self._call = torch.nn.Module._call_impl.__code__
        self._path_of = ModulePaths()

    def now(self, *, backward: bool = False) -> tuple[Stack, str, bool]:
        """Return the stack, innermost frame first, the module's path, and whether the stack is borrowed.

        A node of the backward pass has those frames of its own that are inside of autograd's engine; it borrows those
        of the caller of `backward()` where it has none.
        """
        frames: list[Frame] = []
        module: Any = None
        root: Any = None
        inside: int | None = None
        ours = True
        for frame in outward(sys._getframe(1)):
            code, file = frame.f_code, frame.f_code.co_filename
            if file == RUNNER:
                break
            if code is self._call:
                root = frame.f_locals.get("self")
                module = root if module is None else module
            in_engine = code.co_name == _ENGINE[0] and file.replace("\\", "/").endswith(_ENGINE[1])
            if backward and inside is None and in_engine:
                inside = len(frames)
            ours = is_ours(file) or (ours and file.endswith(_WRAPPER))
            if not ours:
                frames.append((file, frame.f_lineno, code.co_name))
        path = "" if module is None else self._path_of(root, module)
        return tuple(shortened(frames[:inside] if inside else frames)), path, inside == 0


class _Here(threading.local):
    """A thread's calls that run now, and its number in the recording."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.calls: list[TorchCall] = []
        self.thread = next(numbers)


class DryRunSession:
    """One run on the simulated device."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.recording = DryRecording()
        self.stacks = Stacks()
        self.order = WorkOrder(OwnLines().now)
        self.paths = CallPaths()
        self._here = _Here(itertools.chain([MAIN], itertools.count(OTHERS)))
        self.seen = 0
        self.over = False
        self.unknown: Counter[str] = Counter()
        self.where: dict[str, tuple[str, int]] = {}
        self.notes: list[str] = []
        self.left_out = 0
        self.rounds: ProgramRounds | None = None
        """Looks for the loop of a program without an optimizer; None where steps are marked."""
        self.on_wait: Callable[[RecordedWait], None] | None = None
        self.first_followed: int | None = None
        """When autograd first followed an op, on the recording's clock."""
        self._forward: dict[tuple[int, int], tuple[str, int, Any, int]] = {}
        self._lock = threading.Lock()
        self._node = self.torch._C._current_autograd_node

    @property
    def calls(self) -> list[TorchCall]:
        """Those of this thread that run now, the outermost first."""
        return self._here.calls

    @property
    def thread(self) -> int:
        """The running thread's number in the recording."""
        return self._here.thread

    @contextmanager
    def calling(self, call: TorchCall) -> Iterator[None]:
        """Count everything that runs inside as part of this call."""
        self.calls.append(call)
        try:
            yield
        finally:
            self.calls.pop()

    def look(self, frame: FrameType | None, call: str) -> None:
        if self.rounds is not None and not self.calls and self.thread == MAIN:
            self.rounds.look(frame, call)

    def say(self, note: str) -> None:
        """Add a sentence that the report has to say, once."""
        if note not in self.notes:
            self.notes.append(note)

    def failed(self, error: BaseException | None = None) -> None:
        """Note that the program failed: what would have come after it wasn't run."""
        what = f" ({type(error).__name__}: {str(error)[:200]})" if error is not None else ""
        self.say(f"The program failed{what}, so the rest of it wasn't seen.")

    def not_understood(self, op: str) -> None:
        """Count an op or call whose CUDA behavior is unknown, and name it with its line; the caller counts it seen."""
        self.unknown[op] += 1
        if op not in self.where:
            stack, _, _ = self.stacks.now()
            own = (frame for frame in stack if not is_library(frame[0]))
            file, line, _ = next(own, stack[0] if stack else ("?", 0, ""))
            self.where[op] = (file, line)

    def wait(self, *waits: DryWait) -> None:
        """Note that the host waits for each of these in turn: for the current stream, or for the device."""
        for wait in waits:
            for_all = {"cudaDeviceSynchronize", "cudaFree"} & set(wait.calls)
            self.order.host_waits_for_device() if for_all else self.order.host_waits(self.order.mark())
        self.record(*waits)

    def record(self, *waits: DryWait) -> None:
        """Record waits, for whatever it is that the host waits for."""
        for wait in waits:
            if self.recording.waits >= MOST_WAITS:
                self.left_out += 1
                continue
            node = self._node()
            name, sequence = ("", None) if node is None else (node.name(), _sequence(node))
            stack, module, borrowed = self.stacks.now(backward=node is not None)
            forward = self._forward_of(sequence) if sequence is not None else None
            follows = None if forward is None or sequence is None else sequence + (self.thread - MAIN) * APART
            place = ProgramPoint(stack, module, name, follows, borrowed, self.thread)
            with self._lock:
                begin = self.recording.now
                self.recording.wait(wait, place, forward)
                number = self.recording.waits - 1
            if self.thread == MAIN:
                self.paths.wait(number, begin, self.recording.now)
            if self.on_wait is not None:
                self.on_wait(RecordedWait(wait, begin, self.recording.now, forward.stack if forward else ()))

    def followed(self, name: str, begin: int, first: int, last: int) -> None:
        """Autograd gave the numbers from first to last to an op: its line is kept for the backward pass."""
        captured = self.torch._C._profiler.gather_traceback(True, False, False)
        thread, stream = threading.get_ident(), self.order.current
        if self.first_followed is None:
            self.first_followed = begin
        for sequence in range(first, last):
            self._forward[thread, sequence] = (name, begin, captured, stream)
        while len(self._forward) > REMEMBERED:
            self._forward.pop(next(iter(self._forward)))

    def _forward_of(self, sequence: int) -> ForwardOp | None:
        key = threading.get_ident(), sequence
        if key not in self._forward:
            return None
        name, begin, captured, _ = self._forward[key]
        frames = self.torch._C._profiler.symbolize_tracebacks([captured])[0]
        stack = [(f["filename"], f["line"], f["name"]) for f in frames if "syncscan/dryrun" not in f["filename"]]
        return ForwardOp(name, begin, tuple(shortened(stack)), thread=self.thread)

    def stream_of(self, node: Any) -> int | None:
        """Return the stream that the forward op of a node of the backward pass ran on; None where it isn't known."""
        sequence = _sequence(node)
        forward = None if sequence is None else self._forward.get((threading.get_ident(), sequence))
        return None if forward is None else forward[3]

    def coverage(self) -> list[str]:
        """Return sentences on what was run, and which ops of it weren't recognized."""
        sentences = [*self.notes, self._understood()]
        if self.left_out:
            sentences.append(f"{self.left_out} more waits were counted but not recorded.")
        return sentences

    def _understood(self) -> str:
        count = sum(self.unknown.values())
        if not count:
            return f"All {self.seen} ops on the simulated device were recognized." if self.seen else NOTHING
        places = "; ".join(f"{what} ({file}:{line})" for what, _, file, line in self.gaps())
        ops, they = ("op", "it waits") if count == 1 else ("ops", "they wait")
        return f"{count} {ops} of {self.seen} not recognized; it is unknown whether {they}: {places}."

    def gaps(self) -> list[tuple[str, int, str, int]]:
        """Return the ops and calls that weren't understood: name, how often, and file and line of the first."""
        return [(what, self.unknown[what], *self.where[what]) for what in sorted(self.unknown)]

    def open_scope(self, name: str) -> None:
        if self.thread == MAIN:
            self.paths.first_time(self.paths.scopes, self.recording.now)
        self.recording.open_scope(name, self.thread)

    def step(self, number: int | None) -> None:
        """End the current step, if one runs, and begin the next, if it has a number."""
        is_first, by_rounds = not self.paths.ends, self.rounds is not None and self.rounds.repeated is not None
        self.paths.step(self.recording.now, last=number is None)
        if is_first and by_rounds:
            self.recording.keep_open(before=self.recording.now + 1)
        elif is_first:
            self.recording.keep_open(before=begin_of(self.paths, self.first_followed))
        self.recording.step(number)

    def count_all(self) -> None:
        """Count the steps of a run that is over and that ended by itself: the first one too, and all of the last."""
        self.recording.finish()
        if self.recording.steps:
            begin, end = begin_of(self.paths, self.first_followed), end_of(self.paths)
            begin, end = with_whole_scopes(begin, end, self.recording.scopes(), self.recording.steps[0][0])
            self.recording.count_from(begin, end)
            self.paths.ends = [begin, *self.paths.ends[:-1], end]

    def trace(self, part: ProgramPart | None = None, without: Collection[int] = ()) -> bytes:
        """Return the run as a trace's JSON, without the waits of these numbers.

        Of a `part`, only this is included, with its rounds as steps.
        """
        about: dict[str, Any] = {"notes": self.coverage(), "coverage": {"ops": self.seen, "gaps": self.gaps()}}
        if part is not None:
            return self.recording.trace(about, part.rounds, set(range(self.recording.waits)) - part.waits)
        about["races"] = [
            (kind.value, first, second, count) for (kind, second), (first, count) in self.order.races.items()
        ]
        about["protected"] = [
            (wait, kind.value, *lines) for wait, (kind, *lines) in self.order.protecting.races.items()
        ]
        return self.recording.trace(about, without=without)


def _sequence(node: Any) -> int | None:
    number = int(node._sequence_nr())
    return number if number < 2**62 else None
