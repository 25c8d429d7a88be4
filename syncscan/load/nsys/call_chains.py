"""Read the Python frames in the call chains of CUDA calls (`--cudabacktrace` with `--python-backtrace=cuda`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from syncscan.load.columns import Columns
from syncscan.load.nsys.database import Database, text
from syncscan.model.arrays import Int32, Int64

TABLE = "CUDA_CALLCHAINS"
_PLACE = re.compile(r"(?P<file>[^\n]{1,4096}\.pyx?)[:(](?P<line>\d{1,9})\)?")
"""A line of Python, as a chain's symbol or module may name it: `train.py:12`, `train.py(12)`."""
_IN_SYMBOL = re.compile(r"(?P<function>[^\n]{1,1000}?) ?[@(\[](?P<place>[^\n]+\.pyx?[:(]\d{1,9}\)?)[)\]]?")


def add_frames(database: Database, columns: Columns, calls: Iterable[tuple[Int32, Int64, Int64, Int64]]) -> bool:
    """Add the frames around the calls (track, begin, end and chain of each); return whether there were any.

    A frame lasts as long as the call, and 1 ns more on each side for each frame inside it, so that they nest.
    """
    chains = _python_frames(database)
    numbers: dict[str, int] = {}
    added = False
    for track, begin, end, chain in calls if chains else ():
        rows = [
            (t, b - depth, e - b + 2 * depth, numbers.setdefault(frame, columns.name(frame)))
            for t, b, e, c in zip(track.tolist(), begin.tolist(), end.tolist(), chain.tolist(), strict=True)
            for depth, frame in enumerate(chains.get(c, ()), 1)
        ]
        if rows:
            tracks, ts, dur, names = np.array(rows, np.int64).T
            columns.add_columns(None, {"track": tracks, "ts": ts, "dur": dur, "name": names})
            added = True
    return added


def _python_frames(database: Database) -> dict[int, list[str]]:
    """Return the Python frames of each call chain, innermost first, as torch.profiler names frames."""
    chains: dict[int, list[str]] = {}
    portions = list(database.numbers(TABLE, ["id", "stackDepth", "symbol", "module"]))
    rows = np.concatenate(portions, axis=1) if portions else np.zeros((4, 0), np.int64)
    texts = {number: text(stored) for number, stored in database.texts(np.unique(rows[2:]).tolist()).items()}
    if any(".py" in stored for stored in texts.values()):
        for chain, _, symbol, module in rows[:, np.lexsort((rows[1], rows[0]))].T.tolist():
            if frame := _frame(texts.get(symbol, ""), texts.get(module, "")):
                chains.setdefault(chain, []).append(frame)
    return chains


def _frame(symbol: str, module: str) -> str:
    """Return a Python frame as `file.py(LINE): function`; empty for one of another language."""
    if place := _PLACE.fullmatch(module):
        return f"{place['file']}({place['line']}): {symbol}"
    if (named := _IN_SYMBOL.fullmatch(symbol)) and (place := _PLACE.fullmatch(named["place"])):
        return f"{place['file']}({place['line']}): {named['function'].strip()}"
    if place := _PLACE.fullmatch(symbol):
        return f"{place['file']}({place['line']}): <module>"
    return ""
