"""Copies to the device: which may overlap, and which sources change meanwhile."""

from __future__ import annotations

from syncscan.fixing.rewrites.device_copies import without_waiting
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = without_waiting
FIXED = {
    (
        "import numpy as np\n"
        "for k in range(4):\n"
        "    array = np.ones(3) if k else np.zeros((), dtype=int)\n"
        "    result = torch.tensor(array, device=device)"
    ): (
        "import numpy as np\n"
        "for k in range(4):\n"
        "    array = np.ones(3) if k else np.zeros((), dtype=int)\n"
        "    result = torch.tensor(array).to(device, non_blocking=True)"
    ),
    "for k in range(4):\n    result = torch.zeros(3, k, dtype=torch.float64).to(x.device)": (
        "for k in range(4):\n    result = torch.zeros(3, k, dtype=torch.float64, device=x.device)"
    ),
    "for k in range(4):\n    result = torch.arange(k + 1).cuda()": (
        'for k in range(4):\n    result = torch.arange(k + 1, device="cuda")'
    ),
    "for k in range(4):\n    result = torch.tensor(0.).to(device)\n    result += k": (
        "for k in range(4):\n    result = torch.tensor(0.).to(device, non_blocking=True)\n    result += k"
    ),
    "import torch as th\nfor k in range(4):\n    result = th.tensor(k, dtype=th.float32, device=device)": (
        "import torch as th\nfor k in range(4):\n"
        "    result = th.tensor(k, dtype=th.float32).to(device, non_blocking=True)"
    ),
    (
        "for k in range(4):\n"
        "    first, second = torch.rand(3), torch.rand(3)\n"
        "    first, second = first.contiguous().to(device), second.contiguous().to(device)\n"
        "    result = first + second"
    ): (
        "for k in range(4):\n"
        "    first, second = torch.rand(3), torch.rand(3)\n"
        "    first = first.contiguous().to(device, non_blocking=True)\n"
        "    second = second.contiguous().to(device, non_blocking=True)\n"
        "    result = first + second"
    ),
    "for k in range(4):\n    result = torch.as_tensor((0, k), dtype=torch.float32, device=device)": (
        "for k in range(4):\n    result = torch.as_tensor((0, k), dtype=torch.float32).to(device, non_blocking=True)"
    ),
    "import numpy as np\nfor k in range(4):\n    result = torch.tensor(np.ones(3), device=device)": (
        "import numpy as np\nfor k in range(4):\n    result = torch.tensor(np.ones(3)).to(device, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = (torch.arange(4) + k).remainder(3).to(device)"): (
        "for k in range(4):\n    result = (torch.arange(4) + k).remainder(3).to(device, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = x * (torch.rand(4, 6) > 0.5).to(x)"): (
        "for k in range(4):\n    result = x * (torch.rand(4, 6) > 0.5).to(x, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = torch.tensor([0, k], device=device)"): (
        "for k in range(4):\n    result = torch.tensor([0, k]).to(device, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = x[:, [0, k]]"): (
        "for k in range(4):\n    result = x[:, torch.tensor([0, k]).to(x.device, non_blocking=True)]"
    ),
    ("for k in range(4):\n    batch = torch.rand(3)\n    sent = batch.to(device)\n    result = sent.sum()"): (
        "for k in range(4):\n"
        "    batch = torch.rand(3)\n"
        "    sent = batch.to(device, non_blocking=True)\n"
        "    result = sent.sum()"
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
        "result = 0\n"
        "for a, b in loader:\n"
        "    a, b = a.to(device), b.to(device)\n"
        "    result = result + a.sum() + b.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3,\n"
        "                    pin_memory=torch.cuda.is_available())\n"
        "result = 0\n"
        "for a, b in loader:\n"
        "    a, b = a.to(device, non_blocking=True), b.to(device, non_blocking=True)\n"
        "    result = result + a.sum() + b.sum()"
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3, pin_memory=False)\n"
        "result = 0\n"
        "for a, b in loader:\n"
        "    a, b = a.to(device), b.to(device)\n"
        "    result = result + a.sum() + b.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3, pin_memory=False)\n"
        "result = 0\n"
        "for a, b in loader:\n"
        "    a, b = a.to(device, non_blocking=True), b.to(device, non_blocking=True)\n"
        "    result = result + a.sum() + b.sum()"
    ),
    ("for k in range(4):\n    result = torch.tensor(k, device=device)"): (
        "for k in range(4):\n    result = torch.tensor(k).to(device, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = torch.tensor([0.5, k], device=device, dtype=torch.float64)"): (
        "for k in range(4):\n    result = torch.tensor([0.5, k], dtype=torch.float64).to(device, non_blocking=True)"
    ),
    ("for k in range(4):\n    result = torch.rand(3).cuda()"): (
        "for k in range(4):\n    result = torch.rand(3).cuda(non_blocking=True)"
    ),
    ("for k in range(4):\n    result = torch.rand(3).to(device, torch.float16)"): (
        "for k in range(4):\n    result = torch.rand(3).to(device, torch.float16, non_blocking=True)"
    ),
    (
        "def rows():\n"
        "    buffer = torch.zeros(3)\n"
        "    for k in range(4):\n"
        "        buffer += 1\n"
        "        yield buffer\n"
        "result = 0\n"
        "for row in rows():\n"
        "    result = result + row.to(device)"
    ): (
        "def rows():\n"
        "    buffer = torch.zeros(3)\n"
        "    for k in range(4):\n"
        "        buffer += 1\n"
        "        yield buffer\n"
        "result = 0\n"
        "for row in rows():\n"
        "    result = result + row.to(device, non_blocking=True)"
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3)), batch_size=3, pin_memory=True)\n"
        "result = 0\n"
        "for (a,) in loader:\n"
        "    sent = a.to(device)\n"
        "    result = result + sent.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3)), batch_size=3, pin_memory=True)\n"
        "result = 0\n"
        "for (a,) in loader:\n"
        "    sent = a.to(device, non_blocking=True)\n"
        "    result = result + sent.sum()"
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3)), batch_size=3)\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    sent = batch[0].to(device)\n"
        "    result = result + sent.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3)), batch_size=3,\n"
        "                    pin_memory=torch.cuda.is_available())\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    sent = batch[0].to(device, non_blocking=True)\n"
        "    result = result + sent.sum()"
    ),
    (
        "from torch.utils.data import DataLoader\n"
        'rows = [{"a": torch.rand(3), "b": torch.rand(())} for _ in range(12)]\n'
        "loader = DataLoader(rows, batch_size=3)\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    batch = {k: v.to(device) for k, v in batch.items()}\n"
        '    result = result + batch["a"].sum() + batch["b"].sum()'
    ): (
        "from torch.utils.data import DataLoader\n"
        'rows = [{"a": torch.rand(3), "b": torch.rand(())} for _ in range(12)]\n'
        "loader = DataLoader(rows, batch_size=3, pin_memory=torch.cuda.is_available())\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}\n"
        '    result = result + batch["a"].sum() + batch["b"].sum()'
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    a, b = [t.to(device) for t in batch]\n"
        "    result = result + a.sum() + b.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3,\n"
        "                    pin_memory=torch.cuda.is_available())\n"
        "result = 0\n"
        "for batch in loader:\n"
        "    a, b = [t.to(device, non_blocking=True) for t in batch]\n"
        "    result = result + a.sum() + b.sum()"
    ),
    (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
        "result, held = 0, []\n"
        "for batch in loader:\n"
        "    a, b = (t.to(device) for t in batch)\n"
        "    held.append(batch)\n"
        "    result = result + a.sum() + b.sum()"
    ): (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
        "result, held = 0, []\n"
        "for batch in loader:\n"
        "    a, b = (t.to(device, non_blocking=True) for t in batch)\n"
        "    held.append(batch)\n"
        "    result = result + a.sum() + b.sum()"
    ),
}
KEPT = {
    program: program
    for program in (
        (
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "loader = DataLoader(TensorDataset(torch.rand(12, 3)), batch_size=3)\n"
            "result = 0\n"
            "for (a,) in loader:\n"
            "    c = a\n"
            "    sent = a.to(device)\n"
            "    c += 1\n"
            "    result = result + sent.sum()"
        ),
        (
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
            "result = 0\n"
            "for batch in loader:\n"
            "    first = batch[0]\n"
            "    a, b = [t.to(device) for t in batch]\n"
            "    first.mul_(2)\n"
            "    result = result + a.sum() + b.sum()"
        ),
        (
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
            "result = 0\n"
            "for batch in loader:\n"
            "    a, b = [t.to(device) for t in batch]\n"
            "    batch[0].mul_(2)\n"
            "    result = result + a.sum() + b.sum()"
        ),
        (
            "for k in range(4):\n"
            "    batch = torch.full((3,), float(k))\n"
            "    sent = batch.to(device)\n"
            "    batch += 1\n"
            "    result = sent.sum()"
        ),
        (
            "buffer = torch.zeros(3)\n"
            "result = []\n"
            "for k in range(4):\n"
            "    buffer.fill_(k)\n"
            "    result.append(buffer.to(device).sum())"
        ),
        (
            "buffer = torch.zeros(3).pin_memory()\n"
            "result = []\n"
            "for k in range(4):\n"
            "    sent = buffer.to(device)\n"
            "    buffer.copy_(torch.rand(3))\n"
            "    result.append(sent.sum())"
        ),
        (
            "buffer = torch.zeros(3).pin_memory()\n"
            "alias = buffer\n"
            "result = []\n"
            "for k in range(4):\n"
            "    sent = buffer.to(device)\n"
            "    alias += 1\n"
            "    result.append(sent.sum())"
        ),
        (
            "buffer = torch.zeros(3).pin_memory()\n"
            "view = buffer.numpy()\n"
            "result = []\n"
            "for k in range(4):\n"
            "    sent = buffer.to(device)\n"
            "    view[:] = k\n"
            "    result.append(sent.sum())"
        ),
        (
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "loader = DataLoader(TensorDataset(torch.rand(12, 3), torch.rand(12)), batch_size=3)\n"
            "result = 0\n"
            "for a, b in loader:\n"
            "    sent = a.to(device)\n"
            "    a.mul_(2)\n"
            "    result = result + sent.sum()"
        ),
        (
            "from torch.utils.data import DataLoader, TensorDataset\n"
            "loader = DataLoader(TensorDataset(torch.rand(12, 3, device=device)), batch_size=3)\n"
            "result = 0\n"
            "for (a,) in loader:\n"
            "    result = result + a.to(device).sum()"
        ),
        ("for k in range(4):\n    result = torch.tensor([0.5, k], device=device, requires_grad=True)"),
        ("import numpy as np\nfor k in range(4):\n    result = torch.as_tensor(np.ones(3), device=device)"),
        ("for k in range(4):\n    result = torch.tensor([x[0, 0], 0.5], device=device)"),
        ("for k in range(4):\n    result = torch.nn.Linear(2, 2).to(device)"),
        (
            "class Batch:\n"
            "    def __init__(self):\n"
            "        self.data = torch.zeros(3)\n"
            "batch = Batch()\n"
            "result = 0\n"
            "for k in range(4):\n"
            "    result = result + batch.data.to(device)\n"
            "    batch.data += 1"
        ),
        ("for k in range(4):\n    result = x[[0, 1], rows]"),
        ("for k in range(4):\n    result = torch.asarray([0, k], device=device)"),
        "result = torch.tensor([0, 2], device=device)",
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
