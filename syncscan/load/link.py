"""Link columns in any order to a Trace: number and sort everything, nest host slices, find the steps.

Of the Python frames those are kept that can locate a sync, and those that reports draw.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.facts.paths import innermost_until
from syncscan.load.columns import Unlinked
from syncscan.load.corrections import (
    move_into_ops,
    repair_device_times,
    tell_annotations,
    with_backslashes,
    with_device_times,
)
from syncscan.load.damage import UNFINISHED, Damage
from syncscan.load.steps import with_steps
from syncscan.load.table import Arrays, is_empty
from syncscan.model.arrays import Bool, Int32, Int64, among, distinct, largest
from syncscan.model.trace import (
    CALLS,
    DEEPEST,
    DEVICE,
    HOST,
    MOST_DRAWN_FRAMES,
    NONE,
    Category,
    Flows,
    Frames,
    Slices,
    Trace,
    TraceInfo,
    Track,
    of_categories,
)

_SLACK_NS = 2
"""How far a slice may end after the one around it, since kineto rounds the ends of nested ops separately."""
# torch 1.8 calls a stream's thread "stream 7", or "stream 7 user".
_DIGITS = re.compile(r"(?:stream )?(\d{1,9})(?: .*)?")


def linked_trace(info: TraceInfo, raw: Unlinked, damage: Damage) -> Trace:
    """Order the rows, nest the host slices, find the steps, keep the useful frames; put `damage` in `info`.

    The result doesn't depend on the order of events in the file.
    """
    tracks, track_of = _order_tracks(raw.tracks)
    columns = raw.slices
    columns["track"] = track_of[columns["track"]]
    _fill_places(columns, tracks)
    _sort(columns, raw.strings)
    _drop_duplicates(columns, damage)
    repair_device_times(columns, damage)
    _nest(columns)
    if move_into_ops(columns):
        del columns["parent"]
        _sort(columns, raw.strings)
        _nest(columns)
    tell_annotations(columns, raw.strings, raw.categories)
    slices = Slices(**columns)
    damage.deep = _too_deep(slices.parent)
    damage.ambiguous = _shared_correlations(slices)
    flows = _sort_flows(raw.flows, track_of)
    frames = _sort_frames(raw.frames, track_of, raw.strings)
    useful = useful_frames(raw.strings, slices, frames, flows)
    drawn = useful | largest(frames.dur, MOST_DRAWN_FRAMES)
    frames = frames.select(drawn)
    strings = _renumbered(_with_backslashes(raw.strings, frames), slices, frames)
    trace = Trace(
        info=_with_warnings(info, damage),
        strings=strings,
        tracks=tracks,
        slices=slices,
        frames=frames.select(useful[drawn]),
        drawn_frames=frames,
        flows=flows,
        steps=(),
    )
    return with_steps(with_device_times(trace))


def _order_tracks(tracks: Sequence[Track]) -> tuple[tuple[Track, ...], Int32]:
    """Return the tracks ordered by process and thread, numbers before words, and each one's new number."""
    order = sorted(range(len(tracks)), key=lambda i: (_natural(tracks[i].pid), _natural(tracks[i].tid)))
    number = np.zeros(len(tracks), np.int32)
    number[order] = np.arange(len(tracks), dtype=np.int32)
    return tuple(tracks[i] for i in order), number


def _natural(text: str) -> tuple[int, int, str]:
    match = re.fullmatch(r"-?\d{1,30}", text, re.ASCII)
    return (0, int(text), text) if match else (1, 0, text)


def _fill_places(columns: Arrays, tracks: Sequence[Track]) -> None:
    """Fill in device and stream of device work without them in its args, from its track: pid and tid."""
    of_device = of_categories(columns["category"], DEVICE)
    for name, texts in (("device", [t.pid for t in tracks]), ("stream", [t.tid for t in tracks])):
        numbers = np.array([int(m[1]) if (m := _DIGITS.fullmatch(t)) else NONE for t in texts], np.int32)
        lacking = np.flatnonzero(of_device & (columns[name] == NONE))
        if len(lacking):
            columns[name][lacking] = numbers[columns["track"][lacking]]


def _sort(columns: Arrays, strings: Sequence[str]) -> None:
    """Sort by (track, ts, -dur), ties so that enclosing rows come first: ops and annotations by their ids."""
    order = np.lexsort((columns["ts"], columns["track"]))
    # Ties keep their places, so these two are in order already.
    track, ts = columns["track"].take(order), columns["ts"].take(order)
    tied = _tied(track, ts)
    if len(tied):
        rows = order[tied]
        category = columns["category"][rows]
        # An op and an annotation that begin and end together enclose each other in order of their ids: these are given
        # when a slice begins. So both count as one category here; what is left of a tie is settled by any column.
        op_or_other = np.where(category == Category.ANNOTATION, Category.CPU_OP, category)
        text = _ranks([strings[i] for i in columns["name"][rows].tolist()])
        other = [columns[n][rows] for n in columns if n not in ("name", "track", "ts", "dur")]
        keys = (*other, text, columns["correlation"][rows], category, columns["external"][rows], op_or_other)
        order[tied] = rows[np.lexsort((*keys, -columns["dur"][rows], ts[tied], track[tied]))]
    del columns["track"], columns["ts"]
    for name, column in columns.items():
        if not is_empty(column):
            columns[name] = column.take(order)
    columns |= {"track": track, "ts": ts}


def _tied(*columns: Any) -> Int64:
    """Return the indices of rows that equal the previous or next row in all these columns."""
    same = np.ones(max(len(columns[0]) - 1, 0), np.bool_)
    for column in columns:
        same &= column[1:] == column[:-1]
    return np.flatnonzero(np.append(False, same) | np.append(same, False)) if len(columns[0]) else np.zeros(0, np.int64)


def _ranks(texts: list[str]) -> Int64:
    rank = {text: i for i, text in enumerate(sorted(set(texts)))}
    return np.fromiter([rank[t] for t in texts], np.int64, len(texts))


def _drop_duplicates(columns: Arrays, damage: Damage) -> None:
    """Leave out rows with ids that equal the previous row in every column, since an event can't occur twice.

    Without ids it can: two ops of no length in the same ns.
    """
    equal = (columns["ts"][1:] == columns["ts"][:-1]) & (columns["dur"][1:] == columns["dur"][:-1])
    equal &= (columns["correlation"][1:] != NONE) | (columns["external"][1:] != NONE)
    duplicates = np.flatnonzero(equal) + 1
    for column in columns.values():
        duplicates = duplicates[column[duplicates] == column[duplicates - 1]]
    if len(duplicates):
        damage.duplicates += len(duplicates)
        for name in columns:
            columns[name] = np.delete(columns[name], duplicates)


def _nest(columns: Arrays) -> None:
    host = np.flatnonzero(of_categories(columns["category"], HOST))
    track, ts = columns["track"][host], columns["ts"][host]
    columns["parent"] = np.full(len(columns["ts"]), NONE, np.int32)
    columns["parent"][host] = innermost_around(host, track, ts, ts + columns["dur"][host])
    _nest_os_calls(columns, host)


def _nest_os_calls(columns: Arrays, host: Int64) -> None:
    """Set the parents of calls of the OS, starting from the last host slice before each; they are no one's parents."""
    track, ts, dur, parent = (columns[name] for name in ("track", "ts", "dur", "parent"))
    calls = np.flatnonzero(columns["category"] == Category.OS_CALL)
    around = np.append(NONE, host)[host.searchsorted(calls)]
    while len(calls):
        parent[calls] = around
        outside = (track[around] != track[calls]) | (ts[around] + dur[around] < ts[calls] + dur[calls])
        outside &= around != NONE
        calls, around = calls[outside], parent[around[outside]]


def innermost_around(rows: Int64, track: Int32, ts: Int64, end: Int64) -> Int64:
    """Return for each interval the number of the innermost one around it on its track, or NONE.

    An interval encloses another if it comes before it, ends after the other starts, and ends no earlier, within
    `_SLACK_NS`.

    The intervals are sorted by (track, ts, -end).
    """
    around = innermost_until(track, end, np.maximum(ts + 1, end - _SLACK_NS))
    return np.where(around == NONE, NONE, rows.take(around)) if len(rows) else rows


def _too_deep(parent: Int32) -> int:
    """Return how many slices are inside more than `DEEPEST` others."""
    around = parent
    for _ in range(DEEPEST):
        around = parent.take(around[around != NONE])
        if not len(around):
            break
    return int(np.count_nonzero(around != NONE))


def _shared_correlations(s: Slices) -> int:
    """Return how many correlation ids belong to more than one runtime call, or more than one driver call."""
    shared = 0
    for category in CALLS:
        ids = s.correlation[(s.category == category) & (s.correlation > 0)]
        # they ascend per thread: a stable sort uses such runs, the default one takes 25 times as long
        ids = np.sort(ids, kind="stable")
        again = ids[1:][ids[1:] == ids[:-1]]
        shared += len(distinct(again))
    return shared


def _sort_flows(f: Flows, track_of: Int32) -> Flows:
    from_track, to_track = track_of[f.from_track], track_of[f.to_track]
    order = np.lexsort((from_track, f.from_ts, to_track, f.to_ts))
    return Flows(from_track[order], f.from_ts[order], to_track[order], f.to_ts[order])


def _sort_frames(columns: Arrays, track_of: Int32, strings: Sequence[str]) -> Frames:
    track, ts, dur = track_of[columns.pop("track")], columns["ts"], columns["dur"]
    # those of a track come ordered by end or begin: sorting all by duration first took three times as long
    order = np.lexsort((ts, track))
    tied = _tied(track[order], ts[order])
    if len(tied):
        rows = order[tied]
        order[tied] = rows = rows[np.lexsort((-dur[rows], ts[rows], track[rows]))]
        tied = tied[_tied(track[rows], ts[rows], dur[rows])]
    if len(tied):
        rows = order[tied]
        text = _ranks([strings[i] for i in columns["name"][rows].tolist()])
        order[tied] = rows[np.lexsort((text, -dur[rows], ts[rows], track[rows]))]
    return Frames(columns.pop("name")[order], track[order], columns.pop("ts")[order], columns.pop("dur")[order])


def _with_backslashes(strings: Sequence[str], frames: Frames) -> Sequence[str]:
    """Return the names, followed by replacements for some frames' names; change the frames in place."""
    numbers = distinct(frames.name).tolist()
    instead = {number: name for number in numbers if (name := with_backslashes(strings[number])) != strings[number]}
    if not instead:
        return strings
    every = [*strings, *set(instead.values()).difference(strings)]
    number_of = {name: number for number, name in enumerate(every)}
    number = np.arange(len(every), dtype=np.int32)
    number[list(instead)] = [number_of[name] for name in instead.values()]
    frames.name[:] = number[frames.name]
    return every


def _renumbered(strings: Sequence[str], slices: Slices, frames: Frames) -> tuple[str, ...]:
    """Renumber the used names in order of first use; change the columns of names in place."""
    grouped = np.flatnonzero(slices.group != NONE)
    used = np.concatenate([slices.name, frames.name, slices.group[grouped]])
    first = np.full(len(strings), len(used), np.int64)
    first[used[::-1]] = np.arange(len(used), dtype=np.int64)[::-1]
    order = np.argsort(first, kind="stable")[: int((first < len(used)).sum())]
    number = np.zeros(len(strings), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    slices.name[:] = number[slices.name]
    frames.name[:] = number[frames.name]
    if len(grouped):
        slices.group[grouped] = number[slices.group[grouped]]
    return tuple(strings[i] for i in order.tolist())


def _with_warnings(info: TraceInfo, damage: Damage) -> TraceInfo:
    warnings = (*info.warnings, *damage.sentences())
    return msgspec.structs.replace(info, warnings=warnings, complete=UNFINISHED not in damage.notes)


_IDLE = re.compile(
    r"\w*(Launch|EventQuery|StreamQuery|EventRecord|IsCapturing|GetCaptureInfo|GetAttributes|GetDevice|Occupancy"
    r"|PeekAtLastError|GetLastError|CallConfiguration|StreamWaitEvent|Memset\w*Async|EventCreate|EventDestroy)\w*"
)
"""Calls that don't wait unless they take long (`_LONG_NS`): a full queue, a lazily loaded kernel."""
_LONG_NS = 20_000
"""Length from which such a call counts as a wait: 99 % of the 38,088 of them in sample_traces/ (H200, torch 2.11) take
less than 23 µs."""


def useful_frames(strings: Sequence[str], slices: Slices, frames: Frames, flows: Flows) -> Bool:
    """Mark the frames around a call that may wait, or around the forward op of a backward op around such a call."""
    if not len(frames):
        return np.zeros(0, np.bool_)
    calls = _calls(strings, slices)
    track, ts = slices.track[calls], slices.ts[calls]
    sync_rows = _lone_syncs(slices)
    above = _above(slices, calls)
    for other in (_forward(slices, above), _arrow_tails(slices, flows, above)):
        track, ts = np.append(track, other[0]), np.append(ts, other[1])
    return _around(frames, track, ts) | _holds(frames.ts, frames.end, np.sort(slices.ts[sync_rows]))


def _calls(strings: Sequence[str], s: Slices) -> Int64:
    calls = np.flatnonzero((s.category == Category.RUNTIME) | (s.category == Category.DRIVER))
    idle = np.zeros(len(strings), np.bool_)
    for number in distinct(s.name[calls]).tolist():
        idle[number] = bool(_IDLE.fullmatch(strings[number]))
    return calls[~idle[s.name[calls]] | (s.dur[calls] >= _LONG_NS)]


def _lone_syncs(s: Slices) -> Int64:
    """Return synchronization rows without a host call, which don't state the thread that waited."""
    rows = np.flatnonzero(s.category == Category.SYNC)
    calls = (s.category == Category.RUNTIME) | (s.category == Category.DRIVER)
    return rows[~among(s.correlation[rows], s.correlation[calls])] if len(rows) else rows


def _above(s: Slices, rows: Int64) -> Int64:
    seen = np.zeros(len(s), np.bool_)
    while len(rows):
        rows = distinct(s.parent[rows].astype(np.int64))
        rows = rows[rows != NONE]
        rows = rows[~seen[rows]]
        seen[rows] = True
    return np.flatnonzero(seen)


def _forward(s: Slices, above: Int64) -> tuple[Int32, Int64]:
    """Return track and start of the ops that share a sequence number with one of the ops above.

    A forward op has 0 for its `Fwd thread id`, a backward op the number of its forward op's thread, from 1
    (torch/csrc/profiler/kineto_shim and collection.cpp).
    """
    sequences = distinct(s.sequence[above[s.fwd_thread[above] > 0]])
    op = (s.category == Category.CPU_OP) & (s.sequence != NONE) & (s.fwd_thread <= 0)
    rows = np.flatnonzero(op)
    rows = rows[among(s.sequence[rows], sequences)]
    return s.track[rows], s.ts[rows]


def _arrow_tails(s: Slices, flows: Flows, above: Int64) -> tuple[Int32, Int64]:
    """Return track and time of the starts of arrows that end in one of the ops above."""
    ops = above[s.category[above] == Category.CPU_OP]
    hit = _contained(s.track[ops], s.ts[ops], s.end[ops], flows.to_track, flows.to_ts)
    return flows.from_track[hit], flows.from_ts[hit]


def _contained(on_track: Int32, start: Int64, end: Int64, track: Int32, ts: Int64) -> Bool:
    """Return which of these points lie in at least one interval, by counting starts and ends before each."""
    inside = np.zeros(len(ts), np.bool_)
    for t in distinct(track).tolist():
        on, points = on_track == t, np.flatnonzero(track == t)
        starts, ends = np.sort(start[on]), np.sort(end[on])
        opened = np.searchsorted(starts, ts[points], side="right")
        closed = np.searchsorted(ends, ts[points], side="left")
        inside[points] = opened > closed
    return inside


def _around(frames: Frames, track: Int32, ts: Int64) -> Bool:
    """Return which frames contain at least one of these points."""
    around = np.zeros(len(frames), np.bool_)
    for t in distinct(track).tolist():
        lo, hi = np.searchsorted(frames.track, [t, t + 1])
        points = np.sort(ts[track == t])
        around[lo:hi] = _holds(frames.ts[lo:hi], frames.end[lo:hi], points)
    return around


def _holds(start: Int64, end: Int64, points: Int64) -> Bool:
    """Return which of these intervals contain at least one of the ascending points."""
    if not len(points):
        return np.zeros(len(start), np.bool_)
    first = np.searchsorted(points, start)
    held: Bool = (first < len(points)) & (points.take(first, mode="clip") <= end)
    return held
