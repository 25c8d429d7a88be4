"""`syncscan watch [SCRIPT|PATH|URL]`: run a program watched, or show a job as it runs, from what its watch writes."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from syncscan.cli import running_options
from syncscan.cli.needs import Need, given, name, needs
from syncscan.cli.output import colors, drawn
from syncscan.cli.script_streams import DieOfInterrupt, ScriptStreams
from syncscan.errors import TraceNotFound, UsageError
from syncscan.watching.watch_file import SUFFIX, WatchRecords, fetch, files_of, is_address, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncscan.watching.start import Wanted

HERE = "."
UPDATED_S = 2.0
"""Seconds between two looks at the watch."""


EXPORT = """Also export each window: prometheus:[HOST:]PORT, prometheus:FILE or tensorboard:FOLDER (repeatable)."""
ON_ALARM = """Run this command on an alarm, with the alarm as JSON on its standard input."""
OF_A_RUN = ("module", "interval", "out", "prefix", "capture_on_alarm", "on_alarm", "exports")


@click.command("watch", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@running_options.module
@click.option(
    "--interval", default=20.0, show_default=True, type=click.FloatRange(0.1), help="Length of a window in seconds."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("syncscan-out"), show_default=True
)
@click.option("--name", "prefix", help="Prefix of the file name.  [default: the script's name]")
@click.option("--capture-on-alarm", is_flag=True, help="Capture some steps if a line waits more than before.")
@click.option("--on-alarm", metavar="COMMAND", help=ON_ALARM)
@click.option("--export", "exports", multiple=True, metavar="WHERE", help=EXPORT)
@click.option("--once", is_flag=True, help="Print the last window as text, and exit.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "prometheus"]), default="text", help="What --once prints."
)
@click.argument("location", metavar="[SCRIPT|PATH|URL]", default=HERE)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@needs(Need("form", "once"), *(Need("once", option, never=True) for option in OF_A_RUN))
def command(
    module: bool,
    interval: float,
    out: Path,
    prefix: str | None,
    capture_on_alarm: bool,
    on_alarm: str | None,
    exports: tuple[str, ...],
    once: bool,
    form: str,
    location: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS watched, or show a watched job, like top: its step time, its waits, and the lines that wait.

    SCRIPT is a Python file or a command, as `syncscan profile` takes it. It runs to its end, nothing is recorded, and a
    sampler writes to a file in --out which lines wait. The exit code is the script's.

    PATH is the file that a watch writes (NAME.PID.watch.jsonl), or a folder, for the newest such file in it or its
    subfolders; without one, it is the current folder. URL is the address of a watch with `--export prometheus:PORT`, or
    of such a file. Ctrl-C ends this view, not the job. A watch is also started by `syncscan attach PID --watch` and, in
    Python, by `syncscan.watch()`.
    """
    if module and location == HERE:
        raise UsageError("-m needs the name of a module.", "syncscan watch -m MODULE ARGS")
    if module or _is_program(location):
        if once:
            raise UsageError(f"{location} is a program, and --once shows what a watch has written.")
        from syncscan.watching.start import Wanted

        folder = str(out.absolute())
        wanted = Wanted(folder, prefix or "", interval, capture_on_alarm, exports, on_alarm or "")
        _run((location, *args), module, wanted)
    _refuse_options_of_a_run()
    look = _look(location)
    if once:
        click.echo(_text(look(), form), nl=False)
        return
    _show(look)


def _is_program(location: str) -> bool:
    if is_address(location) or Path(location).is_dir() or SUFFIX in location:
        return False
    return location.endswith(".py") or Path(location).is_file() or shutil.which(location) is not None


def _refuse_options_of_a_run() -> None:
    context = click.get_current_context()
    if context.params["args"]:
        raise UsageError(
            f"{context.params['location']} is no program, so it takes no arguments.", "Options come first."
        )
    if names := [name(context.command, option) for option in OF_A_RUN if given(context, option)]:
        raise UsageError(f"{', '.join(names)} has no effect on a watch that is only shown.", "Give a program instead.")


def _run(words: tuple[str, ...], module: bool, wanted: Wanted) -> NoReturn:
    """Run a script or command watched, and end with its exit code."""
    from syncscan.capture.captured_command import run_with
    from syncscan.capture.commands import resolved
    from syncscan.watching.start import run_watched

    streams, interrupt = ScriptStreams(), DieOfInterrupt()
    command = resolved(words, module=module)
    if command.launcher:
        sys.exit(run_with(command.words, wanted.variables()))
    ended, running = run_watched(command.target, command.arguments, wanted, module=command.module, say=streams.say)
    if running.path is None:
        streams.say(
            "No step ended in this process, so there is no watch file. Mark steps with step() of syncscan.watch."
        )
    else:
        path = _from_here(running.path)
        streams.say(f"Wrote {path}; to view it: syncscan watch {path}")
    interrupt.pending = ended.interrupted
    sys.exit(ended.code)


def _from_here(path: Path) -> Path:
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path


def _look(location: str) -> Callable[[], WatchRecords]:
    """Return a function that reads what a watch has written so far."""
    if is_address(location):
        return lambda: fetch(location)
    path = files_of(location)[0]
    return lambda: read(path, all_parts=False)


def _text(watched: WatchRecords, form: str) -> str:
    from msgspec.structs import replace

    from syncscan.watching.metrics import Prometheus
    from syncscan.watching.screen import LINES, blocks
    from syncscan.watching.watch_file import ENCODER

    if form == "text":
        return drawn(blocks(watched), form)
    last = [replace(window, lines=window.lines[:LINES]) for window in watched.windows[-1:]]
    if form == "json":
        return "".join(ENCODER.encode(window).decode() + "\n" for window in last)
    metrics = Prometheus()
    for record in (watched.begin, *watched.alarms, *last):
        if record is not None:
            metrics(record)
    return metrics.text()


def _show(look: Callable[[], WatchRecords]) -> None:
    """Draw anew as long as the watch goes on, or until Ctrl-C; a watch that doesn't answer for once is asked again."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from syncscan.watching.screen import blocks

    watched = look()
    console = Console(no_color=not colors(), highlight=False)
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            live.update(Text.from_ansi(drawn(blocks(watched), "text")), refresh=True)
            if watched.end is not None:
                return
            try:
                time.sleep(UPDATED_S)
                with contextlib.suppress(TraceNotFound):
                    watched = look()
            except KeyboardInterrupt:
                return
