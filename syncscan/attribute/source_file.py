"""Read the source files that a trace names, if they belong to the program and are available."""

from __future__ import annotations

import stat
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.trace import Trace
from syncscan.source.tree import SourceTree, lines_of, tree_of

MAX_BYTES = 4_000_000
"""Size limit of source files; larger files aren't read."""
AROUND = 2
"""Lines shown above and below a flagged line."""
MOST_LINES = 12
"""Longest excerpt, in lines."""
_NETWORK = ("//", "\\\\")
_DEEPEST = 64
_HERE = Path()


class SourceRoot(msgspec.Struct, frozen=True):
    """A folder below which source files may be read.

    `recorded` is the prefix of the trace's file names that it replaces. If empty, any suffix of a name may be a path in
    it.
    """

    folder: Path
    recorded: str = ""

    def candidates(self, file: str) -> Iterator[Path]:
        """Yield the paths that a file can have in this folder, the longest match of its name first."""
        name = file.replace("\\", "/")
        if self.recorded:
            if name.startswith(f"{self.recorded}/"):
                yield self.folder / name[len(self.recorded) + 1 :]
            return
        parts = [part for part in PurePosixPath(name).parts if part != "/"][-_DEEPEST:]
        yield from (self.folder.joinpath(*parts[k:]) for k in range(len(parts)))


class SourceFiles(msgspec.Struct, frozen=True):
    """Source files that may be read: regular Python files below the working directory or below a root.

    `saved` has the texts by file name that a saved analysis holds, and `newer` the names of those that were modified
    after the trace was recorded. With them, no file is read.
    """

    roots: tuple[SourceRoot, ...] = ()
    saved: Mapping[str, str] | None = None
    newer: tuple[str, ...] = ()
    resolved: dict[str, Path | None] | None = None
    """Resolved paths by file name; None if they aren't cached, as files come and go between analyses."""

    def path_of(self, file: str) -> Path | None:
        """Return the path of a file of the trace on this machine; None if it doesn't exist or may not be read.

        The name isn't trusted.
        """
        if self.resolved is None:
            return self._resolve(file)
        if file not in self.resolved:
            self.resolved[file] = self._resolve(file)
        return self.resolved[file]

    def _resolve(self, file: str) -> Path | None:
        if not file.endswith(".py") or file.startswith(_NETWORK) or "://" in file:
            return None
        try:
            return next(self._existing(file), None)
        except (OSError, ValueError, RuntimeError):  # no valid name, or a circle of links
            return None

    def _existing(self, file: str) -> Iterator[Path]:
        below_roots = [(root.folder, path) for root in self.roots for path in root.candidates(file)]
        for folder, path in (*below_roots, (_HERE, Path(file))):
            if _readable(path):
                resolved = path.resolve()
                if resolved.suffix == ".py" and resolved.is_relative_to(folder.resolve()):
                    yield resolved

    def text_of(self, file: str) -> str | None:
        """Return None if the file isn't available or may not be read."""
        if self.saved is not None:
            return self.saved.get(file)
        path = self.path_of(file)
        try:
            return _read(path, path.stat().st_mtime_ns) if path else None
        except (OSError, ValueError, SyntaxError):  # deleted meanwhile, or no such encoding
            return None

    def tree_of(self, file: str) -> SourceTree | None:
        """Return None if the file isn't available or isn't Python."""
        text = self.text_of(file)
        return None if text is None else tree_of(text)

    def excerpt(self, source: Source, recorded_ns: int = 0) -> Excerpt | None:
        """Return the flagged line with the lines around it.

        None if the file isn't available, if it has changed since (no function of this name at this line any more), or
        if the line is unknown. `recorded_ns` counts from the epoch; it is 0 if unknown.
        """
        lines = (source.line,) if source.exact else source.candidates
        text = self.text_of(source.file) if lines else None
        tree = None if text is None else tree_of(text)
        if text is None or tree is None:
            return None
        if not source.function.startswith("<") and not tree.function_at(source.function, source.line):
            return None
        marked = tuple(line for line in lines if line - lines[0] < MOST_LINES - 2 * AROUND)
        first = max(1, marked[0] - AROUND)
        shown = text.split("\n")[first - 1 : marked[-1] + AROUND]
        if len(shown) <= marked[-1] - first or not all(shown[line - first].strip() for line in marked):
            return None
        path = self.path_of(source.file) if self.saved is None else None
        written_since = path is not None and 0 < recorded_ns < path.stat().st_mtime_ns
        newer = written_since or source.file in self.newer
        return Excerpt(path=str(path or ""), first=first, lines=tuple(shown), marked=marked, newer=newer)


OWN = SourceFiles()
"""Source files below the working directory."""


def source_files(roots: Sequence[str]) -> SourceFiles:
    """Return the source files below the working directory and below these roots.

    A root is `DIR`, or `OLD=NEW` to map the recorded prefix OLD to the folder NEW.
    """
    return SourceFiles(tuple(map(_root, roots)))


def _root(text: str) -> SourceRoot:
    old, equals, new = text.partition("=")
    if Path(text).is_dir() or not equals:
        old, new = "", text
    if not new or new.startswith(_NETWORK) or not Path(new).is_dir():
        raise UsageError(f"The source root {text} is not a folder.", "Use DIR or OLD=NEW.")
    return SourceRoot(Path(new), old.replace("\\", "/").rstrip("/"))


def kept_sources(sources: Iterable[Source], files: SourceFiles = OWN) -> dict[str, str]:
    """Return the text of each available source file, with all but the functions around these lines blanked out.

    Line numbers don't change. A method stands without its class and loses its indentation. `# syncscan:` comments stay
    everywhere.
    """
    blanked: dict[str, list[str]] = {}
    for source in sources:
        text, tree = files.text_of(source.file), files.tree_of(source.file)
        if text is None or tree is None:
            continue
        lines = text.split("\n")
        blank = blanked.setdefault(source.file, [_comment(line) for line in lines])
        if function := tree.function_at(source.function, source.line):
            for number in lines_of(function):
                line, indent = lines[number - 1], function.col_offset
                blank[number - 1] = line[:indent].lstrip() + line[indent:]
    return {file: "\n".join(lines) for file, lines in blanked.items() if any(lines)}


def _comment(line: str) -> str:
    """Return the `# syncscan:` comment of a line, behind a placeholder for code; empty without a comment."""
    before, mark, directive = line.partition("# syncscan:")
    return ("0  " if before.strip() else "") + mark + directive if mark else ""


def _readable(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES


@lru_cache(maxsize=64)
def _read(path: Path, written_ns: int) -> str:
    """Return the text; `written_ns` is part of the cache's key, so a file that changed is read again."""
    with tokenize.open(path) as file:  # in its declared encoding
        return file.read()


MOST = 200
"""Number of findings that get an excerpt; readers look at the first ones."""
_SINCE_NS = 1_400_000_000 * 10**9
"""Times before this one (2014) aren't epoch times: old traces count from the boot of the machine."""


def available_sources(trace: Trace, files: SourceFiles) -> SourceFiles:
    """Return the sources saved with the trace of a saved analysis; else `files`, with a cache of resolved paths."""
    saved = trace.info.stored
    return SourceFiles(saved=saved.sources, newer=saved.newer) if saved else replace(files, resolved={})


def with_excerpts(trace: Trace, findings: Iterable[Finding], files: SourceFiles) -> tuple[Finding, ...]:
    """Return the findings, the first `MOST` with an excerpt where their source file is available."""
    recorded_ns, files = _recorded_ns(trace), available_sources(trace, files)
    return tuple(
        replace(f, excerpt=_excerpt(f, files, recorded_ns)) if number < MOST else f for number, f in enumerate(findings)
    )


def _excerpt(finding: Finding, files: SourceFiles, recorded_ns: int) -> Excerpt | None:
    source = _flagged_line(finding)
    return files.excerpt(source, recorded_ns) if source else None


def _flagged_line(finding: Finding) -> Source | None:
    """Return the user's line, or the library's where the user's line only starts a training loop."""
    return finding.in_library if finding.in_loop else finding.source


def _recorded_ns(trace: Trace) -> int:
    """Return when the recording ended, in ns since the epoch; 0 if the trace doesn't state it."""
    ends = trace.slices.end
    ended = trace.info.base_ns + int(ends.max()) if len(ends) else 0
    return ended if ended > _SINCE_NS else 0
