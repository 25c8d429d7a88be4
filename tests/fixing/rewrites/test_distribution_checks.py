"""Argument checks of distributions."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.settings import distribution_checks
from tests.fixing.example import Rewritten

REWRITE = distribution_checks
FIXED = {
    ("from torch.distributions import Normal\nfor k in range(4):\n    result = Normal(x, 1.0).log_prob(x).sum()"): (
        "from torch.distributions import Normal\n"
        "for k in range(4):\n"
        "    result = Normal(x, 1.0, validate_args=False).log_prob(x).sum()"
    ),
    (
        "from torch.distributions import Categorical\n"
        "for k in range(4):\n"
        "    result = Categorical(logits=x).entropy().sum()"
    ): (
        "from torch.distributions import Categorical\n"
        "for k in range(4):\n"
        "    result = Categorical(logits=x, validate_args=False).entropy().sum()"
    ),
    (
        "import torch.distributions as D\n"
        "for k in range(4):\n"
        "    result = D.Normal(\n"
        "        x,\n"
        "        1.0,\n"
        "    ).log_prob(x).sum()"
    ): (
        "import torch.distributions as D\n"
        "for k in range(4):\n"
        "    result = D.Normal(\n"
        "        x,\n"
        "        1.0,\n        validate_args=False,\n"
        "    ).log_prob(x).sum()"
    ),
    (
        "from torch.distributions import Normal\n"
        "def make(t):\n"
        "    return Normal(t, 1.0)\n"
        "for k in range(4):\n"
        "    result = make(x).log_prob(x).sum()"
    ): (
        "from torch.distributions import Normal\n"
        "def make(t):\n"
        "    return Normal(t, 1.0, validate_args=False)\n"
        "for k in range(4):\n"
        "    result = make(x).log_prob(x).sum()"
    ),
}
KEPT = {
    program: program
    for program in (
        (
            "from torch.distributions import Categorical\n"
            "for k in range(4):\n"
            "    result = Categorical(logits=x, validate_args=True).entropy().sum()"
        ),
        ("from torch.distributions import Categorical\nCategorical(logits=x)"),
        (
            "from torch.distributions import Categorical\n"
            'options = {"logits": x}\n'
            "for k in range(4):\n"
            "    result = Categorical(**options).entropy().sum()"
        ),
        (
            "from torch.distributions import Normal\n"
            "for k in range(4):\n"
            "    try:\n"
            '        result = Normal(x - float("nan"), 1.0)\n'
            "    except ValueError:\n"
            "        result = k"
        ),
        ("from torch.distributions import Normal\nresult = Normal(x, 1.0).log_prob(x)"),
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
