"""Numbers that the host needs where they are read: their lines stay, with the reason."""

from __future__ import annotations

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
FIXED: dict[str, str] = {}
END = "\nresult = repr(result)"
REASONS = {
    (
        "total, count = 0.0, 0\n"
        "for loss in losses:\n    total, count = total + loss.item(), count + 1\nresult = total / count"
    ): "its value is put in a tuple, which the analysis doesn't follow",
    (
        "total = 0.0\nfor loss in losses:\n    total += loss.item()\n    result = str(loss.item())\nresult += str(0)"
    ): "its value is read in line 10 in any case",
    (
        "import copy, dataclasses\n"
        "@dataclasses.dataclass\n"
        "class Run:\n"
        "    loss: float = 0.0\n"
        "run, result = Run(), []\n"
        "for loss in losses:\n"
        "    run.loss += loss.item()\n"
        "    result.append(dataclasses.replace(run))"
    ): "its value is stored in an attribute, which other code may read",
    (
        "result = []\nfor loss in losses:\n    result.append((loss > 0).sum().item() / (loss < 2).sum().item())"
    ): "its value is a divisor, and Python raises if it is 0",
    (
        "total = torch.zeros((), dtype=torch.float64, device=device)\nresult = []\n"
        "for loss in losses:\n    total = total + loss\n    result.append(total / (loss < 2).sum().item())"
    ): "its value is a divisor, and Python raises if it is 0",
    (
        "for step in range(12):\n    if step < 2:\n        continue\n    last = losses[step].item()\nresult = last"
    ): "its value is stored in last, which is unbound if the loop never runs (line 7)",
    (
        "for step in range(len(losses)):\n    last = losses[step].item()\nresult = last"
    ): "its value is stored in last, which is unbound if the loop never runs (line 7)",
    (
        "worst = 0.0\n"
        "for n, loss in enumerate(losses, 1):\n"
        "    value = loss.item()\n"
        "    if value > worst:\n"
        "        worst = value / n\n"
        "result = worst"
    ): "its value controls what runs next",
    (
        "import signal\n"
        "total = 0.0\n"
        "def stop(*_):\n"
        '    print("stopped at", total)\n'
        "signal.signal(signal.SIGUSR1, stop)\n"
        "for loss in losses:\n"
        "    total += loss.item()\n"
        "result = total"
    ): "its value is printed or logged in every step (line 10)",
    (
        "import threading\n"
        "total, done = 0.0, threading.Event()\n"
        "def watch():\n"
        "    while not done.wait(0.01):\n"
        "        repr(total)\n"
        "thread = threading.Thread(target=watch)\n"
        "thread.start()\n"
        "for loss in losses:\n"
        "    total += loss.item()\n"
        "done.set()\n"
        "thread.join()\n"
        "result = total"
    ): "its value is printed or logged in every step (line 11)",
    (
        "result = 0.0\n"
        "for loss in losses:\n"
        '    for key, value in {"loss": loss.item()}.items():\n'
        '        print(end=f"{key}{value}"[:0])'
    ): "its value is inspected inside the loop",
    (
        'result = 0\nfor loss in losses:\n    print(end=f"{loss.item():.0f}"[:0])'
    ): "its value is printed or logged in every step",
    ("result = 0\nfor loss in losses:\n    if loss.item() > 2:\n        break"): "its value controls what runs next",
    (
        "result = 0\n"
        "for loss in losses:\n"
        "    if loss.item() > 0.5:\n"
        "        result += 1\n"
        "    else:\n"
        "        result -= 1"
    ): "its value controls what runs next",
    (
        "result = 0.0\nfor loss in losses:\n    result += [1.0, 2.0, 3.0][int(loss.item() * 3)]"
    ): "its value is passed to int(), which may need it",
    (
        "result = 0.0\nfor loss in losses:\n    result += 1.0 / loss.item()"
    ): "its value is a divisor, and Python raises if it is 0",
    (
        "result = []\nfor loss in losses:\n    result.append(torch.zeros(int(loss.item() * 3)).numel())"
    ): "its value is passed to int(), which may need it",
    (
        "result = {}\nfor step, loss in enumerate(losses):\n    result[loss.item()] = step"
    ): "its value is an index, which the host needs",
    (
        "result = []\nfor loss in losses:\n    result.append(round(loss.item()))"
    ): "its value is passed to round(), which may need it",
    (
        "import json\nresult = []\nfor loss in losses:\n    result.append(json.dumps(loss.item()))"
    ): "its value is passed to json.dumps(), which may need it",
    (
        "result, window = 0.0, []\nfor loss in losses:\n    window.append(loss.item())\n    result += max(window)"
    ): "its value is passed to max(), which may inspect it (line 10)",
    (
        "seen, result = [], 0.0\n"
        "history = seen\n"
        "for loss in losses:\n"
        "    history.append(loss.item())\n"
        "    result += sum(sorted(seen))"
    ): "its value is stored in a container with a second name (line 8)",
    (
        "result, average = 0, 0.0\n"
        "for loss in losses:\n"
        "    average = 0.9 * average + 0.1 * loss.item()\n"
        "    if average > 0.3:\n"
        "        result += 1\n"
        "        average = 0.0"
    ): "its value controls what runs next (line 10)",
    (
        "import bisect\nresult = []\nfor loss in losses:\n    bisect.insort(result, loss.item())"
    ): "its value is passed to bisect.insort(), which may need it",
    (
        "result = set()\nfor loss in losses:\n    result.add(loss.item())\nresult = sorted(result)"
    ): "its value is passed to result.add(), which may need it",
    (
        "import math\n"
        "result = 0\n"
        "for loss in losses:\n"
        "    if not math.isfinite(loss.item()):\n"
        "        break\n"
        "    result += 1"
    ): "its value is passed to math.isfinite(), which may need it",
    (
        "result = 0\n"
        "for loss in losses:\n"
        "    if result > 100:\n"
        "        raise ValueError(loss.item())\n"
        "    value = loss.item()\n"
        "    assert value < 2, value\n"
        "    result += 1"
    ): "its value controls what runs next (line 12)",
    (
        "def values():\n    for loss in losses:\n        yield loss.item()\nresult = list(values())"
    ): "its value is needed by the host here (yield)",
    (
        "result = 0\nfor loss in losses:\n    for _ in range(int((loss * 3).item())):\n        result += 1"
    ): "its value is passed to int(), which may need it",
    (
        "result = []\n"
        "try:\n"
        "    for step, loss in enumerate(losses):\n"
        "        result.append(loss.item())\n"
        "        if step == 5:\n"
        "            raise KeyError\n"
        "except KeyError:\n"
        "    result = [sum(result)]"
    ): "its value is used by an exception handler around the loop (line 8)",
    (
        "result = 0\nfor loss in losses:\n    result += (loss > 0.5).sum().item() // 1"
    ): "its value is needed by the host here (floordiv)",
    (
        'result = ""\nfor loss in losses:\n    result += str(int(loss.item()))'
    ): "its value is passed to int(), which may need it",
    ("read = lambda t: t.item()\nresult = [read(loss) for loss in losses]"): "its value is read outside of any loop",
    (
        "result = []\nfor loss in losses:\n    result += [1] * int((loss * 3).long().item())"
    ): "its value is combined with something that isn't a number",
    (
        "result = 0.0\n"
        "for step, loss in enumerate(losses):\n"
        "    result += loss.item()\n"
        "    if step % 6 == 5:\n"
        '        print(end=f"{result}"[:0])'
    ): "its value is added to something that isn't a number",
    (
        'best, at = float("inf"), -1\n'
        "for step, loss in enumerate(losses):\n"
        "    value = loss.item()\n"
        "    if value < best:\n"
        "        best, at = value, step\n"
        "result = best, at"
    ): "its value controls what runs next (line 10)",
    (
        "total = torch.zeros(())\nfor loss in losses:\n    total += loss.item()\nresult = total"
    ): "its value is added to something that isn't a number",
    (
        "import numpy as np\ntotal = np.float64(0)\nfor loss in losses:\n    total += loss.item()\nresult = total"
    ): "its value is added to something that isn't a number",
    (
        "from decimal import Decimal\n"
        "total = Decimal(0)\n"
        "for loss in losses:\n"
        "    total += Decimal(loss.item())\n"
        "result = total"
    ): "its value is passed to Decimal(), which may need it",
    (
        "total = 0.0\nfor loss in losses:\n    total += loss.item()\n    total = round(total, 3)\nresult = total"
    ): "its value is passed to round(), which may need it (line 10)",
    (
        "total = 1.0\nfor loss in losses:\n    total /= 1 + loss.item()\nresult = total"
    ): "its value is a divisor, and Python raises if it is 0",
    (
        "history = []\n"
        'view = {"loss": history}\n'
        "result = 0.0\n"
        "for loss in losses:\n"
        "    history.append(loss.item())\n"
        '    result += max(view["loss"])'
    ): "its value is stored in a container with a second name (line 8)",
    (
        "def note(values, loss):\n"
        "    values.append(loss.item())\n"
        "history, result = [], 0.0\n"
        "for loss in losses:\n"
        "    note(history, loss)\n"
        "    result += max(history)"
    ): "its value is stored in an object of the function's callers",
    (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.values = []\n"
        "        self.view = self.values\n"
        "    def add(self, loss):\n"
        "        self.values.append(loss.item())\n"
        "meter, result = Meter(), 0.0\n"
        "for loss in losses:\n"
        "    meter.add(loss)\n"
        "    result += max(meter.view)"
    ): "its value is stored where the analysis can't follow it",
    (
        "total = 0\nfor loss in losses:\n    total += (loss * 9).to(torch.int32).item()\n    total *= 3\nresult = total"
    ): "its value may grow beyond 64 bits (line 10)",
    (
        "total = 1\nfor loss in losses:\n    total *= 1 + (loss * 2000).long().item()\nresult = total"
    ): "its value may grow beyond 64 bits",
    (
        "total = 0.0\n"
        "try:\n"
        "    for step, loss in enumerate(losses):\n"
        "        total += loss.item()\n"
        "        if step == 8:\n"
        "            raise ValueError\n"
        "except ValueError:\n"
        '    result = f"{total}"'
    ): "its value is used by an exception handler around the loop (line 8)",
    (
        "total = 0.0\n"
        "def callback():\n"
        "    return total > 3\n"
        "stop = 0\n"
        "for loss in losses:\n"
        "    total += loss.item()\n"
        "    stop += callback()\n"
        "result = stop"
    ): "its value is returned from within the loop (line 9)",
    (
        "values = []\nfor loss in losses:\n    values.append(loss.item())\n    values = values[-3:]\nresult = values"
    ): "its value is stored in a container with a second name (line 10)",
    (
        "values = []\nfor loss in losses:\n    values.append(loss.item())\n    values.sort()\nresult = values"
    ): "its value is inspected inside the loop (line 10)",
    (
        "values = []\n"
        "for loss in losses:\n"
        "    if loss.item() not in values:\n"
        "        values.append(loss.item())\n"
        "result = values"
    ): "its value is compared by the host",
    (
        'result = []\nfor loss in losses:\n    result.append(f"{loss.item():.3f}")'
    ): "its value is printed or logged in every step",
    (
        "result = []\nfor loss in losses:\n    result.append(str(loss.item()))"
    ): "its value is printed or logged in every step",
    (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    value = loss.item()\n"
        "    total += 1.0 if value > 0.5 else 0.0\n"
        "result = total"
    ): "its value controls what runs next (line 10)",
    (
        "import math\ntotal = 0.0\nfor loss in losses:\n    total += math.exp(loss.item())\nresult = total"
    ): "its value is passed to math.exp(), which may need it",
    (
        "total = True\nfor loss in losses:\n    total = total and bool((loss > 0.1).item())\nresult = total"
    ): "its value controls what runs next",
    (
        "total = 0\nfor loss in losses:\n    total |= int((loss > 0.5).item())\nresult = total"
    ): "its value is needed by the host here",
    (
        "total = 0\nfor loss in losses:\n    total = total * 31 + (loss * 2000).long().item()\nresult = total"
    ): "its value may grow beyond 64 bits",
    (
        "values = []\n"
        "for loss in losses:\n"
        "    if len(values) and values[-1] == 3:\n"
        "        break\n"
        "    values.append(loss.item())\n"
        "result = values"
    ): "its value controls what runs next (line 9)",
    (
        "class Total(float):\n    pass\nt = Total(0)\nfor loss in losses:\n    t = Total(t + loss.item())\nresult = t"
    ): "its value is combined with something that isn't a number",
    (
        "total = 0.0\n"
        "def note(value):\n"
        "    global total\n"
        "    total += value\n"
        "def train():\n"
        "    for loss in losses:\n"
        "        note(loss.item())\n"
        "train()\n"
        "result = total"
    ): "its value is passed to note(), which may need it",
    (
        "def train():\n"
        "    total = 0.0\n"
        "    def note(value):\n"
        "        nonlocal total\n"
        "        total += value\n"
        "        return total > 3\n"
        "    for loss in losses:\n"
        "        if note(loss.item()):\n"
        "            break\n"
        "    return total\n"
        "result = train()"
    ): "",
    "result = sum(loss.item() for loss in losses)": "its value is read outside of any loop",
    "result = max(loss.item() for loss in losses)": "its value is read outside of any loop",
    "result = [loss.item() for loss in losses]": "its value is read outside of any loop",
    "result = {k: loss.item() for k, loss in enumerate(losses)}": "its value is read outside of any loop",
    (
        "def until(most):\n"
        "    total = 0.0\n"
        "    for loss in losses:\n"
        "        total += loss.item()\n"
        "        if total > most: return total\n"
        "    return 0.0\n"
        "def first(count):\n"
        "    total = 0.0\n"
        "    for k in range(count):\n"
        "        total += losses[k].item()\n"
        "        if k == 3: return total\n"
        "    return 0.0\n"
        "result = until(3.0), first(9)"
    ): "its value controls what runs next",
}
KEPT = {program: program for program in REASONS}


@each("program", REASONS)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes, and the author learns why."""
    left = programs[program]
    assert left.text == program + END
    assert any(REASONS[program] in reason for reason in left.left) or not REASONS[program]
