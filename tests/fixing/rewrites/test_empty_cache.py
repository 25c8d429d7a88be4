"""empty_cache() in every step: a loss of memory to others, so that removing it is unsafe."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.removed_calls import empty_cache
from syncscan.model.fix import Safety
from tests.fixing.example import Rewritten

REWRITE = empty_cache
FIXED = {
    empty_cache.before: empty_cache.after,
    "for step in range(3):\n    x = x * 2\n    if torch.cuda.is_available():\n        torch.cuda.empty_cache()": (
        "for step in range(3):\n    x = x * 2"
    ),
}
KEPT = {
    "after running out of memory": (
        "for step in range(3):\n    try:\n        x = x * 2\n"
        "    except torch.cuda.OutOfMemoryError:\n        torch.cuda.empty_cache()"
    ),
    "alone in its block": "for step in range(3):\n    torch.cuda.empty_cache()",
    "rarely": "for step in range(3):\n    x = x * 2\n    if step % 100 == 0:\n        torch.cuda.empty_cache()",
    "once": "torch.cuda.empty_cache()",
    "on a shared line": "for step in range(3):\n    x = x * 2; torch.cuda.empty_cache()",
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """With the `if` around it."""
    assert programs[body].text == FIXED[body]
    assert empty_cache.safety is Safety.UNSAFE


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]
