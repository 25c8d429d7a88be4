"""What SARIF, GitHub and JUnit are drawn from, whatever it is of: flagged lines, and what is said beside them.

Texts are as they stand in a trace or a source: each renderer escapes them for its own medium. What has no place
in it a renderer leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.model.finding import Diagnosis, Severity


class Place(msgspec.Struct, frozen=True):
    """A place in a file, from 1; 0 where that isn't known."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0


class FlaggedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sync, a guess at one, or a limit that isn't kept: as a CI server shows it, at its line where it has one."""

    rule: str
    severity: Severity
    title: str
    message: str
    """What it costs, why it is flagged and what to do, for who has read the title."""
    place: Place | None = None
    diagnosis: Diagnosis | None = None
    """What there is to read about its rule; None of a limit."""
    summary: str = ""
    """The message for who has read no title."""
    inside: tuple[str, str] | None = None
    """What is around it, a `function` or a `member` of something: name and kind."""
    called_from: Place | None = None
    """The library's line in it that waits."""
    fingerprints: Mapping[str, str] = {}
    """By what it is known in the next run: scheme → id."""
    figures: Mapping[str, Any] = {}
    """What programs may read of it; times in µs a step."""
    name: str = ""
    """As a test is called."""
    group: str = ""
    """As the test's class is called."""
    took_us: float | None = None
    cost: str = ""
    """What a failed test says in its first line."""
    details: tuple[str, ...] = ()
    """What it says behind that."""


class Flagged(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of one recording, or of some source, and what is said beside them."""

    tool: str = "syncscan"
    """The command that says so."""
    path: str = ""
    """The recording's."""
    lines: tuple[FlaggedLine, ...] = ()
    """The most important first."""
    limits: tuple[FlaggedLine, ...] = ()
    """Limits that aren't kept; a test each, where limits are what is tested."""
    passed: FlaggedLine | None = None
    """The test that passes where nothing is flagged."""
    warnings: tuple[str, ...] = ()
    """What else to do, a sentence each."""
    closing: tuple[str, ...] = ()
    """Sentences that sum up; nothing sums up where there is none."""
    output: str = ""
    """What a test run's own output would be."""
    took_us: float | None = None
    """How long its syncs hold the host, µs a step."""
    properties: Mapping[str, str] = {}
    """What a test suite says of itself."""
    notifications: tuple[tuple[str, str], ...] = ()
    """What was met on the way: level and sentence."""
    failed: bool = False
    """Whether something that was named couldn't be read."""
    facts: Mapping[str, Any] = {}
    """What programs may read of the whole."""
