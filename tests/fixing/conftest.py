"""One process that runs the programs of all tests of fixes: it imports torch once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncscan.fixing.runs import Runs


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    """Programs that run dry."""
    pytest.importorskip("torch")
    with Runs() as started:
        yield started
