"""Keep one filter of Python's warnings first until it is removed, whatever happens to the others.

A filter is asked before a warning is shown or dropped, with the frame that warns on the stack, and may raise. But
programs put others in front of it (`simplefilter("ignore")`), and `catch_warnings` works on a copy of the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Protocol, SupportsIndex, overload

Item = tuple[Any, ...]
"""Action, message, category, module, line, as in `warnings.filters`."""


class Message(Protocol):
    """Replacement for a filter's message: CPython calls this method, which compiled patterns have too."""

    def match(self, text: str) -> bool:
        """Return whether this filter decides about a warning with this text."""


class Filters(list[Item]):
    """A list whose first item stays the first, also in the copies that `catch_warnings` makes of it."""

    def __init__(self, first: Item, others: Iterable[Item]) -> None:
        super().__init__([first, *(item for item in others if item is not first)])
        self.first: Item | None = first

    def insert(self, at: SupportsIndex, item: Item) -> None:
        super().insert(max(1, at.__index__()) if self.first is not None and at.__index__() >= 0 else at, item)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Item | list[Item]:
        found = super().__getitem__(at)
        return Filters(self.first, found) if isinstance(at, slice) and self.first is not None else found

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value)
        self._keep()

    def clear(self) -> None:
        super().clear()
        self._keep()

    def release(self) -> None:
        """Become an ordinary list, without the first item."""
        first, self.first = self.first, None
        self[:] = [item for item in self if item is not first]

    def _keep(self) -> None:
        if self.first is not None:
            others = [item for item in self if item is not self.first]
            super().__setitem__(slice(None), [self.first, *others])


def put_first(message: Message) -> Callable[[], None]:
    """Call `message.match(text)` with each warning's text before other filters.

    What it says yes to is shown nowhere; what it raises comes up from the line that warns.

    Returns:
        A function that takes it out again and leaves what the program did to the filters meanwhile.
    """
    before: Any = warnings.filters
    ours = Filters(("ignore", message, Warning, None, 0), before)
    warnings.filters = ours
    _forget_shown()

    def take_out() -> None:
        now: Any = warnings.filters
        if isinstance(now, Filters):
            now.release()
        ours.release()
        if now is ours:
            before[:] = ours
            warnings.filters = before

    return take_out


def _forget_shown() -> None:
    """Make Python query the filters again for warnings that it has shown before, in the public way."""
    with warnings.catch_warnings():
        pass
