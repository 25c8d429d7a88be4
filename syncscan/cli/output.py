"""Where a command's result goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from syncscan import files


def deliver(text: str, output: str | None, force: bool = False) -> None:
    """Print a result, or write it to a file.

    Raises:
        UsageError: the file exists and `force` isn't set, or its folder can't be written to.
    """
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    files.write(Path(output), [text.encode("utf-8", "surrogatepass")], force)
    click.echo(f"Wrote {output}.", err=True)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings on stderr, one line each."""
    from syncscan.report.names import printable

    for warning in warnings:
        click.echo(f"warning: {printable(warning)}", err=True)
