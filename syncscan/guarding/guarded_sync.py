"""A sync that a guard saw: the line that made a thread wait, what it called there, its rule, and why it is allowed."""

from __future__ import annotations

import ast
import contextlib
import dis
import itertools
import linecache
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from types import CodeType, FrameType

from syncscan.capture.stack_frames import outward
from syncscan.facts.allow_comments import Comment, comments_in
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
    (`guarding.guarded_sync.rule_of`)."""

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


_RULES = {
    "float": "item",
    "int": "item",
    "complex": "item",
    "if": "tensor-bool",
    "bool": "tensor-bool",
    "[]": "boolean-index",
    "[]=": "boolean-assign",
    "in": "contains",
    "format": "print-tensor",
    "print": "print-tensor",
    "to": "to-device",
    "cuda": "to-device",
    "tensor": "tensor-constructor",
    "as_tensor": "tensor-constructor",
    "synchronize": "explicit-sync",
    "clip_grad_norm_": "clip-grad",
    "unique_consecutive": "unique",
    "argwhere": "nonzero",
}
"""Names that a line calls → rule, where the names differ."""
_NAMED_ALIKE = frozenset(
    "allclose barrier bincount coalesce cpu ctc-loss empty-cache equal histc item masked-select nonzero one-hot"
    " pin-memory repeat-interleave tolist unique".split()
)
"""Rules with the name of what a line calls."""
_KINDS = {"device": "explicit-sync", "event": "explicit-sync", "copy": "pageable-readback"}
_TELLABLE = frozenset(_RULES.values()) | _NAMED_ALIKE | frozenset(_KINDS.values())
_NOT_TOLD_APART = (
    frozenset({"to-device", "pageable-readback", "cpu"}),  # which way a copy goes
    frozenset({"print-tensor", "item"}),  # how many values the tensor has
)


def rule_of(sync: GuardedSync) -> str:
    """Return the rule of a guarded sync, by what its line called; "" where that is ambiguous.

    A trace is more precise: a guard sees neither ops nor copies.
    """
    if sync.rule:
        return sync.rule
    if sync.kind in _KINDS:
        return _KINDS[sync.kind]
    rule = sync.called.replace("_", "-")
    return _RULES.get(sync.called, rule if rule in _NAMED_ALIKE else "")


def written_reason(sync: GuardedSync) -> str:
    """Return the reason of a comment `# syncscan: allow[RULE] reason` on a sync's line; "" where none allows it.

    A comment allows what its rules may be: without a rule, with one that a guard can't recognize, or on a line whose
    rule it can't determine, any sync.
    """
    comment = comment_at(sync.file, sync.line)
    return comment.reason if comment and comment.reason and _may_be(comment.rules, sync) else ""


def _may_be(rules: tuple[str, ...], sync: GuardedSync) -> bool:
    if not rules or "*" in rules or not _TELLABLE.issuperset(rules):
        return True
    rule = rule_of(sync)
    alike = next((group for group in _NOT_TOLD_APART if rule in group), {rule})
    return not rule or not alike.isdisjoint(rules)


def comment_at(file: str, line: int) -> Comment | None:
    """Return the comment that allows something on a line; None without one."""
    return _comments(file).get(line)


@lru_cache(1 << 10)
def _comments(file: str) -> dict[int, Comment]:
    """Return the comments of a source file, by line; empty where it can't be read."""
    return {comment.line: comment for comment in comments_in("".join(linecache.getlines(file)))}


_OPERATIONS = {
    "BINARY_SUBSCR": "[]",
    "STORE_SUBSCR": "[]=",
    "CONTAINS_OP": "in",
    "FORMAT_VALUE": "format",
    "FORMAT_SIMPLE": "format",
    "TO_BOOL": "if",
    "UNARY_NOT": "if",
}
"""Names of instructions that wait without a call. Python 3.14's subscript is a `BINARY_OP`."""


def called(code: CodeType, instruction: int) -> str:
    """Return the last name of what an instruction calls, or a word for what it does; "" where neither is known."""
    operation = _operation(code, instruction)
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    if "JUMP" in operation and "IF" in operation:
        return "if"
    expression = expression_at(code, instruction)
    return _name(expression) if expression is not None else ""


def expression_at(code: CodeType, instruction: int) -> ast.expr | None:
    """Return the expression that an instruction evaluates; None where the source doesn't show it."""
    with contextlib.suppress(SyntaxError, ValueError, IndexError):
        return ast.parse(_segment(code, instruction).strip(), mode="eval").body
    return None


def _operation(code: CodeType, instruction: int) -> str:
    return dis.opname[code.co_code[instruction]] if 0 <= instruction < len(code.co_code) else ""


def _segment(code: CodeType, instruction: int) -> str:
    """Return the source of an instruction's expression; if Python only stores lines, the line if it has one call."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        line = next((line for begin, end, line in code.co_lines() if begin <= instruction < end), None)
        text = linecache.getline(code.co_filename, line or 0).strip().removeprefix("return ").rpartition(" = ")[2]
        return text if text.count("(") == 1 else ""
    row = next(itertools.islice(positions(), max(0, instruction) // 2, None), None)
    if row is None:
        return ""
    line, end, column, stop = row
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(line, end + 1)]
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][column:]
    return b"".join(lines).decode(errors="replace")


def _name(expression: ast.expr) -> str:
    if isinstance(expression, ast.Subscript):
        return "[]"
    if not isinstance(expression, ast.Call):
        return ""
    function = expression.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
