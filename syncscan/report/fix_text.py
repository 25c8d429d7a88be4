"""A patch as a terminal report: the diff, and a table of what changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.model.fix import Fix, Fixed
from syncscan.report.fix_story import gain, groups, notes, reason, tolerance, verdict, where
from syncscan.report.printable import printable
from syncscan.report.terminal import written

_CONTROLS = re.compile("([\t\f])")
"""Control characters that a patch needs as they are."""
WIDEST = 0.35
"""Part of the terminal that the column with files and lines may take."""
_COLORS = {"+": 32, "-": 31, "@": 36}
"""ANSI color codes: green, red, cyan."""


def render(fixed: Fixed, width: int = 100, color: bool = False, next_command: Sequence[str] = ()) -> str:
    """Return the patch and its table, for a terminal.

    Args:
        width: width of the terminal, in characters.
        color: whether to write ANSI colors.
        next_command: the command that measures the patch; empty where none is to be named.
    """
    diff = "".join(_diff_line(line, color) for line in fixed.diff.split("\n")[:-1])
    return diff + table(fixed, width, color, next_command)


def table(fixed: Fixed, width: int = 100, color: bool = False, next_command: Sequence[str] = ()) -> str:
    """Return what `render` has below the patch."""
    return written(_parts(fixed, width, next_command), width, color)


def _diff_line(line: str, color: bool) -> str:
    """Return a line of the diff with its tabs, page breaks and line end; rich would change tabs and wrap long lines."""
    parts = _CONTROLS.split(line.removesuffix("\r"))
    words = "".join(part if _CONTROLS.fullmatch(part) else printable(part) for part in parts)
    end = "\r\n" if line.endswith("\r") else "\n"
    code = 1 if line.startswith(("---", "+++")) else _COLORS.get(line[:1], 0)
    return f"\x1b[{code}m{words}\x1b[0m{end}" if color and code else f"{words}{end}"


def _parts(fixed: Fixed, width: int, next_command: Sequence[str]) -> Iterator[RenderableType]:
    yield Text(printable(verdict(fixed)), "bold")
    for heading, fixes in groups(fixed):
        if heading:
            yield Text(heading, "bold")
        yield from [_list(fixes)] if heading else _tables(fixes, width)
    for note in notes(fixed):
        yield Text(printable(note), "dim")
    if fixed.applied:
        yield Text(tolerance(fixed), "dim")
    if fixed.applied and next_command:
        yield Text.assemble("Next, on a GPU: ", (printable(shlex.join(next_command)), "bold"), overflow="ignore")


def _tables(fixes: Sequence[Fix], width: int) -> Iterator[RenderableType]:
    """Return one table; one per file, below the file's name, where the names would take the room of what changes."""
    if max(len(where(fix)) for fix in fixes) <= width * WIDEST:
        yield _table(fixes, where)
        return
    for file in dict.fromkeys(fix.file for fix in fixes):
        yield Text(printable(file), "bold", overflow="ignore")
        yield _table([fix for fix in fixes if fix.file == file], lambda fix: str(fix.line))


def _table(fixes: Sequence[Fix], place: Callable[[Fix], str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    gains = any(fix.gain for fix in fixes)
    for name in ("line", "rule", "what changes", "safety", "verified", *(["gain"] if gains else [])):
        table.add_column(name, overflow="fold", no_wrap=name == "line")
    for fix in fixes:
        also = f" ({fix.why})" if fix.why else ""
        cells = [place(fix), fix.rule, f"{fix.change}{also}", fix.safety.value, _verified_text(fix)]
        table.add_row(*(Text(printable(c)) for c in [*cells, *([gain(fix)] if gains else [])]))
    return table


def _verified_text(fix: Fix) -> str:
    return "dry run" if fix.verified else fix.how


def _list(fixes: Sequence[Fix]) -> RenderableType:
    lines = Text()
    for fix in fixes:
        lines.append(printable(where(fix)), "bold").append(f" [{fix.rule}] {printable(reason(fix))}.\n")
    lines.rstrip()
    return Padding(lines, (0, 0, 0, 2))
