"""DataParallel: one process copies the weights to every device and gathers the outputs, every step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncscan.habits.look import Look, Stretch
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.trace import Category

ADVICE = Advice(
    rule="data-parallel",
    area=Area.DEVICE,
    title="DataParallel sends the weights to every device, every step",
    why=(
        "One process scatters the batch, copies all weights to the other devices, launches for all of them under one "
        "interpreter lock, gathers the outputs, and adds up the gradients on the first device."
    ),
    fix="DistributedDataParallel: a process a device; weights stay, gradients are averaged while backward still runs.",
    when_fine="For a quick trial; torch itself advises against it for anything else.",
)
MOVING = re.compile(r"(Broadcast|Scatter|Gather|ReduceAddCoalesced)(Backward)?")


def find(look: Look) -> Iterable[Habit]:
    """Its own scope, and in it the ops that move weights, batch, outputs and gradients between several devices."""
    scopes = look.rows(Category.ANNOTATION, lambda n: n == "DataParallel.forward")
    if not scopes or len(look.work.devices) < 2:
        return
    moving = look.outermost(look.rows(Category.CPU_OP, MOVING.fullmatch, main=False))
    stretches = [look.stretch(r) for r in moving]
    copied = [int(r) for st in stretches for r in look.launched(st, any_thread=True)]
    host, device = look.length_us(moving), look.length_us(copied)
    if max(host, device) < look.notable_us:
        return
    yield look.habit(
        ADVICE,
        scopes,
        max(host, device),
        [
            f"{len(moving) / look.count:.0f} transfers a step between {len(look.work.devices)} devices take "
            f"{host / 1e3:.2f} ms of the host and {device / 1e3:.2f} ms of the devices",
        ],
        _changes(look, scopes, stretches, copied),
    )


def _changes(look: Look, scopes: list[int], moving: list[Stretch], copied: list[int]) -> list[Change]:
    """The transfers gone; at most also what the one process launches for the other devices in forward."""
    gone = tuple((r, 0.0) for r in copied)
    others = tuple(look.stretch(r, 1 / len(look.work.devices)) for r in scopes)
    return [Change(host=tuple(moving), work=gone), Change(host=(*moving, *others), work=gone)]
