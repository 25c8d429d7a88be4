"""`--max-memory`: what a command may take, held by the system, so that it ends with a sentence and not killed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class _Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from syncscan.load.memory_check import LEAST

        match = _SIZE.fullmatch(str(value).strip())
        size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
        if not LEAST <= size < 2**62:
            self.fail(f"{value} is not a size of at least 100M, such as 4G.", param, ctx)
        return int(size)


def option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--max-memory` to a command, which is held to it; its value is bytes, or None."""
    return _option(command, "this command", _limit)


def option_of_reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--max-memory` to a command that does more than read a trace; its value is for `limited`."""
    return _option(command, "reading the trace", None)


def option_of_processes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--max-memory` to a command that has others read traces; its value is theirs to keep to."""
    return _option(command, "all processes together, or a cluster's worker for one trace,", None)


def _option(command: Callable[..., Any], help_text: str, callback: Callable[..., Any] | None) -> Callable[..., Any]:
    more = "a trace that needs more is refused.  [default: most of the free memory]"
    return click.option(
        "--max-memory",
        type=_Size(),
        metavar="SIZE",
        callback=callback,
        help=f"Memory that {help_text} may use, such as 4G; {more}",
    )(command)


def _limit(ctx: click.Context, param: click.Parameter, size: int | None) -> int | None:
    """Hold the command to this much until it is over or `lift` is called."""
    ctx.meta[__name__] = held = ctx.with_resource(ExitStack())
    return held.enter_context(limited(size))


def lift(ctx: click.Context) -> None:
    """Take the limit away: what is started from now on, a browser, isn't held to it."""
    ctx.meta[__name__].close()


@contextmanager
def limited(size: int | None) -> Iterator[int | None]:
    """Have the system refuse more than this many bytes meanwhile; None for most of what is free.

    Yields:
        How many bytes that is; None where the system doesn't tell.
    """
    from syncscan.load import memory_check

    most = memory_check.available() if size is None else size
    taken = memory_check.taken()
    if most is None or taken is None:
        yield most
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + max(most, memory_check.LEAST)
    if all(limit == resource.RLIM_INFINITY or wanted < limit for limit in before):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, before[1]))
    try:
        yield most
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
