"""Put together what a guard knows of copies that may still run: who copies, who waits, who uses their memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from syncscan.capture.entry_points import Function, replaced
from syncscan.dryrun.shared_arrays import TAKING, taking
from syncscan.guarding import blocking_copies
from syncscan.guarding.awaiting import Awaiting
from syncscan.guarding.copy_order import CopyOrder, Stream
from syncscan.guarding.debts import Debts, Owed, Tell

torch: Any = importlib.import_module("torch")
_clocks = CopyOrder()
"""One for all guards of the process in turn: what an earlier one has noted at a memory has an earlier number."""


def _taking(original: Function) -> Function:
    return taking(original, Owed)


class Owing:
    """The copies of a process that may still run.

    Args:
        vendor: torch's module of the device: "cuda" or "xpu".
        tell: called with each race.
    """

    def __init__(self, vendor: str, tell: Tell) -> None:
        current = getattr(torch._C, f"_{vendor}_getCurrentStream", None)
        here = getattr(torch._C, f"_{vendor}_getDevice", None)
        self._of_device: Callable[[int], Stream] = current or (lambda device: (0, device, 0))
        self._device: Callable[[], int] = here or (lambda: 0)
        self._clocks = _clocks
        _clocks.host_waits_for_all()
        self._debts = Debts(self._clocks, self._of_device, tell)
        self._awaiting = Awaiting(self._clocks, self._current, self._debts.settle)

    def watch(self, blocked: Callable[[], None]) -> Callable[[], None]:
        """Begin; return a function that puts everything back.

        Args:
            blocked: is called after each non-blocking copy that blocked its thread.
        """
        undo = ExitStack()
        undo.callback(self._debts.begin())
        undo.callback(blocking_copies.watch(blocked, self._debts.copied, self._debts.release, (Owed,)))
        undo.callback(self._awaiting.watch())
        undo.callback(
            replaced(
                [
                    ("torch.cuda.CUDAGraph", "capture_begin", self._capturing(1)),
                    ("torch.cuda.CUDAGraph", "capture_end", self._capturing(-1)),
                    *(("numpy", name, _taking) for name in TAKING),
                ]
            )
        )
        return undo.close

    def host_waits(self, kind: str) -> None:
        """Note a sync of the host.

        Args:
            kind: as `seen.WAITS` has it. What waits for a stream or an event by its name is known more exactly.
        """
        if self._awaiting.exactly.inside or kind == "event":
            return
        if kind in ("device", "call"):
            self._clocks.host_waits_for_all()
        else:
            self._clocks.host_waits(self._clocks.mark(self._current()))
        self._debts.settle()

    def _current(self) -> Stream:
        return self._of_device(self._device())

    def _capturing(self, change: int) -> Callable[[Function], Function]:
        def wrap(original: Function) -> Function:
            def changed(*arguments: Any, **keywords: Any) -> Any:
                self._debts.capturing += change
                return original(*arguments, **keywords)

            return changed

        return wrap
