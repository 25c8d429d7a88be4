"""Correct linked columns where writers are known to be wrong: names, categories, times and nesting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from syncscan.facts.chosen_process import launched_by, of_process, processes, share_correlations
from syncscan.facts.profiler_work import device_clock
from syncscan.load.damage import Damage
from syncscan.model.arrays import Bool, Int64
from syncscan.model.duration import duration
from syncscan.model.slice_names import is_annotation, is_op
from syncscan.model.trace import CALLS, DEVICE, HOST, NONE, Category, Slices, Trace, names_that, of_categories

_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
"""Characters that a backslash and a letter may stand for in JSON (RFC 8259, 7), without quotes and slashes."""
_LOST = re.compile(f"[{''.join(_ESCAPED)}]")
_FRAME = re.compile(r"(.{1,4096})(\(\d{1,9}\): .*)", re.DOTALL)


def with_backslashes(frame: str) -> str:
    """Return the name of a Python frame with each such character in its file as a backslash and a letter.

    Other names than `file.py(LINE): function` are returned unchanged.
    """
    if not _LOST.search(frame) or (parts := _FRAME.fullmatch(frame)) is None:
        return frame
    return _LOST.sub(lambda lost: _ESCAPED[lost[0]], parts[1]) + parts[2]


WITHOUT_ANNOTATIONS = "Operator"
"""The category of torch 1.8 and 1.9 for ops and scopes alike."""


def tell_annotations(columns: dict[str, Any], strings: Sequence[str], categories: frozenset[str]) -> None:
    """Change the category of ranges that aren't ops to annotation, in place.

    By name in every trace: torch's names of steps, optimizers and loaders. In a trace from before annotations existed
    (as its `categories` show), also ranges without an op's name that autograd doesn't record and that lie in none of
    torch's own ops. Rows are sorted.
    """
    ops = np.flatnonzero(columns["category"] == Category.CPU_OP)
    names = columns["name"][ops]
    scopes = names_that(is_annotation, strings, names)
    if WITHOUT_ANNOTATIONS in categories:
        free = ~names_that(is_op, strings, names) & (columns["sequence"][ops] == NONE)
        scopes |= free & ~_in_ops(columns, strings, ops)
    if scopes.any():
        columns["category"][ops[scopes]] = Category.ANNOTATION


def _in_ops(columns: dict[str, Any], strings: Sequence[str], rows: Int64) -> Bool:
    """Return which of these rows lie directly in a range with an op's name."""
    parent = columns["parent"][rows]
    inside = (parent != NONE) & (columns["category"][parent] == Category.CPU_OP)
    inside[inside] = names_that(is_op, strings, columns["name"][parent[inside]])
    return np.asarray(inside, np.bool_)


OUTSIDE_NS = 20_000
"""A call at most this far outside of its op is cut to it: 2 to 3 µs are reported, and ops of a thread follow each other
after some 10 µs."""


def move_into_ops(columns: dict[str, Any]) -> bool:
    """Cut calls to the ops that their ids name, in place, where they overlap on the same track; return whether any was.

    If so, the rows must be sorted and nested again.
    """
    calls, ops = _pairs(columns)
    if not len(calls):
        return False
    ts, dur = columns["ts"], columns["dur"]
    begin, end = ts[calls], ts[calls] + dur[calls]
    first, last = ts[ops], ts[ops] + dur[ops]
    near = (begin >= first - OUTSIDE_NS) & (end <= last + OUTSIDE_NS) & ((begin < first) | (end > last))
    near &= (begin < last) & (end > first)  # further away may be anything with the same id
    calls, begin, end = calls[near], np.maximum(begin, first)[near], np.minimum(end, last)[near]
    ts[calls], dur[calls] = begin, end - begin
    return bool(near.any())


def _pairs(columns: dict[str, Any]) -> tuple[Int64, Int64]:
    """Return the calls outside of the op that their id names, and these ops, on the same tracks.

    Before torch 2.6, a call without an op has its own correlation there, which may equal the id of any op.
    """
    calls = np.flatnonzero(of_categories(columns["category"], CALLS))
    external, parent = columns["external"], columns["parent"]
    around = np.where(parent[calls] == NONE, NONE, external[parent[calls]])
    named = external[calls]
    calls = calls[(named != NONE) & (named != around) & (named != columns["correlation"][calls])]
    ops = np.flatnonzero((columns["category"] == Category.CPU_OP) & (external != NONE)) if len(calls) else calls
    if not len(ops):
        return ops, ops
    ops = ops[np.argsort(external[ops], kind="stable")]
    at = np.minimum(np.searchsorted(external[ops], external[calls], side="right") - 1, len(ops) - 1)
    candidates = ops[np.maximum(at, 0)]
    known = (external[candidates] == external[calls]) & (columns["track"][candidates] == columns["track"][calls])
    return calls[known], candidates[known]


COVERED = 10
"""Later launches' work on a stream that work can't last over. A stream runs one task at a time; with programmatic
dependent launch a kernel overlaps the next one, and only kernels of one graph launch overlap further ones."""
FEW = 0.05
"""Largest share of a stream's work whose durations are taken to be wrong; with more, the stream is reported instead."""
LATER_NS = 50_000
"""A call that begins this long after the time 0 can't have launched work that was done then."""


def repair_device_times(columns: dict[str, Any], damage: Damage) -> None:
    """Leave out work without times, and end work that can't last as long where the next one begins, in place."""
    rows = _timeless(columns)
    if len(rows):
        for name in columns:
            columns[name] = np.delete(columns[name], rows)
        damage.notes.append(f"{_records(len(rows), 'has', 'have')} no times (begin and length 0): left out.")
    count, longest = _shorten(columns)
    if count:
        lasts = f"a duration (up to {duration(longest / 1e3)}) that covers many later ones of the same stream"
        damage.notes.append(f"{_records(count, 'has', 'have')} {lasts}: taken to end where the next one begins.")


def _records(count: int, singular: str, plural: str) -> str:
    return f"1 device record {singular}" if count == 1 else f"{count:,} device records {plural}"


def _timeless(columns: dict[str, Any]) -> Int64:
    """Return the rows of device work that begins and ends at 0 though its call, or else any, comes later."""
    zero = (columns["ts"] == 0) & (columns["dur"] == 0)
    rows = np.flatnonzero(zero)
    rows = rows[of_categories(columns["category"][rows], DEVICE)]
    if not len(rows):
        return rows
    calls = np.flatnonzero(of_categories(columns["category"], CALLS) & (columns["correlation"] != NONE))
    calls = calls[np.argsort(columns["correlation"][calls], kind="stable")]
    ids, begins = columns["correlation"][calls], columns["ts"][calls]
    if not len(calls):
        return rows[:0]
    at = np.minimum(ids.searchsorted(columns["correlation"][rows]), len(ids) - 1)
    begun = np.where(ids[at] == columns["correlation"][rows], begins[at], begins.min())
    timeless: Int64 = rows[begun > LATER_NS]
    return timeless


def _shorten(columns: dict[str, Any]) -> tuple[int, int]:
    """Shorten the work that lasts over many later ones of its stream; return how many, and their longest duration."""
    rows = np.flatnonzero(of_categories(columns["category"], DEVICE) & (columns["stream"] != NONE))
    streams = columns["device"][rows].astype(np.int64) << 32 | columns["stream"][rows].astype(np.int64) & 0xFFFFFFFF
    rows = rows[np.lexsort((columns["ts"][rows], streams, columns["track"][rows]))]
    keys = np.stack([columns["track"][rows], columns["device"][rows], columns["stream"][rows]])
    borders = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    count, longest = 0, 0
    for stream_rows in np.split(rows, borders):
        wrong = _too_long(columns, stream_rows)
        if len(wrong):
            begins = columns["ts"][stream_rows]
            lengths = columns["dur"][stream_rows[wrong]]
            count, longest = count + len(wrong), max(longest, int(lengths.max()))
            columns["dur"][stream_rows[wrong]] = begins[wrong + 1] - begins[wrong]
    return count, longest


def _too_long(columns: dict[str, Any], rows: Int64) -> Int64:
    """Return the indices in a stream's rows, by begin, of the work that covers many later ones in full."""
    begins, ends = columns["ts"][rows], columns["ts"][rows] + columns["dur"][rows]
    behind = begins.searchsorted(ends) - np.arange(len(rows)) - 1
    wrong = [at for at in np.flatnonzero(behind >= COVERED).tolist() if _covers(columns, rows, ends, at)]
    if len(wrong) > max(1, FEW * len(rows)):
        return np.zeros(0, np.int64)
    return np.array(wrong, np.int64)


def _covers(columns: dict[str, Any], rows: Int64, ends: Int64, at: int) -> bool:
    """Return whether enough work of other launches begins and ends within this one's."""
    inside = slice(at + 1, int(columns["ts"][rows].searchsorted(ends[at])))
    others = columns["correlation"][rows[inside]] != columns["correlation"][rows[at]]
    return int(np.count_nonzero(others & (ends[inside] <= ends[at]))) >= COVERED


def with_device_times(trace: Trace) -> Trace:
    """Return the trace with device work on the host's clock and a warning; unchanged if the clocks agree.

    Each process of several has a clock of its own. Rows of the host don't move, since device work has tracks of its
    own, with the profiler's rows of synchronizations, whose times are the host's.
    """
    shifts = _shifts(trace)
    if not shifts:
        return trace
    s, on_host, ts = trace.slices, trace.is_category(*HOST), trace.slices.ts.copy()
    for rows, shift, _ in shifts:
        ts[rows] -= shift
    order = np.lexsort((-s.dur, ts, s.track))
    if (order[on_host] != np.flatnonzero(on_host)).any():
        return trace
    columns = {name: getattr(s, name)[order] for name in Slices.__struct_fields__}
    warnings = tuple(_shifted(shift, whose) for _, shift, whose in shifts)
    info = replace(trace.info, warnings=(*trace.info.warnings, *warnings))
    return replace(trace, info=info, slices=Slices(**{**columns, "ts": ts[order]}))


def _shifts(trace: Trace) -> list[tuple[Int64, int, str]]:
    """Return rows of device work on a wrong clock, its shift in ns, and whose work it is; empty if clocks agree."""
    pids = processes(trace)
    if len(pids) < 2 or share_correlations(trace):
        shift = device_clock(trace).shift
        return [] if shift is None else [(trace.device_rows, shift, "")]
    clocks = ((pid, device_clock(of_process(trace, pid)).shift) for pid in pids)
    return [
        (trace.device_rows[launched_by(trace, pid)], shift, f" of process {pid}")
        for pid, shift in clocks
        if shift is not None
    ]


def _shifted(shift: int, whose: str) -> str:
    was, to = ("late", "earlier") if shift > 0 else ("early", "later")
    return (
        f"Device times{whose} are about {abs(shift) / 1e3:.0f} µs {was} by the host's clock, and were shifted {to} by "
        f"that amount."
    )
