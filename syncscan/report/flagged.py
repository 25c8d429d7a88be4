"""Flagged lines and the sentences beside them, from which SARIF, GitHub, JUnit and CSV reports are rendered.

Texts are as in the trace or source: each renderer escapes them, and leaves out what its format can't express.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.model.finding import Severity
from syncscan.model.fix import SourceEdit


class FilePosition(msgspec.Struct, frozen=True):
    """A position in a file, counted from 1; 0 where unknown."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0


class FlaggedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sync, lint warning or exceeded limit as a CI server shows it, at its line if it has one."""

    rule: str
    severity: Severity
    title: str
    message: str
    """Cost, reason and advice, for readers who see the title."""
    place: FilePosition | None = None
    rule_name: str = ""
    """What the rule is about; empty where that is the title."""
    rule_help: str = ""
    """What to do about it, if the rule says it."""
    tags: tuple[str, ...] = ("performance",)
    summary: str = ""
    """The message, for readers who don't see the title."""
    inside: tuple[str, str] | None = None
    """Name and kind of what surrounds it: a `function`, or `member` of something."""
    called_from: FilePosition | None = None
    """The library's line inside it that waits."""
    fingerprints: Mapping[str, str] = {}
    """Ids that stay the same in the next run, by scheme."""
    figures: Mapping[str, Any] = {}
    """Numbers for programs; times in µs per step."""
    name: str = ""
    """Name as a test."""
    group: str = ""
    """Class name as a test."""
    took_us: float | None = None
    cost: str = ""
    """First line of a failed test's message."""
    details: tuple[str, ...] = ()
    """Further lines of that message."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """Its rows in a table, each with cells by column; columns without a cell stay empty."""
    changes: tuple[tuple[str, tuple[SourceEdit, ...]], ...] = ()
    """Changes that would remove it: what each does, and its edits of the file."""


class Flagged(msgspec.Struct, frozen=True, kw_only=True):
    """The flagged lines of one recording, job or source tree, and the sentences beside them."""

    tool: str = "syncscan"
    """The command that reports them."""
    path: str = ""
    lines: tuple[FlaggedLine, ...] = ()
    """Flagged lines, most important first."""
    columns: tuple[str, ...] = ()
    """Columns of the lines' rows, in order; empty where there is no table of them."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """Rows of that table that belong to no flagged line; they come last."""
    limits: tuple[FlaggedLine, ...] = ()
    """Exceeded limits, one test each where limits are what is tested."""
    passed: FlaggedLine | None = None
    """The test that passes where nothing is flagged."""
    warnings: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    """Summary sentences; empty for no summary."""
    output: str = ""
    """Text that a test run would have printed."""
    took_us: float | None = None
    """How long syncs block the host, µs per step."""
    properties: Mapping[str, str] = {}
    notifications: tuple[tuple[str, str], ...] = ()
    """Messages about the run: level and sentence."""
    failed: bool = False
    facts: Mapping[str, Any] = {}
    """Facts for programs about the whole."""
