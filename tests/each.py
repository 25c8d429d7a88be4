"""One fact about many things is one test that lists every miss: `@each`, which is written as `parametrize` is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(
    names: str | tuple[str, ...], values: Iterable[Any], ids: Iterable[str] | Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body with each of the values, each a subtest: all that fail are named.

    For facts of recordings, rules, ops and names, which are cheap and share nothing that one of them changes: fixtures
    are made once. `pytest.mark.parametrize` is for cases that stand alone, or that one wants to run alone.
    """
    cases = list(values)
    named = list(map(ids, cases) if callable(ids) else ids or map(_id, cases))
    parameters = [names] if isinstance(names, str) else names

    def loop(body: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(body)
        def test(subtests: pytest.Subtests, **fixtures: Any) -> None:
            assert cases
            for name, case in zip(named, cases, strict=True):
                arguments = dict(zip(parameters, case if len(parameters) > 1 else [case], strict=True))
                with subtests.test(name.encode("utf-8", "backslashreplace").decode()):  # xdist sends it as UTF-8
                    body(**arguments, **fixtures)

        signature = inspect.signature(body)
        fixtures = [p for name, p in signature.parameters.items() if name not in parameters]
        of_subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = signature.replace(parameters=[of_subtests, *fixtures])  # type: ignore[attr-defined]
        return test

    return loop


def _id(case: Any) -> str:
    return case if isinstance(case, str) else repr(case)
