"""`syncscan attach PID`: capture or watch a running process."""

from __future__ import annotations

from pathlib import Path

import click

from syncscan.cli.needs import Need, needs
from syncscan.cli.output import announce
from syncscan.errors import ProgramFailed


@click.command("attach")
@click.argument("pid", type=click.IntRange(1))
@click.option("--watch", is_flag=True, help="Start a watch that runs as long as the process.")
@click.option("--stop", is_flag=True, help="Stop the process's watch.")
@click.option("--steps", default=3, show_default=True, type=click.IntRange(1), help="Steps to record.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("syncscan-out"), show_default=True
)
@click.option("--capture-on-alarm", is_flag=True, help="Let the watch capture some steps on an alarm.")
@needs(
    Need("capture_on_alarm", "watch"),
    *(Need("steps", other, never=True) for other in ("watch", "stop")),
    Need("out", "stop", never=True),
    Need("stop", "watch", never=True),
)
def command(
    pid: int,
    watch: bool,
    stop: bool,
    steps: int,
    out: Path,
    capture_on_alarm: bool,
) -> None:
    """Capture some steps of the running Python process PID, which then continues.

    The process needs no preparation, but its environment needs syncscan's dependencies. --watch starts a watch instead,
    and --stop stops it. Python 3.14 and later can be attached to directly; older versions need gdb or lldb, which stops
    the process for a moment. While the main thread is in a C call, nothing starts.
    """
    from syncscan.watching.attach import Action, Order, attached
    from syncscan.watching.code_injection import process_of

    process = process_of(pid)
    if not stop:
        out.mkdir(parents=True, exist_ok=True)
    action: Action = "watch" if watch else "stop" if stop else "capture"
    order = Order(action, str(out.absolute()), steps, capture_on_alarm=capture_on_alarm)
    with attached(process, order) as answers:
        done = answers.until("done", announce)
    paths = done["done"]
    if stop:
        announce(f"Stopped the watch of process {pid}: {paths[0]}")
        if done["lost"]:
            announce(f"{done['lost']} of its records couldn't be written: is the disk full?")
    elif watch:
        announce(f"Watching process {pid}; to view it: syncscan watch {paths[0]}")
    else:
        _report(paths)


def _report(paths: list[str]) -> None:
    from syncscan import api, report
    from syncscan.cli.output import colors, deliver, warn_briefly, width

    if not paths:
        raise ProgramFailed("The process captured nothing.", "")
    for path in paths:
        announce(f"Wrote {path}")
    analysis = api.analyze(paths[-1])
    warn_briefly(analysis)
    deliver(report.render(analysis, "text", width=width(), color=colors()), None)
