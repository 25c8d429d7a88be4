"""Draw a step before and after as two lines of half blocks: the upper half is the host, the lower half the device."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from rich.text import Text

from syncscan.model.arrays import Float64
from syncscan.report.before_after import BeforeAfter
from syncscan.report.step_lanes import LEVELS, Lanes
from syncscan.report.units import duration

LEAST = 24
"""Columns of a bar below which nothing is drawn."""
_LABEL, _VALUE = 5, 9
_HOST = {"works": "bright_black", "sync": "red", "call": "bright_black", "input": "magenta", "pause": "bright_magenta"}
_HOST |= {"queue": "bright_black", "": ""}
_DEVICE = {"work": "green", "bubble": "yellow", "": ""}


def lines(drawn: BeforeAfter, width: int, color: bool) -> list[Text]:
    """Return the step as recorded and after its fixes, one line each, and a line with the meanings.

    Args:
        drawn: the drawn with its replays.
        width: the width of the terminal, in characters.
        color: whether colors tell waits and idle time apart; without, a missing half says that nothing works.

    Returns:
        Nothing where the terminal is too narrow.
    """
    columns = width - _LABEL - _VALUE
    if columns < LEAST:
        return []
    rows = [("now", drawn.recorded, drawn.base_us)]
    rows += [("then", drawn.shown.lanes, drawn.shown.us)] if drawn.fixes else []
    return [*(_line(label, lanes, us, drawn.length, columns, color) for label, lanes, us in rows), _key(color)]


def _line(label: str, lanes: Lanes, us: float, length: float, columns: int, color: bool) -> Text:
    line = Text(no_wrap=True).append(f"{label:<{_LABEL}}", style="dim")
    cells = zip(_host(lanes, length, columns), _device(lanes, length, columns), strict=True)
    for (host, device), run in itertools.groupby(cells):
        block, style = _cell(host, device, color)
        line.append(block * len(list(run)), style=style)
    return line.append(f" {duration(us)}", style="bold")


def _cell(host: str, device: str, color: bool) -> tuple[str, str]:
    """Return a block and its style."""
    if not color:
        works, runs = host in ("works", "call"), device == "work"
        return "█" if works and runs else "▀" if works else "▄" if runs else " ", ""
    upper, lower = _HOST[host], _DEVICE[device]
    if upper:
        return "▀", f"{upper} on {lower}" if lower else upper
    return "▄" if lower else " ", lower


def _host(lanes: Lanes, length: float, columns: int) -> list[str]:
    """Return what the host does most of each column's time."""
    part = length / columns
    spans: dict[str, list[tuple[float, float]]] = {"works": [(0.0, lanes.host_end)]}
    for piece in lanes.host:
        spans.setdefault(piece.look, []).append((piece.begin, piece.end))
    covered = {look: _covered_length(each, part, columns) for look, each in spans.items()}
    stopped = sum((c for look, c in covered.items() if look != "works"), np.zeros(columns))
    covered["works"] = covered["works"] - stopped
    return _most(covered, part, columns)


def _device(lanes: Lanes, length: float, columns: int) -> list[str]:
    """Return what the device does most of each column's time."""
    part = length / columns
    work = sum(
        (_covered_length([(s.begin, s.end)], part, columns) * s.level / LEVELS for s in lanes.device), np.zeros(columns)
    )
    bubbles = _covered_length([(p.begin, p.end) for p in lanes.idle], part, columns)
    return _most({"work": work, "bubble": bubbles}, part, columns)


def _covered_length(spans: Sequence[tuple[float, float]], part: float, columns: int) -> Float64:
    edges = np.arange(columns + 1) * part
    total = np.zeros(columns)
    for begin, end in spans:
        total += np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0.0, None)
    return total


def _most(covered: dict[str, Float64], part: float, columns: int) -> list[str]:
    """Return the name that covers most of each column; empty where all together cover less than half."""
    names = list(covered)
    table = np.stack([covered[name] for name in names])
    best, most = table.argmax(axis=0), table.sum(axis=0) >= 0.5 * part
    return [names[best[k]] if most[k] else "" for k in range(columns)]


def _key(color: bool) -> Text:
    if not color:
        return Text("     ▀ host works  ▄ device works  █ both", style="dim")
    key = Text("     ")
    entries = (("▀", "bright_black", "host works"), ("▀", "red", "host waits"), ("▄", "green", "device works"))
    for block, style, label in (*entries, ("▄", "yellow", "device idle after a sync")):
        key.append(block, style=style).append(f" {label}  ", style="dim")
    return key
