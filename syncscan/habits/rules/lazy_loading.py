"""Yield the habit if calls that load kernels take a notable part of the steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from syncscan.facts.first_use import library_setups, long_first_launches
from syncscan.facts.full_queue import held_by_queue
from syncscan.habits.context import Context
from syncscan.model.arrays import quantile
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.runtime_calls import api_name, is_launch, may_load_a_kernel
from syncscan.model.trace import CALLS, Category, Trace
from syncscan.rules.pages import advice_of

LONG_NS = 100_000
"""Such a call that takes longer loads something: of 466 in a cold start (H200, torch 2.11, `inference.cold`) eight do
so, as CUPTI recorded for each, and the others take at most 68 µs."""
FACTOR = 20
"""A call that loads takes this many times as long as usual calls of its name; there, at least 69 times."""
_LOADING = frozenset({"Lazy Function Loading", "Runtime Triggered Module Loading"})


def find(context: Context) -> Iterable[Habit]:
    trace = context.trace
    launches = {*_launches(context), *long_first_launches(trace).tolist()}
    loading = sorted(launches | {*_askers(context)}, key=trace.slices.ts.item)
    intervals = [interval for interval in (_loading(trace, row) for row in loading) if interval.end > interval.begin]
    set_up = library_setups(trace).tolist()
    took = sum(end - begin for _, begin, end in intervals) + sum(map(trace.slices.dur.item, set_up))
    took_us = took / context.count / 1e3
    if took_us < context.notable_us:
        return
    rows = sorted((*loading, *set_up), key=trace.slices.ts.item)
    longest = max(rows, key=trace.slices.dur.item)
    name, alike = api_name(trace.name(longest)), len(trace.lengths_like(longest))
    count = "1 call loads code or sets" if len(rows) == 1 else f"{len(rows)} calls load code or set"
    advice = replace(advice_of("lazy-loading"), title=f"{count} a library up, once, on first use")
    evidence = [
        f"{count} a library up: {duration(took / 1e3)} in total, longer than others of their names",
        f"the longest is {name}: {duration(trace.slices.dur.item(longest) / 1e3)}, one of {alike} in the trace",
    ]
    change = Change(host=tuple(intervals), calls=tuple(set_up), unstretched=True)
    yield context.habit(advice, rows, took_us, evidence, [change])


def _askers(context: Context) -> list[int]:
    """Return the slow calls about kernels, which load one."""
    trace, calls = context.trace, []
    for category in CALLS:
        calls += [row for row in context.rows(category, may_load_a_kernel) if trace.slices.dur.item(row) >= LONG_NS]
    return [row for row in calls if trace.slices.dur.item(row) >= FACTOR * _usual_ns(trace, row)]


def _launches(context: Context) -> list[int]:
    """Return the launches during which CUPTI recorded that a kernel was loaded."""
    trace, s = context.trace, context.trace.slices
    loads = trace.where(lambda name: name in _LOADING, Category.OVERHEAD)
    rows = [row for category in CALLS for row in (context.rows(category, is_launch) if len(loads) else ())]
    long = np.array([row for row in rows if s.dur.item(row) >= LONG_NS], np.int64)
    if not len(long):
        return []
    held = held_by_queue(trace, long, s.ts[long], s.end[long])
    begun = np.sort(s.ts[loads])
    inside = begun.searchsorted(s.end[long]) > begun.searchsorted(s.ts[long])
    return list(long[inside & (held == 0)].tolist())


def _loading(trace: Trace, row: int) -> ThreadInterval:
    """Return the part of a call that exceeds its usual length."""
    s = trace.slices
    return ThreadInterval(s.track.item(row), s.ts.item(row) + int(_usual_ns(trace, row)), s.end.item(row))


def _usual_ns(trace: Trace, row: int) -> float:
    """Return the usual length of calls of this name without loading: a low quantile, ns; 0 with one call."""
    lengths = trace.lengths_like(row)
    return quantile(lengths, 0.25) if len(lengths) > 1 else 0.0
