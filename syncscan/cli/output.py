"""Where a command's result goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

from syncscan.errors import UsageError


def deliver(text: str, output: str | None, force: bool = False) -> None:
    """Print a result, or write it to a file.

    Raises:
        UsageError: the file exists and `force` isn't set, or its folder can't be written to.
    """
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    write(Path(output), text.encode("utf-8", "surrogatepass"), force)
    click.echo(f"Wrote {output}.", err=True)


def write(path: Path, content: bytes, force: bool = False) -> None:
    """Write a file beside its place and move it there, so that no half of it is ever seen."""
    if path.exists() and not force:
        raise UsageError(f"{path} exists.", "Give another name, or --force to replace it.")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as e:
        raise UsageError(
            f"{path} can't be written: {e.strerror}.", "Choose a folder that exists and is yours."
        ) from None
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def warn(warnings: Iterable[str]) -> None:
    """Say warnings on stderr, one line each."""
    from syncscan.report.names import printable

    for warning in warnings:
        click.echo(f"warning: {printable(warning)}", err=True)
