"""Where a command's result goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from syncscan.errors import SyncscanError, UsageError
from syncscan.report.printable import printable


def deliver(text: str | bytes, output: str | None, force: bool = False, about: str = "") -> None:
    """Print a result, or write it to a file.

    Args:
        text: the result; bytes where it isn't all in one encoding.
        output: the file; None for stdout.
        force: replace a file that is there.
        about: text about the file, printed right after its name.

    Raises:
        UsageError: the file exists and `force` isn't set, or its folder can't be written to.
    """
    if output is None:
        click.echo(text, nl=text[-1:] not in ("\n", b"\n"))
        return
    from syncscan import files

    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    files.write(Path(output), [data], force)
    say(f"Wrote {output}{about}.")


def refuse(output: str | None, force: bool, *sources: str) -> None:
    """Say before anything is read what would keep a result from being written; see `files.refuse`.

    Raises:
        UsageError: also where a file is to be replaced and none is named.
    """
    if output is None and force:
        raise UsageError("--force has no effect without -o.", "Add -o FILE, or leave out --force.")
    if output is not None:
        from syncscan import files

        files.refuse(Path(output), force, sources)


def say(text: str) -> None:
    """Print a line on stderr; a path in it may contain anything."""
    click.echo(printable(text), err=True)


def explain(error: SyncscanError) -> None:
    """Print what went wrong and what to do on stderr; escape codes in paths or names are made harmless."""
    click.echo(f"syncscan: {printable(error.message, lines=True)}", err=True)
    if error.hint:
        click.echo(f"  {printable(error.hint, lines=True)}", err=True)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings on stderr, one line each."""
    for warning in warnings:
        say(f"warning: {warning}")
