"""`syncscan watch PATH|URL`: show a watched job as it runs, from the file that the watch writes or serves."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import click

from syncscan.cli.needs import Need, needs
from syncscan.cli.output import colors, width
from syncscan.errors import TraceNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncscan.watching.reading import WatchRecords

LINES = 15
"""Lines of the program that are listed."""
UPDATED_S = 2.0
"""Seconds between two looks at the watch."""


@click.command("watch")
@click.argument("location", metavar="PATH|URL")
@click.option("--once", is_flag=True, help="Print the last window as text, and exit.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "prometheus"]), default="text", help="What --once prints."
)
@needs(Need("form", "once"))
def command(location: str, once: bool, form: str) -> None:
    """Show a watched job, like top: its step time, the share that waits, and the lines that wait.

    PATH is the file that a watch writes (NAME.PID.watch.jsonl), or its folder, for the newest file there. URL is the
    address of a watch with `--export prometheus:PORT`, or of such a file. To start a watch, use `syncscan profile
    --watch`, `syncscan attach PID --watch` or, in Python, `syncscan.watch()`. Ctrl-C ends this view, not the job.
    """
    look = _look(location)
    if once:
        click.echo(_text(look(), form), nl=False)
        return
    _show(look)


def _look(location: str) -> Callable[[], WatchRecords]:
    """Return a function that reads what a watch has written so far."""
    from syncscan.watching.reading import fetch, files_of, is_address, read

    if is_address(location):
        return lambda: fetch(location)
    path = files_of(location)[0]
    return lambda: read(path, all_parts=False)


def _text(watched: WatchRecords, form: str) -> str:
    from msgspec.structs import replace
    from rich.console import Console

    from syncscan.watching.metrics import Prometheus
    from syncscan.watching.record import ENCODER
    from syncscan.watching.screen import screen

    last = [replace(window, lines=window.lines[:LINES]) for window in watched.windows[-1:]]
    if form == "json":
        return "".join(ENCODER.encode(window).decode() + "\n" for window in last)
    if form == "prometheus":
        metrics = Prometheus()
        for record in (watched.begin, *watched.alarms, *last):
            if record is not None:
                metrics(record)
        return metrics.text()
    console = Console(width=width(), no_color=not colors(), force_terminal=colors(), highlight=False)
    with console.capture() as captured:
        console.print(screen(watched, lines=LINES))
    return captured.get()


def _show(look: Callable[[], WatchRecords]) -> None:
    """Draw anew as long as the watch goes on, or until Ctrl-C; a watch that doesn't answer for once is asked again."""
    from rich.console import Console
    from rich.live import Live

    from syncscan.watching.screen import screen

    watched = look()
    console = Console(no_color=not colors(), highlight=False)
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            live.update(screen(watched, lines=LINES), refresh=True)
            if watched.end is not None:
                return
            try:
                time.sleep(UPDATED_S)
                with contextlib.suppress(TraceNotFound):
                    watched = look()
            except KeyboardInterrupt:
                return
