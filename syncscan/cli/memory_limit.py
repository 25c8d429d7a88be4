"""`--max-memory`: what a command may take, held by the system, so that it ends with a sentence and not killed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?", re.IGNORECASE)
_STACK, _SIZE_HELD = f"{__name__}.stack", f"{__name__}.size"
"""Names in a context of what holds a command to a limit, and of the limit."""
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


option = click.option(
    "--max-memory",
    type=_Size(),
    metavar="SIZE",
    help="Memory that reading traces may use, such as 4G; a trace that needs more is refused.  [default: most of the "
    "free memory]",
)
"""An option of the group: it stands before a command's name."""


def size() -> int | None:
    """Return the bytes that a command is held to, or that the user allows; None for most of what is free."""
    context = click.get_current_context()
    allowed: int | None = context.meta.get(_SIZE_HELD, context.find_root().params.get("max_memory"))
    return allowed


def held(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hold a command to `--max-memory` until it is over or `lift` is called."""

    @functools.wraps(command)
    def within(**arguments: Any) -> Any:
        context = click.get_current_context()
        context.meta[_STACK] = stack = context.with_resource(ExitStack())
        context.meta[_SIZE_HELD] = stack.enter_context(limited(size()))
        return command(**arguments)

    return within


def lift(ctx: click.Context) -> None:
    """Take the limit away: what is started from now on, a browser, isn't held to it."""
    ctx.meta[_STACK].close()


@contextmanager
def limited(size: int | None) -> Iterator[int | None]:
    """Have the system refuse more than this many bytes meanwhile; None for most of what is free.

    Yields how many bytes that is; None where the system doesn't tell.
    """
    from syncscan.load import memory_check

    most = memory_check.available() if size is None else size
    if most is None or memory_check.taken() is None:
        yield most
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    memory_check.hold_to(most)
    try:
        yield most
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
