"""Read a step's limits from `[tool.syncscan]` of a pyproject.toml, and from options."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.facts.allow_comments import Comment, comments_in
from syncscan.gate.verdict import Allowance, Limit, Rules
from syncscan.model.finding import Finding, Source
from syncscan.model.libraries import is_library
from syncscan.model.trace import Trace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SELECTORS = ("scope", "phase", "rule", "owner")
PHASES = ("forward", "backward", "optimizer", "data", "other")
OWNERS = ("user", "framework", "unknown")
MAX_BYTES = 4_000_000
"""Longest accepted project file, far above any that was written by hand."""
_NUMBERS = ("syncs", "wait-ms", "recoverable", "held-up")

Number = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Limits(msgspec.Struct, rename="kebab", kw_only=True):
    syncs: Number | None = None
    wait_ms: Number | None = None
    recoverable: Number | str | None = None
    held_up: Number | str | None = None

    @property
    def given(self) -> bool:
        return any(value is not None for value in (self.syncs, self.wait_ms, self.recoverable, self.held_up))


class _Limit(_Limits, rename="kebab", kw_only=True):
    scope: str = ""
    phase: str = ""
    rule: str = ""
    owner: str = ""


class _Table(_Limits, rename="kebab", kw_only=True):
    races: Number | None = None
    baseline: str = ""
    limit: list[_Limit] = []
    allow: list[Allowance] = []


def found_from(folder: Path) -> Path | None:
    """Return the nearest pyproject.toml with `[tool.syncscan]`, from this folder upward; None without one."""
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file() and _table(path) is not None:
            return path
    return None


def read_config(path: Path, known_rules: Sequence[str]) -> Rules:
    """Return the rules of a project, from its pyproject.toml or any other TOML file with `[tool.syncscan]`."""
    table = _table(path)
    if table is None:
        raise UsageError(f"{path} has no [tool.syncscan].", "Add one, or give limits as options.")
    location = f"{path}: [tool.syncscan]"
    _only_known(table, _Table, location)
    for name, kind in (("limit", _Limit), ("allow", Allowance)):
        entries = table.get(name)
        for entry in entries if isinstance(entries, list) else ():
            _only_known(entry, kind, f"{path}: [[tool.syncscan.{name}]]")
    try:
        read = msgspec.convert(table, _Table)
    except msgspec.ValidationError as e:
        raise UsageError(f"{location}: {e}.", "docs/howto/ci.md lists the keys.") from None
    overall = [_limit(read, location)] if read.given else []
    scoped = [_scoped(one, f"{path}: [[tool.syncscan.limit]]", known_rules) for one in read.limit]
    allowed = [_allowance(one, f"{path}: [[tool.syncscan.allow]]", known_rules) for one in read.allow]
    baseline = str(path.parent / read.baseline) if read.baseline else ""
    return Rules(
        limits=(*overall, *scoped), allowed=tuple(allowed), races=read.races, baseline=baseline, source=str(path)
    )


def limit_of(text: str, known_rules: Sequence[str]) -> Limit:
    """Parse a limit given as an option: `recoverable=2%`, or of some syncs, `scope:loss*,syncs=0` (by `SELECTORS`)."""
    pairs = [part.strip() for part in text.split(",")]
    by, _, glob = pairs.pop(0).partition(":") if ":" in pairs[0] else ("", "", "")
    values = dict(pair.partition("=")[::2] for pair in pairs)
    if not (bool(by) == bool(glob) and by in ("", *SELECTORS) and pairs and all(values.values())):
        raise UsageError(f"{text!r} is not a limit.", "Write it like recoverable=2% or scope:loss*,syncs=0.")
    location = f"--limit {text}"
    _only_known(values, _Limits, location)
    try:
        numbers = {k: v if k in ("recoverable", "held-up") else float(v) for k, v in values.items()}
        if not by:
            return _limit(msgspec.convert(numbers, _Limits), location)
        return _scoped(msgspec.convert({by: glob, **numbers}, _Limit), location, known_rules)
    except (ValueError, msgspec.ValidationError):
        raise UsageError(f"{location}: a value is not a number.", "Write it like scope:loss*,syncs=0.") from None


def share(value: float | str | None, location: str, name: str = "recoverable") -> float | None:
    """Return a fraction of the step, from a number up to 1 or text such as `2%`."""
    if value is None or (isinstance(value, float) and value <= 1):
        return value
    try:
        text = str(value).strip()
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise UsageError(f"{location}: {name} = {value!r} is not a share of a step.", "Write it like 0.02 or '2%'.")
    return part


def _table(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is too large for a pyproject.toml.", "Run it in another folder.")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"{path} can't be read: {e.strerror or e}.", "Make it readable.") from None
    except (ValueError, RecursionError) as e:
        raise UsageError(f"{path} is not valid TOML: {e}.", "Fix it.") from None
    tool = document.get("tool")
    table = tool.get("syncscan") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.syncscan is not a table.", "Write [tool.syncscan].")
    return table


def _only_known(entry: Any, kind: type[msgspec.Struct], location: str) -> None:
    """Reject unknown keys, with a suggestion."""
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in entry if isinstance(entry, dict) else ():
        if key not in keys:
            raise UsageError(f"{location} has an unknown key {key!r}.", _near(key, keys))


def _near(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.replace("_", "-"), known, 1, 0.5)
    return f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(known)}."


def _limit(read: _Limits, where: str, by: str = "", glob: str = "") -> Limit:
    part, held_up = share(read.recoverable, where), share(read.held_up, where, "held-up")
    return Limit(by=by, glob=glob, syncs=read.syncs, wait_ms=read.wait_ms, recoverable=part, held_up=held_up)


def _scoped(read: _Limit, location: str, known_rules: Sequence[str]) -> Limit:
    chosen = [(by, glob) for by in SELECTORS if (glob := getattr(read, by))]
    if len(chosen) != 1:
        raise UsageError(
            f"{location} needs exactly one of {', '.join(SELECTORS)}, but has {len(chosen)}.", "Split or complete it."
        )
    if not read.given:
        raise UsageError(f"{location} has no limit.", f"Add {', '.join(_NUMBERS[:-1])} or {_NUMBERS[-1]}.")
    by, glob = chosen[0]
    _known(by, glob, location, known_rules)
    return _limit(read, location, by, glob)


def _allowance(read: Allowance, location: str, known_rules: Sequence[str]) -> Allowance:
    if not read.reason.strip():
        raise UsageError(f"{location} has no reason.", "Say why the sync may stay: reason = '…'.")
    if not (read.rule or read.scope or read.op or read.line):
        raise UsageError(f"{location} has no selector.", "Add a rule, scope, op or line.")
    _known("rule", read.rule, location, known_rules)
    return replace(read, reason=read.reason.strip())


def _known(by: str, glob: str, where: str, known_rules: Sequence[str]) -> None:
    """Reject a name that can't match anything; globs may."""
    names = {"rule": known_rules, "phase": PHASES, "owner": OWNERS}.get(by)
    if glob and names is not None and glob not in names and not set(glob) & set("*?["):
        raise UsageError(f"{where}: there is no {by} {glob!r}.", _near(glob, names))


Placed = tuple[str, Comment]
"""A comment with its file."""
SourceText = Callable[[str], str | None]
"""Function from a file, as a trace names it, to its text; None where unavailable."""


class Written:
    """Comments in a program's files, each read once."""

    def __init__(self, source_text: SourceText) -> None:
        self._source_text = source_text
        self._names: dict[str, str] = {}
        self._found: dict[str, tuple[Comment, ...]] = {}
        self._met: set[tuple[str, int]] = set()

    def on(self, finding: Finding) -> Comment | None:
        """Return the comment on a finding's line; if it may be on several lines, only if all have one."""
        source = finding.source
        if source is None:
            return None
        text = self._source_text(source.file) or self._source_text(finding.path) or ""
        by_line = {comment.line: comment for comment in self._in(text, source.file)}
        comments = [by_line.get(line) for line in lines_of(source)]
        self._met.update((text, comment.line) for comment in comments if comment)
        return comments[0] if all(comments) else None

    def at(self, line: int, *files: str) -> Comment | None:
        """Return the comment on a line of a file, by the first of its names that leads to its text."""
        file, text = next(((file, text) for file in files if (text := self._source_text(file))), ("", ""))
        comment = next((comment for comment in self._in(text, file) if comment.line == line), None)
        self._met.update({(text, line)} if comment is not None else ())
        return comment

    def met_and_not(self, trace: Trace) -> tuple[list[Placed], list[Placed]]:
        """Return the comments matched by a finding so far, and those that weren't, in the files that a trace names."""
        capture = trace.info.capture
        files = [frame.file for frame in capture.lines.frames]
        files += [file for file, _ in capture.host.frames] if capture.host else []
        for file in dict.fromkeys(files):
            if not is_library(file):
                self._in(self._source_text(file) or "", file)
        both: tuple[list[Placed], list[Placed]] = ([], [])
        for text, comments in self._found.items():
            for comment in comments:
                both[(text, comment.line) not in self._met].append((self._names[text], comment))
        return both

    def _in(self, text: str, file: str) -> tuple[Comment, ...]:
        """Return the comments of a file, cached by its text, as a trace may have several names for one file."""
        if text not in self._found:
            self._found[text], self._names[text] = comments_in(text), file
        return self._found[text]


def lines_of(source: Source) -> tuple[int, ...]:
    return (source.line,) if source.exact or not source.candidates else source.candidates
