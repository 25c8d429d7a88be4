"""`syncscan attach PID`: capture or watch a running process, or print where its threads are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncscan.cli.needs import Need, needs
from syncscan.cli.output import announce
from syncscan.errors import ProgramFailed, SyncscanError
from syncscan.report.printable import printable

if TYPE_CHECKING:
    from syncscan.watching.attaching.injection import PythonProcess
    from syncscan.watching.attaching.requests import Order


@click.command("attach")
@click.argument("pid", type=click.IntRange(1))
@click.option("--dump", is_flag=True, help="Only print what each thread is executing, and whether it waits.")
@click.option("--watch", is_flag=True, help="Start a watch that runs as long as the process.")
@click.option("--stop", is_flag=True, help="Stop the process's watch.")
@click.option("--guard", is_flag=True, help="Record nothing, but count the syncs of some steps by line.")
@click.option("--steps", default=3, show_default=True, type=click.IntRange(1), help="Steps to record.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("syncscan-out"), show_default=True
)
@click.option("--capture-on-alarm", is_flag=True, help="Let the watch capture some steps on an alarm.")
@needs(
    Need("capture_on_alarm", "watch"),
    *(Need(option, other, never=True) for option in ("steps",) for other in ("watch", "dump", "stop")),
    *(Need(option, other, never=True) for option in ("out",) for other in ("dump", "stop", "guard")),
    Need("watch", "dump", never=True),
    Need("stop", "dump", never=True),
    Need("stop", "watch", never=True),
    *(Need("guard", other, never=True) for other in ("dump", "watch", "stop")),
)
def command(
    pid: int,
    dump: bool,
    watch: bool,
    stop: bool,
    guard: bool,
    steps: int,
    out: Path,
    capture_on_alarm: bool,
) -> None:
    """Capture some steps of the running Python process PID, which then continues.

    The process needs no preparation, but its environment needs syncscan's dependencies. --watch starts a watch instead,
    --stop stops it, --dump prints what each thread is executing, and --guard how often each line waits. Python 3.14 and
    later can be attached to directly; older versions need gdb or lldb, which stops the process for a moment. While the
    main thread is in a C call, nothing starts.
    """
    from syncscan.watching.attaching.attach import attached
    from syncscan.watching.attaching.injection import process_of
    from syncscan.watching.attaching.requests import Action, Order

    process = process_of(pid)
    if dump:
        _dump(pid)
        return
    if not stop and not guard:
        out.mkdir(parents=True, exist_ok=True)
    action: Action = "watch" if watch else "stop" if stop else "guard" if guard else "capture"
    order = Order(action, str(out.absolute()), steps, capture_on_alarm=capture_on_alarm)
    if guard:
        _guard(process, order)
        return
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


def _guard(process: PythonProcess, order: Order) -> None:
    """Print how often each line waited in some steps."""
    from syncscan.watching.attaching.attach import attached

    with attached(process, order) as answers:
        answer = answers.until("done", announce)
    steps, syncs = answer["steps"], answer["syncs"]
    over = (
        f"{steps} step{'' if steps == 1 else 's'}" if steps else f"{order.wait_s:.0f} s, in which no optimizer stepped"
    )
    click.echo(f"{sum(row['count'] for row in syncs)} syncs in {over}" + (":" if syncs else "."))
    for row in syncs:
        place, function, what, thread = map(printable, row["where"])
        often = f"{row['count'] / steps:.1f} per step" if steps else f"{row['count']} times"
        click.echo(f"  {often}  {place} {function}  {what}  ({thread})")


def _dump(pid: int) -> None:
    """Print what each thread is executing, also of a process that doesn't answer."""
    from syncscan.watching.attaching.attach import NotHeard, attached
    from syncscan.watching.attaching.injection import process_of
    from syncscan.watching.attaching.requests import Order

    process = process_of(pid)
    try:
        with attached(process, Order("dump"), heard_s=5.0) as answers:
            threads = answers.until("threads")["threads"]
    except NotHeard as error:
        _dump_from_outside(process, error)
        return
    for thread in threads:
        click.echo("\n".join(_lines(thread)))


def _dump_from_outside(process: PythonProcess, error: SyncscanError) -> None:
    """Print the frames of a process that runs no Python now, and the functions of C's in which it is.

    It raises `error` if neither can be read.
    """
    from syncscan.watching.attaching.attach import python_frames
    from syncscan.watching.attaching.injection import native_frames

    threads, stacks = python_frames(process), native_frames(process.pid)
    if not threads and not stacks:
        raise error
    click.echo(error.message)
    stacks.reverse()
    main = _waiting_for(stacks[0]) if stacks else ""
    for k, frames in enumerate(threads):
        click.echo(f"the main thread{main}:" if k == 0 else "another thread:")
        click.echo("\n".join(f"  {printable(file)}:{line} {printable(name)}" for file, line, name in frames))
    if stacks:
        click.echo("Functions of C's, the main thread's first:")
    for stack in stacks:
        # CUDA's driver has many functions without a name inside of the one that waits.
        named = [frame for frame in stack if frame != "??"]
        click.echo(f"  {printable(' < '.join(named[:8] or ['??']))}{_waiting_for(stack)}")


_SYNCHRONIZES = tuple(
    "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaMemcpy cuStreamSynchronize cuCtxSynchronize"
    " cuEventSynchronize cuMemcpy hipStreamSynchronize hipDeviceSynchronize hipMemcpy".split()
)
"""Beginnings of names of functions of C's that wait for the device."""
_PEERS = ("c10d::", "gloo::", "nccl")
"""Beginnings of names of those that wait for other ranks, on a thread that runs the program."""
_OWN_THREADS = ("runLoop", "atchdog", "eartbeat", "gloo::transport", "ncclProxy", "ncclService")
"""Parts of names of functions that a library's own thread is always in."""


def _waiting_for(stack: list[str]) -> str:
    """Return what a thread waits for by the functions of C's that it is in, for the end of a line."""
    if any(frame.startswith(_SYNCHRONIZES) for frame in stack):
        return " (waits for the device)"
    own = any(part in frame for frame in stack for part in _OWN_THREADS)
    return " (waits for other ranks)" if not own and any(frame.startswith(_PEERS) for frame in stack) else ""


def _lines(thread: dict[str, Any]) -> list[str]:
    """Return the lines about one thread: what it does, and its frames, innermost first."""
    doing = {"device": "waits for the device", "input": "waits for the data loader", "peers": "waits for other ranks"}
    what = doing.get(thread["kind"], "doesn't wait for the device")
    rule = f" ({thread['rule']})" if thread["rule"] else ""
    rows = [f"{printable(thread['name'] or 'unnamed thread')}: {what}{rule}"]
    return rows + [f"  {printable(file)}:{line} {printable(function)}" for file, line, function in thread["frames"]]


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
