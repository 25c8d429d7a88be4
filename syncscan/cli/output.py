"""Where a command's result goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.errors import SyncscanError, UsageError
from syncscan.report.printable import printable

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.report.blocks import Block


def deliver(text: str | bytes, output: str | None, force: bool = False, about: str = "") -> None:
    """Print a result, or write it to a file; it is bytes where it isn't all in one encoding."""
    if output is None:
        click.echo(text, nl=text[-1:] not in ("\n", b"\n"))
        return
    from syncscan import files

    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    files.write(Path(output), [data], force)
    say(f"Wrote {output}{about}.")


def refuse(output: str | None, force: bool, *sources: str) -> None:
    """Say before anything is read what would keep a result from being written; see `files.refuse`.

    A UsageError also where a file is to be replaced and none is named.
    """
    if output is None and force:
        raise UsageError("--force has no effect without -o.", "Add -o FILE, or leave out --force.")
    if output is not None:
        from syncscan import files

        files.refuse(Path(output), force, sources)


def say(text: str) -> None:
    """Print a line on stderr; a path in it may contain anything."""
    click.echo(printable(text), err=True)


def announce(sentence: str) -> None:
    """Print a sentence of ours on stderr, among what a program of the user's prints."""
    click.echo(f"syncscan: {printable(sentence, lines=True)}", err=True)


def explain(error: SyncscanError) -> None:
    """Print what went wrong and what to do on stderr; escape codes in paths or names are made harmless."""
    announce(error.message)
    if error.hint:
        click.echo(f"  {printable(error.hint, lines=True)}", err=True)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings on stderr, one line each."""
    for warning in warnings:
        say(f"warning: {warning}")


def warn_briefly(analysis: Analysis, printed: Collection[str] = ()) -> None:
    """Say what is wrong with a recording on one line, beside a report whose first screen or part on it says the rest.

    Left out is what was `printed` before, and what the screen's answer to how sure it is, and its next command, say.
    """
    from syncscan import api
    from syncscan.model.step_times import RECORD_AGAIN

    info = analysis.trace.info
    on_screen = {w for w in api.missing(analysis.trace) if w not in info.capture.notes or RECORD_AGAIN in w}
    unsaid = [w for w in analysis.warnings if w not in on_screen and w not in printed]
    if unsaid:
        warn([f"{unsaid[0]}{f' ({len(unsaid) - 1} more: -v)' if unsaid[1:] else ''}"])


def drawn(blocks: Iterable[Block], form: str, output: str | None = None, about: str = "") -> str:
    """Return a report as Markdown, as a page, or as text for a file or for stdout, whose width and colors count.

    `about` is the command's object that a page names.
    """
    from syncscan.report import markup, terminal

    if form == "html":
        from syncscan.report import page

        return page.drawn(blocks, f"syncscan {click.get_current_context().info_name}", about)
    return markup.drawn(blocks) if form == "markdown" else terminal.drawn(blocks, width(), output is None and colors())


def width() -> int:
    """Return the columns of a report: the terminal's, between 60 and 140; 100 without a terminal."""
    import shutil

    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def colors() -> bool:
    """Return whether to write colors: stdout is a terminal and NO_COLOR isn't set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
