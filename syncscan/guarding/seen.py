"""A frame at which a thread waits goes in, the line that made it wait and the calls that led there come out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from syncscan.guarding.called import called
from syncscan.model.libraries import is_library, passes_on

DEEPEST = 64
"""Frames kept of a stack, the innermost ones."""

WAITS = {
    "stream": "a blocking copy or a stream synchronise",
    "device": "a device synchronise",
    "event": "an event synchronise",
    "copy": "a non_blocking copy that blocks: its host memory isn't pinned, or not laid out as the device's",
    "call": "a call that waits below torch",
}

_COMPILES = re.compile(
    r".*[/\\]torch[/\\](_dynamo[/\\](convert_frame|output_graph)|_inductor[/\\](compile_fx|cudagraph_trees"
    r"|runtime[/\\](triton_heuristics|benchmarking)))\.py|.*[/\\]triton[/\\](runtime[/\\]autotuner|testing)\.py"
)
_CAPTURES = str(Path(__file__).parents[1] / "capture/session.py")
"""Whatever a capture does in a loop it does below a call of this file's."""
_WRAPPERS = frozenset(str(Path(__file__).with_name(name)) for name in ("copies.py", "process.py"))
"""A blocking `.to()` that torch warns of itself comes up through the wrapper that looks at non-blocking ones."""
_DRYRUN = str(Path(__file__).parents[1] / "dryrun")
"""A dry run's own functions stand around torch's."""
COMPILING = "torch.compile was at work"
CAPTURING = "a capture was at work"
_RUNS = frozenset({"run", "launch", "__call__", "deferred_cudagraphify", "execute_node", "inner", "wrapper"})
"""Functions of those files through which compiled code runs too."""


@dataclass(frozen=True, slots=True)
class GuardedSync:
    """One sync that a guard saw."""

    kind: str
    """"stream", "device", "event", "copy" or "call": a key of `WAITS`, which says it in words."""
    file: str
    """Of the line that waits: the innermost of the program's own, else the innermost of all. "" where there is none."""
    line: int
    function: str
    chain: tuple[tuple[str, int, str], ...]
    """File, line and function of each frame, outermost first."""
    thread: str
    """The name of the thread that waited."""
    step: int
    """Steps that had ended when it came."""
    scopes: tuple[str, ...] = ()
    """The `record_function` scopes that were open, outermost first."""
    allowed: str = ""
    """The reason for which it is allowed; "" where it counts."""
    instruction: tuple[CodeType, int] | None = field(default=None, repr=False, compare=False)
    """Of the line that waits: its code, and where in it."""
    rule: str = ""
    """Where its op was seen, as in a dry run; "" where only what its line called tells (`guarding.rule.rule_of`)."""

    @property
    def called(self) -> str:
        """What that line called: `item`, `nonzero`; `if`, `[]`, `[]=`, `in` or `format`; "" where nobody knows."""
        return called(*self.instruction) if self.instruction is not None else ""

    @property
    def place(self) -> str:
        """File and line, as tracebacks and editors write them."""
        return f"{self.file}:{self.line}" if self.file else "a line that Python doesn't know"

    def __str__(self) -> str:
        """What waits where, in a few words."""
        where = f"{self.place} in {self.function}" if self.function else self.place
        return f"{where} waits for the device ({WAITS[self.kind]})"


Chain = tuple[tuple[str, int, str], ...]


def frames_of(frame: FrameType | None) -> list[FrameType]:
    """A frame and those around it, innermost first, without those of what stands around torch's own functions."""
    found: list[FrameType] = []
    while frame is not None and len(found) < DEEPEST:
        if _file(frame) not in _WRAPPERS and not _file(frame).startswith(_DRYRUN):
            found.append(frame)
        frame = frame.f_back
    return found


def own_frame(inner: list[FrameType]) -> FrameType | None:
    """Of frames, innermost first, the program's own; without any the first that doesn't only pass calls on."""
    program = (frame for frame in inner if not (is_library(file := _file(frame)) or "/torchinductor_" in file))
    deciding = (frame for frame in inner if not passes_on(_file(frame)))
    return next(program, next(deciding, inner[0] if inner else None))


def chain_of(inner: list[FrameType]) -> Chain:
    """File, line and function of each frame, outermost first."""
    return tuple((_file(frame), frame.f_lineno or 0, frame.f_code.co_name) for frame in reversed(inner))


def matches(glob: str, file: str, line: int, function: str) -> bool:
    """Whether a glob is that of a line: `file.py:LINE`, `file.py:function` or `file.py`, from any folder on."""
    path, pattern = "/" + file.replace("\\", "/").lstrip("/"), "*/" + glob.lstrip("/")
    return any(fnmatchcase(f"{path}{part}", pattern) for part in (f":{line}", f":{function}", ""))


def own_work(chain: Chain) -> str:
    """Why a sync is none of the program's own steps: `COMPILING` or `CAPTURING`; "" where it is one.

    `torch.compile` and tuners of kernels measure, and wait to do it; a capture waits between steps.
    """
    works = (_work(file) for file, _, function in chain if function not in _RUNS)
    return next((work for work in works if work), "")


@lru_cache(1 << 12)
def _work(file: str) -> str:
    """What is done while a function of this file runs, but for those of `_RUNS`."""
    if file == _CAPTURES:
        return CAPTURING
    return COMPILING if _COMPILES.fullmatch(file) else ""


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename
