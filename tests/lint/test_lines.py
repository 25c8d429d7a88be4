"""Lines that wait in a dry run are named from the source, in training programs of the shapes that public ones have."""

from __future__ import annotations

import pytest

from benchmarks.lint_lines import PROGRAMS, named_lines

pytestmark = pytest.mark.usefixtures("warm")


@pytest.mark.parametrize(("program", "waiting"), [("detection", 7), ("policy", 12)])
def test_all_lines_that_wait_are_named_and_no_others(program: str, waiting: int) -> None:
    """A detector with transforms of its own; an agent with its rollout."""
    lines = named_lines(PROGRAMS / f"{program}.py")
    assert (len(lines.waiting), lines.waiting - lines.named, lines.wrong) == (waiting, set(), set())
