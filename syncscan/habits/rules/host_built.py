"""Tensors that are built on the CPU and sent to the device, every step."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import Look
from syncscan.habits.sources import copies_to_device, factory_before, top_op
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="host-built-tensor",
    area=Area.INPUT,
    title="A tensor is built on the CPU and sent to the device, every step",
    why="The host fills it, then copies it from pageable memory and waits; the device could have filled it in µs.",
    fix="Make it where it is used: torch.rand(shape, device=device), or once before the loop if it never changes.",
    when_fine="When its content comes from the host anyway, or it must not depend on the device's random numbers.",
)


def find(look: Look) -> Iterable[Habit]:
    """A factory op without device work, then right behind it a pageable copy to the device, in every step."""
    pairs = [(c, factory_before(look, c.call)) for c in copies_to_device(look, pageable=True)]
    built = {c.call: (c, row) for c, row in pairs if row is not None}
    for group in look.by_scope(built):
        mine = [built[call] for call in group]
        making = look.length_us(row for _, row in mine) * look.host_scale
        sending = look.length_us(group) + sum(c.waited_ns for c, _ in mine) / look.count / 1e3
        if making + sending < look.notable_us or len(mine) < look.count:
            continue
        name = look.trace.name(mine[0][1])
        yield look.habit(
            ADVICE,
            group,
            making + sending,
            [
                f"{name} fills it on the host in {making / 1e3:.2f} ms a step",
                f"copying its {mine[0][0].size / 1e6:.1f} MB holds the host for {sending / 1e3:.2f} ms",
            ],
            [
                Change(
                    host=tuple(look.stretch(r) for c, row in mine for r in (row, top_op(look, c.call))),
                    removed=look.findings_of(group),
                )
            ],
        )
