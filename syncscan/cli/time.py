"""`syncscan time SCRIPT:FUNCTION`: measure the latency and throughput of a script's function."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import click
from msgspec.structs import replace

from syncscan.cli.by_name import format_by_name
from syncscan.cli.finite import Finite
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import deliver, refuse
from syncscan.cli.stdout import colors, width
from syncscan.errors import SyncscanError

_PACKAGE = Path(__file__).parent.parent


@click.command("time")
@click.argument("target", metavar="SCRIPT:FUNCTION")
@click.option("--inputs", metavar="NAME", help="Function in SCRIPT that returns the arguments for a batch size.")
@click.option("--device", help="cuda, cuda:1, xpu or cpu.  [default: the accelerator, or the CPU if there is none]")
@click.option(
    "--repetitions", type=click.IntRange(1), default=100, show_default=True, help="Minimum number of samples."
)
@click.option("--seconds", type=Finite(0), default=1.0, show_default=True, help="Minimum time to sample.")
@click.option("--throughput", is_flag=True, help="Find the batch size with the most samples per second.")
@click.option("--max-batch", type=click.IntRange(1), default=1 << 20, help="Largest batch size to try.")
@click.option("--compare-naive", is_flag=True, help="Also show the figures that common timing mistakes give.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write the result to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@format_by_name(["text", "json"])
@needs(Need("max_batch", "throughput"))
def command(
    target: str,
    inputs: str | None,
    device: str | None,
    repetitions: int,
    seconds: float,
    throughput: bool,
    max_batch: int,
    compare_naive: bool,
    form: str,
    output: str | None,
    force: bool,
) -> None:
    """Time FUNCTION of SCRIPT: warmed up, on the device's clock, many times, with one-time costs separate.

    FUNCTION is called with the arguments that --inputs returns, or without arguments (with --throughput: with the
    batch size).
    SCRIPT is imported, so code under `if __name__ == "__main__":` doesn't run. On a CPU, the host's clock is used.
    """
    from syncscan.capture import target as targets
    from syncscan.capture.timing import time_step
    from syncscan.model.timing import OneOff
    from syncscan.report import timing as report

    refuse(output, force)
    script, name = targets.split(target)
    with _its_own_traceback(script):
        loaded = targets.load(script)
        timing = time_step(
            loaded.function(name),
            loaded.function(inputs) if inputs else None,
            device=device,
            repetitions=repetitions,
            seconds=seconds,
            throughput=throughput,
            compare_naive=compare_naive,
            max_batch=max_batch,
            name=name,
        )
    timing = replace(timing, one_offs=(OneOff("import", loaded.import_us, "of the script"), *timing.one_offs))
    if form == "json":
        text = report.render_json(timing)
    else:
        text = report.render_text(timing, width=width(), color=output is None and colors())
    deliver(text, output, force)


@contextlib.contextmanager
def _its_own_traceback(script: str) -> Iterator[None]:
    """Show a script's traceback from its own first frame on, as Python would, and exit with 1, if it raises."""
    try:
        yield
    except SyncscanError:
        raise
    except Exception as error:
        tb = error.__traceback__
        while tb is not None and _ours(tb):
            tb = tb.tb_next
        if tb is None and not (isinstance(error, SyntaxError) and error.filename == str(Path(script).absolute())):
            raise
        sys.excepthook(type(error), error.with_traceback(tb), tb)
        sys.exit(1)


def _ours(tb: TracebackType) -> bool:
    """Return whether this frame is of syncscan, or of Python's own import."""
    file = tb.tb_frame.f_code.co_filename
    return file.startswith("<frozen importlib") or Path(file).is_relative_to(_PACKAGE)
