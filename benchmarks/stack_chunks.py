"""Show where calls out of a large Python function take long: `python -m benchmarks.stack_chunks`.

CPython from 3.11 on keeps frames in chunks of 16 KB. A function whose frame ends just before its chunk's end allocates
a chunk for each call, and frees it again (https://github.com/python/cpython/issues/142183). Here a function of 1,150
variables calls a small one at each depth of the stack, as the function does that Inductor generates for a large graph.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

CALLS, REPEATS, DEPTHS = 1000, 5, 72
LONG = 5
"""A call that takes so many times as long as usual allocates."""


def with_variables(count: int, header: str, *body: str) -> Callable[..., Any]:
    """Return a function of this header and body, whose frame also has room for so many variables."""
    names = " = ".join([*(f"v{number}" for number in range(count)), "0"])
    scope: dict[str, Any] = {}
    exec("\n    ".join([f"def made{header}:", *body, names]), scope)
    return scope["made"]  # type: ignore[no-any-return]


def call_ns() -> list[float]:
    """Return how long a call takes at each depth of the stack, in ns."""
    small = with_variables(90, "()", "return 0")
    large = with_variables(1150, "(g)", f"for _ in range({CALLS}):", "    g()", "return 0")
    deeper = with_variables(40, "(n, f, g)", "if n:", "    return made(n - 1, f, g)", "return f(g)")
    took = []
    for depth in range(DEPTHS):
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter_ns()
            deeper(depth, large, small)
            times.append((time.perf_counter_ns() - began) / CALLS)
        took.append(statistics.median(times))
    return took


def main() -> None:
    """Print the depths at which a call takes long, and how long."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    took = call_ns()
    usual = statistics.median(took)
    at_the_end = [depth for depth, ns in enumerate(took) if ns > LONG * usual]
    print(f"Python {sys.version.split()[0]}: a call takes {usual:.0f} ns")
    for depth in at_the_end:
        print(f"at depth {depth}: {took[depth]:,.0f} ns, {took[depth] / usual:.0f} times as long")
    print(f"{len(at_the_end)} of {DEPTHS} depths are at a chunk's end")


if __name__ == "__main__":
    main()
