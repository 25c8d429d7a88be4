"""Yield the habit if `DataParallel.forward` moves weights, batch, outputs and gradients between several devices."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of

MOVING = re.compile(r"(Broadcast|Scatter|Gather|ReduceAddCoalesced)(Backward)?")


def find(context: Context) -> Iterable[Habit]:
    scopes = context.rows(Category.ANNOTATION, lambda n: n == "DataParallel.forward")
    if not scopes or len(context.work.devices) < 2:
        return
    moving = context.outermost(context.rows(Category.CPU_OP, MOVING.fullmatch, main=False))
    intervals = [context.interval(r) for r in moving]
    copied = [int(r) for st in intervals for r in context.launched(st, any_thread=True)]
    host, device = context.length_us(moving), context.length_us(copied)
    if max(host, device) < context.notable_us:
        return
    yield context.habit(
        advice_of("data-parallel"),
        scopes,
        max(host, device),
        [
            f"{len(moving) / context.count:.0f} transfers per step between {len(context.work.devices)} devices take "
            f"{duration(host)} of the host and {duration(device)} of the devices",
        ],
        _changes(context, scopes, intervals, copied),
    )


def _changes(context: Context, scopes: list[int], moving: list[ThreadInterval], copied: list[int]) -> list[Change]:
    """Return the step without transfers; at most also without the process's launches for other devices in forward."""
    removed = tuple((r, 0.0) for r in copied)
    forward = tuple(context.interval(r, 1 / len(context.work.devices)) for r in scopes)
    return [Change(host=tuple(moving), work=removed), Change(host=(*moving, *forward), work=removed)]
