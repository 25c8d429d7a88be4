"""Mark blocks of a program in which syncs are intended, and find the reasons that apply to a sync.

A library marks its own blocks whether or not anybody guards them, so this imports nothing and costs next to nothing.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from types import TracebackType


class _Open(threading.local):
    """Open blocks of each thread, outermost first."""

    def __init__(self) -> None:
        self.blocks: list[allow] = []
        _everyone[threading.get_ident()] = self.blocks


_everyone: dict[int, list[allow]] = {}
"""Open blocks by thread number, for queries about another thread; the latest owner of a number counts."""


class allow(ContextDecorator):
    """Allow the syncs of a block: `with syncscan.allow("the sampler reads its choice"):`, or as a decorator.

    It holds for the thread that runs the block, costs about half a microsecond, and does nothing where no guard
    is armed. In a function under `torch.compile` it is compiled away, and holds where the graph breaks inside of it.

    Args:
        reason: why the host may wait here; counts and exports name it.
        first_only: allow, for each line inside, only the syncs of the first pass that makes any, as of a cache that is
            filled once; those of later passes count.

    Raises:
        UsageError: no reason was given.
    """

    def __init__(self, reason: str, first_only: bool = False) -> None:
        if not reason:
            from syncscan.errors import UsageError

            raise UsageError('A block needs a reason: syncscan.allow("why the host may wait here").')
        self.reason = reason
        self.first_only = first_only

    # Nothing else may stand in these two: dynamo traces them, and any call that it doesn't know breaks the graph.
    def __enter__(self) -> allow:
        _open.blocks.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _open.blocks.pop()

    def _recreate_cm(self) -> allow:
        """Return a new block for each call of a decorated function: each call is a pass of its own."""
        return allow(self.reason, self.first_only)


_open = _Open()


class FirstPasses:
    """Remembers, for blocks with `first_only`, which pass made the syncs of a line first."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], allow] = {}

    def reason(self, thread: int, place: str) -> str | None:
        """Return the reason of the innermost block that allows a sync; None without one."""
        for block in reversed(_everyone.get(thread, ())):
            if not block.first_only or self._first.setdefault((block.reason, place), block) is block:
                return block.reason
        return None
