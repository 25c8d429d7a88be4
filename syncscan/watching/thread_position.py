"""Name the program's line that a thread runs, and what it waits for there, by its stack alone.

A line counts as a wait for the device by three signs, each of the innermost frame: torch's function that waits
(`synchronize`), the name of what the instruction calls (`item`, which Python 3.11 and later tell exactly), and a
pattern of `syncscan lint` on the line. No sign shows whether a tensor is on the device; but a read of a tensor on the
CPU takes no time, and no sample meets it. A name that numbers and lists have too (`float`, `if`) is a wait if the
sample shows that Python didn't run, as only a tensor's releases the GIL.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from syncscan.capture.stack_frames import line_of, naming
from syncscan.facts.program_phases import name_of
from syncscan.guarding.guarded_sync import called, expression_at
from syncscan.lint.file_walk import FileWalk
from syncscan.lint.patterns import ANYWHERE, PATTERNS
from syncscan.lint.sources import parsed, read
from syncscan.model.libraries import in_package, is_library, only_starts
from syncscan.source.tree import lines_of

HOST, DEVICE, INPUT, PEERS = "host", "device", "input", "peers"
"""Kinds of what a thread does at a line: it works, or waits for the device, for a data loader, for other ranks."""

CALLS = {
    "item": "item",
    "tolist": "tolist",
    "synchronize": "synchronize",
    "nonzero": "nonzero",
    "argwhere": "nonzero",
    "masked_select": "masked-select",
    "unique": "unique",
    "unique_consecutive": "unique",
    "bincount": "bincount",
}
"""Names of calls that wait for the device on any tensor of its, with the rule of the catalogue."""
UNSURE_CALLS = {
    "float": "item",
    "int": "item",
    "complex": "item",
    "bool": "tensor-bool",
    "if": "tensor-bool",
    "is_nonzero": "tensor-bool",
    "in": "contains",
    "cpu": "cpu",
    "equal": "equal",
    "allclose": "allclose",
    "repeat_interleave": "repeat-interleave",
    "one_hot": "one-hot",
}
"""Names of calls and operations that wait on a tensor of the device's, and that other values have too."""
_FUNCTIONS = (
    ("torch/utils/data", ("_next_data", "_try_get_data", "_get_data", "__next__", "get"), INPUT),
    ("torch/distributed/distributed_c10d.py", (), PEERS),
    ("torch/_tensor_str.py", (), DEVICE),
    ("torch", ("synchronize",), DEVICE),
)
"""Files or packages, names of functions in them (none: all), and what a thread in one waits for."""
_STANDARD_INSIDE = ("queue.py", "threading.py", "connection.py", "selectors.py")
"""Files of the standard library in which a loader's consumer waits."""
_WRAPPERS = ("torch/_tensor.py", "torch/functional.py", "torch/_jit_internal.py", "torch/_compile.py")
"""Files of torch whose functions pass a call on to one of C's: `unique`."""
_PACKAGE = str(Path(__file__).parent.parent)
MOST_KNOWN = 4096
"""Most places whose answer is kept; a program that makes code without end begins anew."""
MOST_FILES = 64
"""Most source files that are looked through, each once; it takes some 0.1 s for 1,000 lines, on a thread of its own."""


class ThreadPosition(NamedTuple):
    """A thread's position: the program's innermost line, and what it does there.

    `kind` is one of the kinds above, `rule` the rule of the catalogue for a wait for the device, "" where none is
    known. A thread outside of the program's code is at the library's innermost line.
    """

    file: str
    line: int
    function: str
    kind: str
    rule: str


class PositionLookup:
    """Converts stacks (code, instruction, innermost first) to `ThreadPosition`s; not for two threads at a time.

    Args:
        since: when the program read its sources, seconds of `time.time`; a file that is newer isn't read.
    """

    def __init__(self, since: float | None = None) -> None:
        self._since = time.time() if since is None else since
        self._known: dict[tuple[int, int], tuple[CodeType, ThreadPosition, bool]] = {}
        self._kinds: dict[tuple[int, int], tuple[CodeType, tuple[str, str]]] = {}
        self._is_own_file = functools.lru_cache(MOST_KNOWN)(_is_own)
        self._lint_lines: dict[str, dict[int, str]] = {}

    def __call__(self, stack: Sequence[Any]) -> ThreadPosition | None:
        """Return where a thread with this stack is; None for an empty one, or one of syncscan's own threads."""
        kind, rule = HOST, ""
        inner: ThreadPosition | None = None
        for code, at in zip(stack[::2], stack[1::2], strict=True):
            position, is_own = self._at(code, at)
            # What a frame waits for is looked up where it counts alone: reading sources costs far more than the rest.
            if kind == HOST and (inner is None or _passes(inner)):
                kind, rule = self._kind(code, at, position.line, is_own)
            inner = inner or position
            if is_own:
                return position._replace(kind=kind, rule=rule)
        return None if inner is None else inner._replace(kind=kind, rule=rule)

    @staticmethod
    def is_own(position: ThreadPosition) -> bool:
        """Return whether a thread is in the program's code, not a library's."""
        return _is_own(position.file)

    def _at(self, code: CodeType, at: int) -> tuple[ThreadPosition, bool]:
        key = id(code), at
        cached = self._known.get(key)
        if cached is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            file = code.co_filename
            position = ThreadPosition(file, line_of(code, at), name_of(code), HOST, "")
            cached = self._known[key] = (code, position, self._is_own_file(file))
        return cached[1], cached[2]

    def _kind(self, code: CodeType, at: int, line: int, is_own: bool) -> tuple[str, str]:
        key = id(code), at
        cached = self._kinds.get(key)
        if cached is None:
            if len(self._kinds) >= MOST_KNOWN:
                self._kinds.clear()
            cached = self._kinds[key] = (code, self._waits(code, at, line, is_own))
        return cached[1]

    def _waits(self, code: CodeType, at: int, line: int, is_own: bool) -> tuple[str, str]:
        """Return what a thread waits for that stands right here, with its rule."""
        file, name = code.co_filename, code.co_name
        for package, names, kind in () if is_own else _FUNCTIONS:
            if in_package(file, package) and (not names or name in names):
                return kind, "synchronize" if kind == DEVICE and name == "synchronize" else ""
        if not self._readable(file):
            return HOST, ""
        call = ""
        with contextlib.suppress(Exception):  # positions that no source has
            call = called(code, at)
        if call in CALLS:
            return DEVICE, CALLS[call]
        rule = self._lines_with_rules(file).get(line, "") if is_own else ""
        if rule:
            return DEVICE, rule
        if call in UNSURE_CALLS:
            return DEVICE, UNSURE_CALLS[call]
        if call in ("[]", "to", "") and _reads_back(code, at):
            return DEVICE, ""
        return HOST, ""

    def _readable(self, file: str) -> bool:
        """Return whether a file's lines are still those that run.

        A time in the future is another machine's clock, as of an image or a shared folder: no sign of a change.
        """
        with contextlib.suppress(OSError):
            return not self._since < Path(file).stat().st_mtime <= time.time()
        return False

    def _lines_with_rules(self, file: str) -> dict[int, str]:
        """Return the lines of a file that wait as far as its source shows, each with its rule."""
        if file not in self._lint_lines:
            if len(self._lint_lines) >= MOST_FILES:
                return {}
            self._lint_lines[file] = {}
            with contextlib.suppress(Exception):  # a file that can't be read or parsed tells nothing
                self._lint_lines[file] = dict(_lint_lines(file))
        return self._lint_lines[file]


def _reads_back(code: CodeType, at: int) -> bool:
    """Return whether an expression may read a value of the device's: an index by a mask, or a copy to the CPU."""
    with contextlib.suppress(Exception):  # positions that no source has
        expression = expression_at(code, at)
        if isinstance(expression, ast.Subscript):
            return isinstance(expression.slice, ast.Name | ast.Attribute | ast.Compare | ast.UnaryOp | ast.BinOp)
        if isinstance(expression, ast.Call):
            words = [*expression.args, *(keyword.value for keyword in expression.keywords)]
            return any("cpu" in ast.unparse(word) for word in words)
    return False


def _lint_lines(file: str) -> Iterator[tuple[int, str]]:
    source = read(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = parsed(source)
    for hit, site in FileWalk(tree, PATTERNS, ANYWHERE).found():
        yield from ((line, hit.rule) for line in lines_of(site.node))


def _is_own(file: str) -> bool:
    """Return whether a file is the program's: no library's, wherever that lies, and not syncscan's."""
    named = naming()(file)
    return not (file.startswith(_PACKAGE) or is_library(named) or only_starts(file))


def _passes(position: ThreadPosition) -> bool:
    """Return whether a thread at this innermost place does nothing of its own: a frame further out tells more."""
    if position.file.startswith("<") or not is_library(position.file):
        return False
    return _waiting(position) or any(in_package(position.file, file) for file in _WRAPPERS)


def _waiting(position: ThreadPosition) -> bool:
    return position.file.endswith(_STANDARD_INSIDE) or in_package(position.file, "torch/utils/data")
