"""Join the watches of a job's ranks: which rank the others wait for, and since when.

Ranks step together, so all of them take as long as the slowest. Its thread waits least: the others wait for the device,
whose collective waits for it, or in a collective's call itself. A rank that is slow on its device alone waits as they
do, and isn't seen here.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from syncscan.errors import UsageError
from syncscan.watching.reading import WatchRecords
from syncscan.watching.record import Window
from syncscan.watching.thread_position import HOST

SCHEMA = "syncscan.watch-ranks/1"
GAP = 0.10
"""Least part of the time that the others wait more, in which a rank counts as the one that is waited for."""
LASTS = 3
"""Least slots in a row: one alone is an evaluation of one rank, or a checkpoint."""
SILENT = 3.0
"""Windows without a line in a file after which its rank is silent; others have written since."""
RECENT = 30
"""Slots that the shares of a rank are of."""


class RankRow(msgspec.Struct, frozen=True):
    """A rank in its last windows."""

    rank: int
    host: str
    pid: int
    path: str
    step_us: float | None
    waiting: float
    """Part of the time in which it waited for the device."""
    peers: float
    """And in which it waited in a collective."""
    input: float
    steps: int
    """Since its watch began."""
    last_at: float
    """When it wrote last, seconds since 1970."""
    silent: bool
    """Whether the others have gone on writing since."""


class Waited(msgspec.Struct, frozen=True):
    """A rank that the others wait for."""

    rank: int
    since: float
    """Seconds since 1970."""
    seconds: float
    """For how long, until the last window."""
    waits: float
    """Part of the time that it waits itself."""
    others_wait: float
    """The median of the others."""
    file: str
    line: int
    function: str
    """Where it spends more of its time than the others; an empty file where no line does."""
    more: float
    """By which part of the time."""


class Slot(msgspec.Struct, frozen=True):
    """Some seconds of all ranks."""

    at: float
    waits: tuple[float | None, ...]
    """Part of the time that each rank waited for the device or in a collective; null where it wrote nothing."""
    waited_for: int | None
    """The rank that the others waited for."""


class Ranks(msgspec.Struct, frozen=True):
    """The ranks of a watched job."""

    schema: str
    program: str
    world: int
    missing: tuple[int, ...]
    """Ranks that have no file."""
    rows: tuple[RankRow, ...]
    waited: Waited | None
    """The rank that is waited for now."""
    earlier: tuple[Waited, ...]
    """Others that were before, in order."""
    slots: tuple[Slot, ...]
    """The last ones, the newest last."""


def joined(watches: Sequence[WatchRecords]) -> Ranks:
    """Return the ranks of a job.

    Args:
        watches: of its ranks; of several of one rank the newest counts.

    Raises:
        UsageError: none has a window.
    """
    chosen = _by_rank(watches)
    if not chosen:
        raise UsageError("No window has ended yet in these files.", "Wait until one has.")
    # A watch's last window is shorter when its job has ended: windows' usual length counts.
    seconds = statistics.median(window.seconds for watch in chosen.values() for window in watch.windows)
    slots = _slots(chosen, seconds)
    runs = _runs(chosen, slots, seconds)
    first = next(iter(chosen.values()))
    world = max([watch.begin.world for watch in chosen.values() if watch.begin] + [max(chosen) + 1])
    # The ranks' windows end at different times, so the last slot may have too few of them.
    now = runs[-1] if runs and any(slot.waited_for == runs[-1].rank for slot in slots[-2:]) else None
    return Ranks(
        SCHEMA,
        first.begin.program.partition(".rank")[0] if first.begin else "",
        world,
        tuple(rank for rank in range(world) if rank not in chosen),
        tuple(_row(rank, watch, chosen, seconds) for rank, watch in sorted(chosen.items())),
        now,
        tuple(runs[:-1] if now else runs),
        tuple(slots[-RECENT:]),
    )


def _by_rank(watches: Sequence[WatchRecords]) -> dict[int, WatchRecords]:
    """Return the newest watch of each rank that has a window."""
    result: dict[int, WatchRecords] = {}
    for watch in sorted((w for w in watches if w.windows), key=lambda w: w.windows[-1].at):
        result[watch.begin.rank if watch.begin else 0] = watch
    return dict(sorted(result.items()))


def _waits(window: Window) -> float:
    return min(1.0, window.waiting + window.peers)


def _slots(chosen: dict[int, WatchRecords], seconds: float) -> list[Slot]:
    """Return the times that at least two ranks were watched, each as long as a window."""
    table: dict[int, dict[int, list[Window]]] = defaultdict(lambda: defaultdict(list))
    for rank, watch in chosen.items():
        for window in watch.windows:
            table[int((window.at - window.seconds / 2) // seconds)][rank].append(window)
    slots = []
    for number in sorted(table):
        waits = {rank: statistics.mean(map(_waits, windows)) for rank, windows in table[number].items()}
        row = tuple(None if rank not in waits else round(waits[rank], 4) for rank in chosen)
        slots.append(Slot(number * seconds, row, _waited_for(waits)))
    return slots


def _waited_for(waits: dict[int, float]) -> int | None:
    if len(waits) < 2:
        return None
    least = min(waits, key=lambda rank: waits[rank])
    other_shares = [share for rank, share in waits.items() if rank != least]
    return least if statistics.median(other_shares) - waits[least] >= GAP else None


def _runs(chosen: dict[int, WatchRecords], slots: Sequence[Slot], seconds: float) -> list[Waited]:
    """Return each rank that was waited for over enough slots, one slot without it forgiven."""
    runs: list[tuple[int, list[Slot]]] = []
    for k, slot in enumerate(slots):
        rank = slot.waited_for
        if rank is None:
            continue
        near = [other for other in slots[max(0, k - 2) : k] if runs and other in runs[-1][1]]
        if runs and runs[-1][0] == rank and near:
            runs[-1][1].append(slot)
        else:
            runs.append((rank, [slot]))
    return [_waited(rank, of_run, chosen, seconds) for rank, of_run in runs if len(of_run) >= LASTS]


def _waited(rank: int, slots: Sequence[Slot], chosen: dict[int, WatchRecords], seconds: float) -> Waited:
    since, until = slots[0].at, slots[-1].at + seconds
    column = list(chosen).index(rank)
    own_shares = [share for slot in slots if (share := slot.waits[column]) is not None]
    other_shares = [share for slot in slots for k, share in enumerate(slot.waits) if k != column and share is not None]
    file, line, function, more = _where(rank, chosen, since, until)
    waits = round(statistics.mean(own_shares), 4), round(statistics.median(other_shares), 4)
    return Waited(rank, since, round(until - since, 3), *waits, file, line, function, round(more, 4))


def _where(rank: int, chosen: dict[int, WatchRecords], since: float, until: float) -> tuple[str, int, str, float]:
    """Return the line at which a rank works for more of its time than the others do, and by how much."""
    shares = {r: _working(watch, since, until) for r, watch in chosen.items()}
    other_shares = [share for r, share in shares.items() if r != rank]
    more = {
        key: share - statistics.mean(other.get(key, 0.0) for other in other_shares)
        for key, share in shares[rank].items()
    }
    if not other_shares or not more:
        return "", 0, "", 0.0
    key = max(more, key=lambda key: more[key])
    return (*key, more[key]) if more[key] > 0 else ("", 0, "", 0.0)


def _working(watch: WatchRecords, since: float, until: float) -> dict[tuple[str, int, str], float]:
    """Return the mean share of each line of some time in which a rank's thread doesn't wait for the device or peers."""
    windows = [window for window in watch.windows if since <= window.at - window.seconds / 2 < until]
    shares: dict[tuple[str, int, str], float] = defaultdict(float)
    for window in windows:
        for line in window.lines:
            if line.kind in (HOST, "input"):
                shares[line.file, line.line, line.function] += (line.share - line.waiting) / len(windows)
    return shares


def _row(rank: int, watch: WatchRecords, chosen: dict[int, WatchRecords], seconds: float) -> RankRow:
    windows = watch.windows[-RECENT:]
    newest = max(other.windows[-1].at for other in chosen.values())
    steps = [window.step for window in windows if window.step is not None]
    count = sum(step.count for step in steps)
    last = watch.windows[-1]
    return RankRow(
        rank=rank,
        host=watch.begin.host if watch.begin else "",
        pid=watch.begin.pid if watch.begin else 0,
        path=watch.path,
        step_us=round(sum(step.mean_us * step.count for step in steps) / count, 1) if count else None,
        waiting=round(statistics.mean(window.waiting for window in windows), 4),
        peers=round(statistics.mean(window.peers for window in windows), 4),
        input=round(statistics.mean(window.input for window in windows), 4),
        steps=last.total_steps,
        last_at=last.at,
        silent=watch.end is None and newest - last.at > SILENT * seconds,
    )
