"""From the name of a source file in a trace to its text, where the file is the program's own and at hand."""

from __future__ import annotations

import ast
import stat
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from syncscan.errors import UsageError
from syncscan.model.finding import Excerpt, Source

MAX_BYTES = 4_000_000
"""No source file that somebody wrote is longer."""
AROUND = 2
"""Lines shown above a flagged line, and below."""
MOST_LINES = 12
"""Lines that an excerpt has at most."""
_NETWORK = ("//", "\\\\")
_DEEPEST = 64
_HERE = Path()
"""The working directory."""


class SourceRoot(msgspec.Struct, frozen=True):
    """A folder that sources may be read below.

    `recorded` is the folder that it stands for, as the trace names it; empty where any end of a name may be one in it.
    """

    folder: Path
    recorded: str = ""

    def candidates(self, file: str) -> Iterator[Path]:
        """Where the file can lie in it, the most of its name first."""
        name = file.replace("\\", "/")
        if self.recorded:
            if name.startswith(f"{self.recorded}/"):
                yield self.folder / name[len(self.recorded) + 1 :]
            return
        parts = [part for part in PurePosixPath(name).parts if part != "/"][-_DEEPEST:]
        yield from (self.folder.joinpath(*parts[k:]) for k in range(len(parts)))


class SourceFiles(msgspec.Struct, frozen=True):
    """The source files that may be read: Python's, regular, below the working directory or below a root.

    `kept` are texts by file that a saved analysis holds, and `newer` the files of them that had been written after the
    trace was recorded: with them nothing is read.
    """

    roots: tuple[SourceRoot, ...] = ()
    kept: Mapping[str, str] | None = None
    newer: tuple[str, ...] = ()
    found: dict[str, Path | None] | None = None
    """Where files were found; None where that isn't kept, as they come and go between one analysis and the next."""

    def path_of(self, file: str) -> Path | None:
        """Where a file of the trace lies here; None for any that may not be read, or that isn't there.

        Args:
            file: its name; the trace may name whatever it likes.
        """
        if self.found is None:
            return self._looked_up(file)
        if file not in self.found:
            self.found[file] = self._looked_up(file)
        return self.found[file]

    def _looked_up(self, file: str) -> Path | None:
        if not file.endswith(".py") or file.startswith(_NETWORK) or "://" in file:
            return None
        try:
            return next(self._found(file), None)
        except (OSError, ValueError, RuntimeError):  # a name that is none, links in a circle
            return None

    def _found(self, file: str) -> Iterator[Path]:
        below_roots = [(root.folder, path) for root in self.roots for path in root.candidates(file)]
        for folder, path in (*below_roots, (_HERE, Path(file))):
            if _readable(path):
                resolved = path.resolve()
                if resolved.suffix == ".py" and resolved.is_relative_to(folder.resolve()):
                    yield resolved

    def text_of(self, file: str) -> str | None:
        """The text of a source file; None where it isn't at hand, or may not be read."""
        if self.kept is not None:
            return self.kept.get(file)
        path = self.path_of(file)
        try:
            return _read(path, path.stat().st_mtime_ns) if path else None
        except (OSError, ValueError, SyntaxError):  # gone since, no such encoding
            return None

    def tree_of(self, file: str) -> ast.Module | None:
        """A source file parsed; None where it isn't at hand, or is no Python."""
        text = self.text_of(file)
        return None if text is None else _parsed(text)

    def excerpt(self, source: Source, recorded_ns: int = 0) -> Excerpt | None:
        """The flagged line with those around it.

        Args:
            source: the line, or the lines that it can be.
            recorded_ns: when the trace was recorded, in ns of the epoch; 0 where nobody knows.

        Returns:
            None where the file isn't at hand, where it has no such function at this line any more, so that it was
            changed, or where nobody knows the line.
        """
        lines = (source.line,) if source.exact else source.candidates
        text = self.text_of(source.file) if lines else None
        tree = None if text is None else _parsed(text)
        if text is None or tree is None or not (source.function.startswith("<") or function_with(tree, source)):
            return None
        marked = tuple(line for line in lines if line - lines[0] < MOST_LINES - 2 * AROUND)
        first = max(1, marked[0] - AROUND)
        shown = text.split("\n")[first - 1 : marked[-1] + AROUND]
        if len(shown) <= marked[-1] - first or not all(shown[line - first].strip() for line in marked):
            return None
        path = self.path_of(source.file) if self.kept is None else None
        written_since = path is not None and 0 < recorded_ns < path.stat().st_mtime_ns
        newer = written_since or source.file in self.newer
        return Excerpt(path=str(path or ""), first=first, lines=tuple(shown), marked=marked, newer=newer)


OWN = SourceFiles()
"""Those below the working directory."""


def source_files(roots: Sequence[str]) -> SourceFiles:
    """What may be read with these roots too.

    Args:
        roots: each `DIR`, or `OLD=NEW`: what the trace has below OLD lies below NEW.

    Raises:
        UsageError: one is no folder.
    """
    return SourceFiles(tuple(map(_root, roots)))


def _root(text: str) -> SourceRoot:
    old, equals, new = text.partition("=")
    if Path(text).is_dir() or not equals:
        old, new = "", text
    if not new or new.startswith(_NETWORK) or not Path(new).is_dir():
        raise UsageError(f"The source root {text} is no folder: {new or 'nothing'} isn't one.", "Use DIR or OLD=NEW.")
    return SourceRoot(Path(new), old.replace("\\", "/").rstrip("/"))


def kept_sources(sources: Iterable[Source], files: SourceFiles = OWN) -> dict[str, str]:
    """Of each program's file that is at hand its text, all but the functions around these lines left blank.

    Line numbers stay as they are. A method stands without its class, at the beginning of its lines. Comments to
    syncscan stay wherever they are.
    """
    found: dict[str, list[str]] = {}
    for source in sources:
        text, tree = files.text_of(source.file), files.tree_of(source.file)
        if text is None or tree is None:
            continue
        lines = text.split("\n")
        kept = found.setdefault(source.file, [_comment(line) for line in lines])
        if function := function_with(tree, source):
            first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
            for number, line in enumerate(lines[first - 1 : function.end_lineno], first):
                kept[number - 1] = line[: function.col_offset].lstrip() + line[function.col_offset :]
    return {file: "\n".join(lines) for file, lines in found.items() if any(lines)}


def _comment(line: str) -> str:
    """The comment to syncscan in a line, behind something if it was; empty without one."""
    before, mark, said = line.partition("# syncscan:")
    return ("0  " if before.strip() else "") + mark + said if mark else ""


def function_with(tree: ast.Module, source: Source) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function of this name that holds the line; one of a decorator is the function's too."""
    found = None
    for node in functions_of(tree):
        if node.name == source.function:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= source.line <= (node.end_lineno or node.lineno):
                found = node
    return found


@lru_cache(maxsize=64)
def functions_of(tree: ast.Module) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Every function of a file, those around before those inside; only statements hold any."""
    statements: list[Any] = [tree]
    for node in statements:
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            statements += getattr(node, part, ())
    return tuple(node for node in statements if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _readable(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES


@lru_cache(maxsize=64)
def _read(path: Path, written_ns: int) -> str:
    """Read anew once it was written."""
    with tokenize.open(path) as file:  # in the encoding that it declares
        return file.read()


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


__all__ = [
    "AROUND",
    "MAX_BYTES",
    "OWN",
    "SourceFiles",
    "SourceRoot",
    "function_with",
    "functions_of",
    "kept_sources",
    "source_files",
]
