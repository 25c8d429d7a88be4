"""Render a Timing as text or JSON (schema `syncscan.timing/1`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.json_text import indented
from syncscan.model.timing import Clock, Throughput, Timing
from syncscan.report.document import Document, about
from syncscan.report.printable import printable
from syncscan.report.terminal import written
from syncscan.report.units import duration, percent
from syncscan.version import __version__

SCHEMA = "syncscan.timing/1"
PERCENTILES = (5, 25, 50, 75, 95, 99)


class OneOffDocument(Struct, frozen=True):
    """A one-time cost."""

    name: str
    us: float
    note: str


class NaiveDocument(Struct, frozen=True):
    """The time that a common mistake would have measured."""

    mistake: str
    us: float
    ratio: float
    why: str


class TriedBatch(Struct, frozen=True):
    """A batch size that was tried; None where memory ran out."""

    batch: int
    us: float | None
    samples_per_second: float | None


class ThroughputDocument(Struct, frozen=True):
    """The best batch size, and how it was found."""

    best_batch: int
    samples_per_second: float | None
    enough_batch: int
    largest_batch: int
    out_of_memory_seen: bool
    ended: str
    tried: tuple[TriedBatch, ...]


class TimingDocument(Document, frozen=True):
    """The time of a call."""

    name: str
    device: str
    clock: Clock
    median_us: float
    mean_us: float
    std_us: float
    spread: Annotated[float, about("interquartile range, as a part of the median")]
    percentiles_us: dict[str, float]
    alone_us: Annotated[float, about("a single call on an idle device, until its result is ready")]
    samples: int
    calls_per_sample: Annotated[int, about("consecutive calls whose mean is a sample")]
    stable: Annotated[bool, about("whether the time had stabilized")]
    one_offs: tuple[OneOffDocument, ...]
    naive: tuple[NaiveDocument, ...]
    throughput: ThroughputDocument | None
    notes: tuple[str, ...]


def render_text(timing: Timing, width: int = 100, color: bool = False) -> str:
    """Return the time of a call, one-time costs, results of common mistakes, and the best batch size, as text."""
    return written(_parts(timing), width, color)


def _parts(timing: Timing) -> Iterator[RenderableType]:
    yield from _head(timing)
    yield _once(timing)
    if timing.naive:
        yield _mistakes(timing)
    if timing.throughput:
        yield _batches(timing.throughput)
        yield _best(timing.throughput)
    yield from (Text(f"→ {note}") for note in timing.notes)


def render_json(timing: Timing) -> str:
    """Return the timing as indented JSON; all times in µs."""
    return indented(document(timing))


def document(timing: Timing) -> TimingDocument:
    """Return the timing as its JSON document."""
    t = timing
    return TimingDocument(
        schema=SCHEMA,
        syncscan=__version__,
        name=t.name,
        device=t.device,
        clock=t.clock,
        median_us=t.median_us,
        mean_us=t.mean_us,
        std_us=t.std_us,
        spread=t.spread,
        percentiles_us={str(q): t.percentile(q) for q in PERCENTILES},
        alone_us=t.alone_us,
        samples=len(t.samples_us),
        calls_per_sample=t.block,
        stable=t.stable,
        one_offs=tuple(OneOffDocument(o.name, o.us, o.note) for o in t.one_offs),
        naive=tuple(NaiveDocument(n.mistake, n.us, n.us / t.median_us, n.why) for n in t.naive),
        throughput=_throughput(t.throughput),
        notes=t.notes,
    )


def _throughput(search: Throughput | None) -> ThroughputDocument | None:
    if search is None:
        return None
    return ThroughputDocument(
        best_batch=search.best.batch,
        samples_per_second=search.best.per_second,
        enough_batch=search.enough.batch,
        largest_batch=search.largest,
        out_of_memory_seen=not search.fits_all,
        ended=search.ended,
        tried=tuple(TriedBatch(t.batch, t.us, t.per_second) for t in search.tried),
    )


def _head(t: Timing) -> list[Text]:
    whose = "device events" if t.clock is Clock.DEVICE else "the host's clock"
    sample = "each of one call" if t.block == 1 else f"each the mean of {t.block} consecutive calls"
    lines = [
        Text.assemble((printable(t.name, 60), "bold"), f" on {printable(t.device, 60)}, timed by {whose}"),
        Text.assemble(
            "  a call takes  ",
            (duration(t.median_us), "bold green"),
            f"  median of {len(t.samples_us)} samples, {sample}",
        ),
        Text(
            f"  spread        {percent(t.spread, 1)} interquartile range; "
            f"5 % {duration(t.percentile(5))}, 95 % {duration(t.percentile(95))}, 99 % {duration(t.percentile(99))}"
        ),
        Text(f"  mean          {duration(t.mean_us)} ± {duration(t.std_us)}"),
    ]
    if t.clock is Clock.DEVICE:
        lines.append(
            Text(f"  on its own    {duration(t.alone_us)}  a single call on an idle device, until its result is ready")
        )
    return lines


def _once(t: Timing) -> Table:
    table = _table("one-time costs", "time", "what it is")
    for o in t.one_offs:
        table.add_row(printable(o.name, 40), duration(o.us), printable(o.note))
    return table


def _mistakes(t: Timing) -> Table:
    table = _table("mistake", "would report", "why it is wrong")
    for n in t.naive:
        table.add_row(n.mistake, f"{duration(n.us)} (× {n.us / t.median_us:.2f})", n.why)
    return table


def _batches(search: Throughput) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name in ("batch", "a call", "samples/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for t in search.tried:
        rate = t.per_second
        table.add_row(str(t.batch), duration(t.us) if t.us else "out of memory", f"{rate:,.0f}" if rate else "–")
    return table


def _best(search: Throughput) -> Text:
    rate, enough = search.best.per_second or 0.0, search.enough
    text = Text.assemble(
        "Best: ",
        (f"batch {search.best.batch}, {rate:,.0f} samples/s", "bold green"),
        f". The search ended: {search.ended}.",
    )
    if enough.batch != search.best.batch:
        text.append(f" Batch {enough.batch} already reaches {percent(enough.per_second or 0.0, rate)} of that.")
    return text


def _table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column(names[0], no_wrap=True)
    table.add_column(names[1], justify="right", no_wrap=True)
    table.add_column(names[2], overflow="fold")
    return table
