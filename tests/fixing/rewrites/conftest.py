"""The programs of one rewrite's test file, run together before and after it."""

from __future__ import annotations

import pytest

from syncscan.fixing.runs import Runs
from tests.fixing.example import Rewritten, rewrite


@pytest.fixture(scope="module")
def programs(
    runs: Runs, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Rewritten]:
    """Each program of `FIXED` by its text and each of `KEPT` by its name, as `REWRITE` leaves it; `END` follows it."""
    module = request.module
    bodies = {**{body: body for body in module.FIXED}, **module.KEPT}
    end = getattr(module, "END", "")
    return rewrite(runs, tmp_path_factory.mktemp("programs"), module.REWRITE, {k: b + end for k, b in bodies.items()})
