"""synchronize() in every step, timed or not."""

from __future__ import annotations

from syncscan.fixing.rewrites.removed_calls import needless_sync
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = needless_sync
FIXED = {
    ("for step in range(4):\n    x = x * 2\n    torch.cuda.synchronize()"): ("for step in range(4):\n    x = x * 2"),
    ('for step in range(4):\n    x = x * 2\n    torch.cuda.synchronize() if device == "cuda" else None'): (
        "for step in range(4):\n    x = x * 2"
    ),
    ("for step in range(4):\n    x = x * 2\n    if torch.cuda.is_available():\n        torch.cuda.synchronize()"): (
        "for step in range(4):\n    x = x * 2"
    ),
    (
        "import logging\n"
        "for step in range(4):\n"
        "    x = x * 2\n"
        "    torch.cuda.synchronize()\n"
        '    logging.info("step %s done", step)'
    ): ('import logging\nfor step in range(4):\n    x = x * 2\n    logging.info("step %s done", step)'),
    ('for step in range(4):\n    x = x * 2\n    torch.cuda.synchronize()\n    print(end="")'): (
        'for step in range(4):\n    x = x * 2\n    print(end="")'
    ),
    ("for step in range(4):\n    x = x * 2\n    torch.cuda.synchronize(device)"): (
        "for step in range(4):\n    x = x * 2"
    ),
    ("import subprocess\nfor step in range(4):\n    x = x * 2\n    torch.cuda.synchronize()\n    y = y + 1"): (
        "import subprocess\nfor step in range(4):\n    x = x * 2\n    y = y + 1"
    ),
    (
        "tqdm = lambda x, **k: x\n"
        "for step in tqdm(range(4), disable=True):\n"
        "    x = x * 2\n"
        "    torch.cuda.synchronize()"
    ): ("tqdm = lambda x, **k: x\nfor step in tqdm(range(4), disable=True):\n    x = x * 2"),
    (
        "import time\n"
        "def prepare(t):\n"
        "    t = t / t.max()\n"
        "    torch.cuda.synchronize()\n"
        "    return t\n"
        "for k in range(4):\n"
        "    x = prepare(x)\n"
        "    y = y + 1\n"
        "    begin = time.time()\n"
        "    y = y + x\n"
        "    y.sum().item()\n"
        "    took = time.time() - begin"
    ): (
        "import time\n"
        "def prepare(t):\n"
        "    t = t / t.max()\n"
        "    return t\n"
        "for k in range(4):\n"
        "    x = prepare(x)\n"
        "    y = y + 1\n"
        "    begin = time.time()\n"
        "    y = y + x\n"
        "    y.sum().item()\n"
        "    took = time.time() - begin"
    ),
    ("for step in range(3):\n    x = x * 2\n    torch.cuda.synchronize()"): ("for step in range(3):\n    x = x * 2"),
    (
        "import time\n"
        "def timed(function):\n"
        "    begin = time.time()\n"
        "    function()\n"
        "    return time.time() - begin\n"
        "for step in range(4):\n"
        "    x = x * 2\n"
        "    torch.cuda.synchronize()\n"
        "    y = y + 1\n"
        "y = y * 2\n"
        "took = timed(lambda: y.sum().item())"
    ): (
        "import time\n"
        "def timed(function):\n"
        "    begin = time.time()\n"
        "    function()\n"
        "    return time.time() - begin\n"
        "for step in range(4):\n"
        "    x = x * 2\n"
        "    y = y + 1\n"
        "y = y * 2\n"
        "took = timed(lambda: y.sum().item())"
    ),
}
KEPT = {
    program: program
    for program in (
        (
            "def run(copies):\n"
            "    for step in range(4):\n"
            "        for copy in copies:\n"
            "            copy(step)\n"
            "        y = x * 2\n"
            "        torch.cuda.synchronize()\n"
            "run([])"
        ),
        (
            "import time\n"
            "for step in range(4):\n"
            "    start = time.perf_counter()\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    took = time.perf_counter() - start"
        ),
        (
            "import time\n"
            "start = time.time()\n"
            "for step in range(4):\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "took = time.time() - start"
        ),
        (
            "import time\n"
            "def now():\n"
            "    return time.time()\n"
            "begin = now()\n"
            "y = y + 1\n"
            "for step in range(4):\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "y = y * 2\n"
            "took = now() - begin"
        ),
        (
            "import time\n"
            "def finish():\n"
            "    torch.cuda.synchronize()\n"
            "for step in range(4):\n"
            "    start = time.time()\n"
            "    x = x * 2\n"
            "    finish()\n"
            "    took = time.time() - start"
        ),
        (
            "import time\n"
            "class Timer:\n"
            "    def __enter__(self):\n"
            "        torch.cuda.synchronize()\n"
            "        self.start = time.time()\n"
            "    def __exit__(self, *args):\n"
            "        torch.cuda.synchronize()\n"
            "        self.took = time.time() - self.start\n"
            "for step in range(4):\n"
            "    with Timer():\n"
            "        x = x * 2"
        ),
        (
            "import time\n"
            "def now():\n"
            "    torch.cuda.synchronize()\n"
            "    return time.time()\n"
            "for step in range(4):\n"
            "    start = now()\n"
            "    x = x * 2"
        ),
        ("stream = torch.cuda.Stream()\nfor step in range(4):\n    x = x * 2\n    torch.cuda.synchronize()"),
        (
            "host = torch.empty(4, 6)\n"
            "for step in range(4):\n"
            "    host.copy_(x, non_blocking=True)\n"
            "    torch.cuda.synchronize()\n"
            "    x = x + host.sum()"
        ),
        ("for step in range(4):\n    torch.cuda.synchronize()"),
        (
            "from timeit import default_timer as tick\n"
            "for step in range(4):\n"
            "    begin = tick()\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    took = tick() - begin"
        ),
        (
            "import time\n"
            "clock = time.perf_counter\n"
            "for step in range(4):\n"
            "    begin = clock()\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    took = clock() - begin"
        ),
        (
            "import time\n"
            "for step in range(4):\n"
            "    begin = time.time()\n"
            "    x = x * 2\n"
            "    x = x / 2\n"
            "    torch.cuda.synchronize()\n"
            "    y = y + 1\n"
            "    took = time.time() - begin"
        ),
        (
            "peak = []\n"
            "for step in range(4):\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    peak.append(torch.cuda.max_memory_allocated())"
        ),
        ("from torch.cuda import synchronize\nfor step in range(4):\n    x = x * 2\n    synchronize()"),
        (
            "from datetime import datetime\n"
            "for step in range(4):\n"
            "    begin = datetime.now()\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    took = datetime.now() - begin"
        ),
        (
            "import time\n"
            "def work():\n"
            "    global x\n"
            "    x = x * 2\n"
            "    torch.cuda.synchronize()\n"
            "    x = x / 2\n"
            "def step():\n"
            "    work()\n"
            "    return x\n"
            "for k in range(4):\n"
            "    begin = time.time()\n"
            "    step()\n"
            "    took = time.time() - begin"
        ),
        (
            "import time\n"
            "class Timer:\n"
            "    def __enter__(self):\n"
            "        self.start = time.time()\n"
            "    def __exit__(self, *args):\n"
            "        self.took = time.time() - self.start\n"
            "for step in range(4):\n"
            "    with Timer():\n"
            "        x = x * 2\n"
            "        torch.cuda.synchronize()\n"
            "        x = x / 2"
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
