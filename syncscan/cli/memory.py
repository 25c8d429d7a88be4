"""`--max-memory`: what a command may take, held by the system, so that it ends with a sentence and not killed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)i?B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
LEAST = 100_000_000
"""An interpreter with numpy takes about as much by itself."""


class _Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _SIZE.fullmatch(str(value).strip())
        size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
        if not LEAST <= size < 2**62:
            self.fail(f"{value} is no size from 100M on, such as 4G.", param, ctx)
        return int(size)


def option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--max-memory` to a command; its value is bytes, or None where the system doesn't tell."""
    return click.option(
        "--max-memory",
        type=_Size(),
        metavar="SIZE",
        callback=_limit,
        help="Memory that this may take, e.g. 4G; a trace that needs more is refused. [default: most of what is free]",
    )(command)


def _limit(ctx: click.Context, param: click.Parameter, size: int | None) -> int | None:
    """Have the system refuse more than this much, until the command is over or `lift` is called."""
    from syncscan.load import memory

    most = memory.available() if size is None else size
    taken = memory.taken()
    if most is None or taken is None:
        return most
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + max(most, LEAST)
    if all(limit == resource.RLIM_INFINITY or wanted < limit for limit in before):
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, before[1]))
        ctx.meta[__name__] = before
        ctx.call_on_close(lambda: lift(ctx))
    return most


def lift(ctx: click.Context) -> None:
    """Take the limit away: what is started from now on, a browser, isn't held to it."""
    import resource

    if __name__ in ctx.meta:
        resource.setrlimit(resource.RLIMIT_DATA, ctx.meta.pop(__name__))
