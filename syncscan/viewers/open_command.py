"""`syncscan open TRACE`: show a trace with its findings in a browser, until Ctrl-C."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan import files
from syncscan.cli import memory_limit
from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import warn
from syncscan.cli.progress import reading
from syncscan.cli.streams import ended_by_signals, refuse_pipe
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis


@click.command("open")
@click.argument("trace", metavar="TRACE")
@click.option(
    "--in",
    "viewer",
    type=click.Choice(["tensorboard", "perfetto", "html"]),
    default="html",
    show_default=True,
    help="Viewer to use.",
)
@click.option("--offline/--online", default=None, help="Whether to work without internet access [default: detect].")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on [default: any free port].")
@click.option("--no-browser", is_flag=True, help="Only print the URL.")
@options
@needs(Need("offline", "viewer", ("tensorboard", "perfetto")))
def command(
    trace: str,
    viewer: str,
    offline: bool | None,
    host: str,
    port: int | None,
    no_browser: bool,
    analysis_options: AnalysisOptions,
) -> None:
    """Show TRACE in a browser: as a report, in TensorBoard's Trace View, or in Perfetto.

    TensorBoard and Perfetto get the trace with added tracks for findings, steps and idle devices.
    Perfetto online reads the trace from this machine; nothing is uploaded. Ctrl-C ends it.
    """
    from syncscan import api

    trace, *others = api.find([trace])
    if others:
        raise UsageError(f"open takes one trace; {len(others) + 1} were given.", f"Name one of them, such as {trace}.")
    if viewer != "html":
        refuse_pipe(trace)
    if viewer == "tensorboard":
        from syncscan.viewers import trace_view

        trace_view.check()
    analysis = analysis_options.analysis_of(trace)
    warn(analysis.warnings)
    memory_limit.lift(click.get_current_context())
    show(analysis, trace, viewer, host, port, offline, not no_browser)


def _warn_of(host: str) -> None:
    from syncscan.viewers.private_server import is_local

    if not is_local(host):
        warn([f"Other machines can reach {host}: anyone who knows the address or can read the traffic sees the trace."])


def show(
    analysis: Analysis,
    trace: str,
    viewer: str = "html",
    host: str = "127.0.0.1",
    port: int | None = None,
    offline: bool | None = None,
    browse: bool = True,
) -> None:
    """Serve a trace to a browser until Ctrl-C; what it needed on disk is removed then.

    The viewer is `html`, `tensorboard` or `perfetto`, of which the last two read `trace` again. `port` is None for one
    that is free, `offline` None to find out. Without `browse`, only the address is printed.
    """
    _warn_of(host)
    with _VIEWERS[viewer](analysis, trace, host, port, offline) as url:
        _until_interrupted(url, browse)


def _until_interrupted(url: str, browse: bool) -> None:
    from syncscan.viewers.private_server import shown

    click.echo(url)
    with shown(url) if browse else nullcontext(False) as started:
        if browse:
            # A browser that comes as a snap or flatpak starts and can't read the file that leads to the address.
            what = "A browser was started; or" if started else "No browser was found;"
            click.echo(f"{what} open the address above.", err=True)
        click.echo("Ctrl-C ends it.", err=True)
        _wait()


def _wait() -> None:
    """Until Ctrl-C, SIGTERM or SIGHUP."""
    try:
        with ended_by_signals(handled=True):
            while True:
                time.sleep(1)
    except KeyboardInterrupt:
        click.echo("", err=True)
    except SystemExit:  # by a signal: what is shown is over, and nothing went wrong
        pass


@contextmanager
def _html(analysis: Analysis, trace: str, host: str, port: int | None, offline: bool | None) -> Iterator[str]:
    from syncscan.report import html
    from syncscan.viewers.private_server import Page

    with closing(Page(html.render(analysis), host, port or 0)) as page:
        yield page.url


@contextmanager
def _tensorboard(analysis: Analysis, trace: str, host: str, port: int | None, offline: bool | None) -> Iterator[str]:
    from syncscan.viewers import annotated_copy, trace_view
    from syncscan.viewers.annotate import opening_of

    if offline is None:
        offline = not trace_view.charts_reachable()
    with tempfile.TemporaryDirectory(prefix="syncscan-") as logdir:
        name = annotated_copy.run_name(trace)
        for run, text in (("annotated", annotated_copy.annotated), ("recorded", annotated_copy.copied)):
            folder = Path(logdir, run)
            folder.mkdir()
            with reading(trace, f"writing the {run} trace") as progress:
                files.write(folder / f"{name}.pt.trace.json.gz", text(analysis, trace, progress=progress))
        size = f"{analysis.trace.info.events:,} events"
        click.echo(f"TensorBoard's other views appear after its plugin has read {size}; reload then.", err=True)
        yield trace_view.TraceView(Path(logdir), host, port or 0, offline, opening_of(analysis), size).url


@contextmanager
def _perfetto(analysis: Analysis, trace: str, host: str, port: int | None, offline: bool | None) -> Iterator[str]:
    from syncscan.viewers import annotated_copy, perfetto
    from syncscan.viewers.annotate import opening_of

    online = offline is False or (offline is None and perfetto.bundled() is None)
    if online and port not in (None, perfetto.ONLINE_PORT):
        why = f"ui.perfetto.dev can read a trace from port {perfetto.ONLINE_PORT} only."
        raise UsageError(why, "Leave out --port, or use --offline.")
    with tempfile.TemporaryDirectory(prefix="syncscan-") as folder:
        file = Path(folder, f"{annotated_copy.run_name(trace)}.pt.trace.json.gz")
        with reading(trace, "writing an annotated copy") as progress:
            files.write(file, annotated_copy.untangled_copy(analysis, trace, progress))
        free = perfetto.ONLINE_PORT if online and port is None else port or 0
        with closing(perfetto.Perfetto(file, host, free, online, opening_of(analysis))) as server:
            yield server.url


_VIEWERS: dict[str, Callable[..., AbstractContextManager[str]]] = {
    "html": _html,
    "tensorboard": _tensorboard,
    "perfetto": _perfetto,
}
