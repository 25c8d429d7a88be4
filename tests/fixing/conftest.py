"""One process that runs the programs of all tests of fixes: it imports torch once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncscan.fixing.runs import Runs


@pytest.fixture(scope="session")
def runs(warm_python: str) -> Iterator[Runs]:
    """Programs that run dry."""
    with pytest.MonkeyPatch.context() as changes, Runs() as started:
        changes.setattr("syncscan.fixing.runs.sys.executable", warm_python)
        started._server = started._start()
        changes.undo()
        yield started
