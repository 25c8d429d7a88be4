"""Find the line that made a thread wait, and the calls that led to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from types import CodeType, FrameType

from syncscan.capture.stack_frames import outward
from syncscan.guarding.called import called
from syncscan.model.libraries import is_library, only_starts, passes_on

DEEPEST = 64
"""Most frames kept of a stack, the innermost ones."""

WAITS = {
    "stream": "a blocking copy or a stream synchronization",
    "device": "a device synchronization",
    "event": "an event synchronization",
    "copy": "a non_blocking copy that blocks: its host memory isn't pinned, or its layout differs from the device's",
    "call": "a call outside of torch that waits",
}

_COMPILES = re.compile(
    r".*[/\\]torch[/\\](_dynamo[/\\](convert_frame|output_graph)|_inductor[/\\](compile_fx|cudagraph_trees"
    r"|runtime[/\\](triton_heuristics|benchmarking)))\.py|.*[/\\]triton[/\\](runtime[/\\]autotuner|testing)\.py"
)
_CAPTURES = str(Path(__file__).parents[1] / "capture/session.py")
"""File of capture calls: everything that a capture does in a loop lies below a call of this file."""
_WRAPPERS = frozenset(str(Path(__file__).with_name(name)) for name in ("blocking_copies.py", "dispatch.py"))
"""Files of wrappers around torch's functions; a blocking `.to()` that torch warns about passes through them too."""
_DRYRUN = tuple(str(Path(__file__).parents[1] / name) for name in ("dryrun", "scratch", "testing", "pytest_plugin.py"))
"""A dry run's own functions, which wrap torch's or call the program's."""
_GRAPHS = re.compile(r".*[/\\]torch[/\\](cuda|xpu|accelerator)[/\\]graphs\.py")
"""Files with torch's functions for graphs, which synchronize and empty the allocator's cache before a capture."""
COMPILING = "torch.compile was running"
GRAPHING = "a graph's capture began or ended"
CAPTURING = "a capture was running"
_RUNS = frozenset({"run", "launch", "__call__", "deferred_cudagraphify", "execute_node", "inner", "wrapper"})
"""Functions of those files through which compiled code runs too."""


@dataclass(frozen=True, slots=True)
class GuardedSync:
    """A sync that a guard saw."""

    kind: str
    """"stream", "device", "event", "copy" or "call": a key of `WAITS`, which describes it."""
    file: str
    """File of the line that waits: the program's innermost, else the innermost of all. "" where there is none."""
    line: int
    function: str
    chain: tuple[tuple[str, int, str], ...]
    """File, line and function of each frame, outermost first."""
    thread: str
    """Name of the thread that waited."""
    step: int
    """Steps that had ended before."""
    scopes: tuple[str, ...] = ()
    """Open `record_function` scopes, outermost first."""
    allowed: str = ""
    """The reason why it is allowed; "" where it counts."""
    instruction: tuple[CodeType, int] | None = field(default=None, repr=False, compare=False)
    """Code and instruction of the line that waits."""
    rule: str = ""
    """Rule where the op was observed, as in a dry run; "" where only the line's call shows it
    (`guarding.rule_of_line.rule_of`)."""

    @property
    def called(self) -> str:
        """Return what that line called: `item`, `nonzero`; `if`, `[]`, `[]=`, `in` or `format`; "" where unknown."""
        return called(*self.instruction) if self.instruction is not None else ""

    @property
    def place(self) -> str:
        """Return file and line, as tracebacks and editors write them."""
        return f"{self.file}:{self.line}" if self.file else "an unknown line"

    def __str__(self) -> str:
        """Return where something waits, and for what, in a few words."""
        where = f"{self.place} in {self.function}" if self.function else self.place
        return f"{where} waits for the device ({WAITS[self.kind]})"


Chain = tuple[tuple[str, int, str], ...]


def frames_of(frame: FrameType | None) -> list[FrameType]:
    """Return a frame and its callers, innermost first, without wrappers around torch's functions and entry scripts."""
    program = (
        f for f in outward(frame) if not (_file(f) in _WRAPPERS or of_dry_run(_file(f)) or only_starts(_file(f)))
    )
    return list(islice(program, DEEPEST))


def of_dry_run(file: str) -> bool:
    """Return whether a file is of the dry run's own code, which stands between a program's frames."""
    return file.startswith(_DRYRUN)


def own_frame(inner: list[FrameType]) -> FrameType | None:
    """Return the program's innermost frame, else the first that doesn't only pass calls on."""
    program = (frame for frame in inner if not (is_library(file := _file(frame)) or "/torchinductor_" in file))
    deciding = (frame for frame in inner if not passes_on(_file(frame)))
    return next(program, next(deciding, inner[0] if inner else None))


def chain_of(inner: list[FrameType]) -> Chain:
    """Return file, line and function of each frame, outermost first."""
    return tuple((_file(frame), frame.f_lineno or 0, frame.f_code.co_name) for frame in reversed(inner))


def matches(glob: str, file: str, line: int, function: str) -> bool:
    """Return whether a glob matches a line: `file.py:LINE`, `file.py:function` or `file.py`, from any folder on."""
    path, pattern = "/" + file.replace("\\", "/").lstrip("/"), "*/" + glob.lstrip("/")
    return any(fnmatchcase(f"{path}{part}", pattern) for part in (f":{line}", f":{function}", ""))


def own_work(chain: Chain) -> str:
    """Return why a sync isn't in the program's own steps: `COMPILING`, `CAPTURING` or `GRAPHING`; "" where it is.

    `torch.compile` and kernel tuners measure, and wait for that; a capture waits between steps.
    """
    works = (_work(file) for file, _, function in chain if function not in _RUNS)
    graphing = GRAPHING if in_graphs([file for file, _, _ in reversed(chain)]) else ""
    return next((work for work in works if work), graphing)


def in_graphs(files: Iterable[str]) -> bool:
    """Return whether torch itself waits, as it begins or ends the capture of a graph.

    What is raised there leaves the stream capturing, and the device unusable (NVIDIA/cudnn-frontend#1053).
    """
    within = takewhile(lambda file: file in _WRAPPERS or passes_on(file), files)
    return any(_GRAPHS.fullmatch(file) for file in within)


@lru_cache(1 << 12)
def _work(file: str) -> str:
    """Return the kind of work that functions of this file do, except for those of `_RUNS`."""
    if file == _CAPTURES:
        return CAPTURING
    return COMPILING if _COMPILES.fullmatch(file) else ""


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename
