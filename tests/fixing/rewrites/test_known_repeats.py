"""Repetitions whose size the host knows, and those whose size only looks known."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import known_repeats
from tests.fixing.example import Rewritten

REWRITE = known_repeats
FIXED = {
    ("counts = torch.full((4,), 2, device=device)\nresult = x.repeat_interleave(counts, 0)"): (
        "counts = torch.full((4,), 2, device=device)\nresult = x.repeat_interleave(counts, 0, output_size=8)"
    ),
    ("counts = torch.tensor([1, 2, 0, 3], device=device)\nresult = x.repeat_interleave(counts, dim=0)"): (
        "counts = torch.tensor([1, 2, 0, 3], device=device)\nresult = x.repeat_interleave(counts, dim=0, output_size=6)"
    ),
    (
        "durations = [1, 2, 0, 3]\n"
        "counts = torch.tensor(durations, device=device)\n"
        "result = torch.repeat_interleave(x, counts, dim=0)"
    ): (
        "durations = [1, 2, 0, 3]\n"
        "counts = torch.tensor(durations, device=device)\n"
        "result = torch.repeat_interleave(x, counts, dim=0, output_size=sum(durations))"
    ),
    (
        "def expand(h, repeats, durations):\n"
        "    return torch.repeat_interleave(h, repeats, dim=0)\n"
        "for k in range(3):\n"
        "    durations = [1, 2, k, 3]\n"
        "    repeats = torch.tensor(durations, device=device)\n"
        "    result = expand(x, repeats, durations)"
    ): (
        "def expand(h, repeats, durations):\n"
        "    return torch.repeat_interleave(h, repeats, dim=0, output_size=sum(durations))\n"
        "for k in range(3):\n"
        "    durations = [1, 2, k, 3]\n"
        "    repeats = torch.tensor(durations, device=device)\n"
        "    result = expand(x, repeats, durations)"
    ),
}
KEPT = {
    program: program
    for program in (
        (
            "durations = [1, 2, 0, 3]\n"
            "counts = torch.tensor(durations, device=device)\n"
            "durations.append(4)\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        (
            "durations = [1, 2, 0, 3]\n"
            "counts = torch.tensor(durations, device=device)\n"
            "durations = [1]\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        (
            "durations = [1, 2, 0, 3]\n"
            "counts = torch.tensor(durations, device=device)\n"
            "counts += 1\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        (
            "durations = [1, 2, 0, 3]\n"
            "counts = torch.tensor(durations, device=device)\n"
            "counts = counts + 1\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        (
            "durations = [1, 2, 0, 3]\n"
            "counts = torch.tensor(durations, device=device)\n"
            "alias = counts\n"
            "alias += 1\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        (
            "durations = [1, 2, 0, 3]\n"
            "other = durations\n"
            "counts = torch.tensor(durations, device=device)\n"
            "other.append(5)\n"
            "result = torch.repeat_interleave(x, counts, dim=0)"
        ),
        ("counts = (x[:, 0] * 3).long()\nresult = x.repeat_interleave(counts, 0)"),
        ("counts = torch.tensor([2], device=device)\nresult = x.repeat_interleave(counts, 0)"),
        ("counts = torch.full((1,), 2, device=device)\nresult = x.repeat_interleave(counts, 0)"),
        ("durations = [2]\ncounts = torch.tensor(durations, device=device)\nresult = x.repeat_interleave(counts, 0)"),
        "result = x.repeat_interleave(2, 0)",
        ("counts = torch.tensor([1, 2, 0, 3], device=device)\nresult = torch.repeat_interleave(counts)"),
        (
            "durations = [True, False, True, True]\n"
            "counts = torch.tensor(durations, device=device).long()\n"
            "result = x.repeat_interleave(counts, 0)"
        ),
        (
            "def expand(h, repeats, durations):\n"
            "    durations = durations[:-1]\n"
            "    return torch.repeat_interleave(h, repeats, dim=0)\n"
            "for k in range(3):\n"
            "    durations = [1, 2, k, 3]\n"
            "    repeats = torch.tensor(durations, device=device)\n"
            "    result = expand(x, repeats, durations)"
        ),
        (
            "def expand(h, repeats, durations):\n"
            "    return torch.repeat_interleave(h, repeats, dim=0)\n"
            "for k in range(3):\n"
            "    durations = [1, 2, k, 3]\n"
            "    repeats = torch.tensor(durations, device=device)\n"
            "    result = expand(x, repeats, durations)\n"
            "result = expand(x, (x[:, 0] * 3).long(), [1])"
        ),
    )
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("program", KEPT)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes."""
    assert programs[program].text == program
