"""Predictions that are copied to the host batch by batch."""

from __future__ import annotations

from syncscan.fixing.rewrites.rarer_reads import predictions
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = predictions
FIXED = {
    (
        "import numpy as np\nparts, rest = [], []\nfor row in x:\n    parts.append(row.exp().cpu().numpy())\n"
        "result = np.concatenate(parts).tolist()"
    ): (
        "import numpy as np\nparts, rest = [], []\nfor row in x:\n    parts.append(row.exp())\n"
        "result = torch.cat(parts).cpu().numpy().tolist()"
    ),
    ("parts: list[torch.Tensor] = []\nfor row in x:\n    parts.append(row.exp().cpu())\nresult = torch.cat(parts)"): (
        "parts: list[torch.Tensor] = []\nfor row in x:\n    parts.append(row.exp())\nresult = torch.cat(parts).cpu()"
    ),
    ("parts = []\nfor row in x:\n    parts.append(row.cpu())\nresult = torch.cat(parts)"): (
        "parts = []\nfor row in x:\n    parts.append(row.clone())\nresult = torch.cat(parts).cpu()"
    ),
    ("parts = []\nfor row in x:\n    parts.append(row.cpu())\nresult = torch.stack(parts).mean()"): (
        "parts = []\nfor row in x:\n    parts.append(row.clone())\nresult = torch.stack(parts).cpu().mean()"
    ),
    ("parts = []\nfor row in x:\n    parts.append(row.detach().cpu())\nresult = torch.cat(parts).numpy()"): (
        "parts = []\nfor row in x:\n    parts.append(row.detach().clone())\nresult = torch.cat(parts).cpu().numpy()"
    ),
    ("parts = []\nfor row in x:\n    parts.append(row.cpu())\n    row += 1\nresult = torch.cat(parts)"): (
        "parts = []\nfor row in x:\n    parts.append(row.clone())\n    row += 1\nresult = torch.cat(parts).cpu()"
    ),
    (
        "parts = []\n"
        "buffer = torch.zeros(6, device=device)\n"
        "for row in x:\n"
        "    buffer.copy_(row)\n"
        "    parts.append(buffer.cpu())\n"
        "result = torch.cat(parts)"
    ): (
        "parts = []\n"
        "buffer = torch.zeros(6, device=device)\n"
        "for row in x:\n"
        "    buffer.copy_(row)\n"
        "    parts.append(buffer.clone())\n"
        "result = torch.cat(parts).cpu()"
    ),
    ("parts = []\nfor row in x:\n    parts.append((row * 2).cpu())\nresult = torch.cat(parts, 0).tolist()"): (
        "parts = []\nfor row in x:\n    parts.append(row * 2)\nresult = torch.cat(parts, 0).cpu().tolist()"
    ),
    (
        "parts = []\n"
        "for k in range(4):\n"
        "    row = x[k] * 2\n"
        "    parts.append(row.cpu())\n"
        "    row.mul_(3)\n"
        "result = torch.cat(parts)"
    ): (
        "parts = []\n"
        "for k in range(4):\n"
        "    row = x[k] * 2\n"
        "    parts.append(row.clone())\n"
        "    row.mul_(3)\n"
        "result = torch.cat(parts).cpu()"
    ),
    ("parts = []\nfor row in x:\n    parts.append(row.exp().cpu())\nresult = torch.cat(parts)"): (
        "parts = []\nfor row in x:\n    parts.append(row.exp())\nresult = torch.cat(parts).cpu()"
    ),
}
KEPT = {
    program: program
    for program in (
        ("parts = []\nfor row in x:\n    parts.append(row.cpu())\nresult = torch.cat(parts) + len(parts)"),
        ("parts = []\nfor row in x:\n    parts.append(row.cpu().numpy())\nresult = parts"),
        ("parts = []\nfor row in x:\n    parts.append(row.cpu())\n    result = torch.cat(parts)"),
        ("parts = [torch.zeros(6)]\nfor row in x:\n    parts.append(row.cpu())\nresult = torch.cat(parts)"),
        (
            "parts = []\n"
            "for row in x:\n"
            "    parts.append(row.cpu())\n"
            "parts.append(torch.zeros(6))\n"
            "result = torch.cat(parts)"
        ),
        (
            "def collect():\n"
            "    parts = []\n"
            "    for row in x:\n"
            "        parts.append(row.cpu())\n"
            "    return parts\n"
            "result = torch.cat(collect())"
        ),
    )
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("program", KEPT)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes."""
    assert programs[program].text == program
