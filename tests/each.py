"""One fact about many things is one test that lists every miss: `@each`, which is written as `parametrize` is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], str] | None = None,
    slow: Callable[[Any], bool] = lambda case: False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body with each of the values, each a subtest: all that fail are named.

    For facts of recordings, rules, ops and names, which are cheap and share nothing that one of them changes: fixtures
    are made once. `pytest.mark.parametrize` is for cases that stand alone, or that one wants to run alone. Cases that
    are `slow` are a test of their own, marked so.
    """
    cases = list(values)
    named = list(zip(map(ids, cases) if callable(ids) else ids or map(_id, cases), cases, strict=True))
    parameters = [names] if isinstance(names, str) else names
    parts = {part: [pair for pair in named if slow(pair[1]) == (part == "slow")] for part in ("quick", "slow")}
    assert parts["quick"]

    def loop(body: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(body)
        def test(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, case in parts[fixtures.pop("speed") if parts["slow"] else "quick"]:
                arguments = dict(zip(parameters, case if len(parameters) > 1 else [case], strict=True))
                with subtests.test(name.encode("utf-8", "backslashreplace").decode()):  # xdist sends it as UTF-8
                    body(**arguments, **fixtures)

        signature = inspect.signature(body)
        fixtures = [p for name, p in signature.parameters.items() if name not in parameters]
        of_loop = ["subtests", "speed"] if parts["slow"] else ["subtests"]
        first = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in of_loop]
        test.__signature__ = signature.replace(parameters=[*first, *fixtures])  # type: ignore[attr-defined]
        both = pytest.mark.parametrize("speed", ["quick", pytest.param("slow", marks=pytest.mark.slow)])
        return both(test) if parts["slow"] else test

    return loop


def _id(case: Any) -> str:
    return case if isinstance(case, str) else repr(case)
