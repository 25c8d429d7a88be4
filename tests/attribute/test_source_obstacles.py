"""A program's source shows which outputs of its network outlive a call, and what runs in inference mode."""

from __future__ import annotations

from pathlib import Path

from syncscan import api
from syncscan.attribute.source_file import SourceFiles, SourceRoot
from syncscan.attribute.source_obstacles import in_source
from tests.builder import TraceBuilder
from tests.each import each

TRAINS = "model = nn.LSTM(8, 8)\nfor x in batches:\n"
PREDICTS = "model.eval()\noutputs = []\nfor x in batches:\n"


def shown(folder: Path, source: str) -> list[tuple[str, str]]:
    """The obstacles in a program whose last line waits."""
    (folder / "train.py").write_text(source)
    line = source.count("\n")
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.exact(start + 4.5, ("train.py", line, "<module>"))
        t.sync("aten::item > aten::_local_scalar_dense", at=start)
    trace = t.trace()
    files = SourceFiles((SourceRoot(folder),))
    findings = api.analyze_trace(trace, files=files).findings
    return [(obstacle.kind.value, obstacle.where) for obstacle in in_source(trace, findings, files)]


@each(
    ("source", "kept"),
    [
        (f"{TRAINS}    y, hidden = model(x, hidden)\n    y.sum().item()\n", "`hidden`, train.py:3"),
        (f"{TRAINS}    h = cut(h)\n    y, h = model(x, h)\n    y.sum().item()\n", "`h`, train.py:4"),
        (f"{TRAINS}    y = model(x)\n    loss = y - last\n    last = y\n    loss.item()\n", "`last`, train.py:5"),
        (f"{PREDICTS}    y = model(x)\n    outputs.append(y.detach())\n    y.item()\n", "`outputs`, train.py:5"),
        (f"{PREDICTS}    outputs.append(model(x).logits)\n    x.item()\n", "`outputs`, train.py:4"),
        (f"{PREDICTS}    self.last = model(x)\n    x.item()\n", ""),
    ],
    ids=["hidden state", "cut off", "last output", "list", "list of a part", "never read"],
)
def test_an_output_that_a_later_round_uses_outlives_its_call(tmp_path: Path, source: str, kept: str) -> None:
    """It is read before the round has one of its own, or is stored in what the round didn't begin."""
    assert shown(tmp_path, source) == ([("outputs", kept)] if kept else [])


@each(
    "source",
    [
        f"{TRAINS}    y, h = model(x, h)\n    h = h.clone()\n    y.sum().item()\n",
        f"{TRAINS}    y = model(x)\n    mean = 0.9 * mean + 0.1 * y\n    mean.item()\n",
        f"{TRAINS}    y = model(x)\n    loss = y.sum()\n    loss.item()\n",
        f"{PREDICTS}    y = model(x)\n    outputs.append(y.cpu())\n    y.item()\n",
        f"{PREDICTS}    each = []\n    each.append(model(x))\n    x.item()\n",
        "total = []\nfor x in batches:\n    total.append(read(x))\n    x.item()\n",
    ],
    ids=["cloned", "mean", "used at once", "copied", "list of a round", "no network"],
)
def test_what_has_memory_of_its_own_outlives_nothing(tmp_path: Path, source: str) -> None:
    """A clone, a copy and what is computed from an output are tensors of their own."""
    assert shown(tmp_path, source) == []


VALIDATES = "def validate(model, x):\n    model.eval()\n    with torch.{mode}():\n        return model(x)\n"
STEPS = "def train(model):\n    for x in batches:\n        y = model(x)\n        y.backward()\n        y.item()\n"

HANDS_ON = STEPS.replace("train(model):\n", "main():\n    model = Net()\n    validate(model, x)\n")


@each(
    ("source", "where"),
    [
        (VALIDATES.format(mode="inference_mode") + STEPS, "`model`, train.py:4"),
        (VALIDATES.format(mode="no_grad") + STEPS, ""),
        (VALIDATES.format(mode="inference_mode") + STEPS.replace("y.backward()", "pass"), ""),
        ("@torch.inference_mode()\ndef test(model, x):\n    return model(x)\n" + STEPS, ""),
        (VALIDATES.format(mode="inference_mode").replace("model.eval()", "model = nn.Linear(2, 2).eval()") + STEPS, ""),
        (VALIDATES.format(mode="inference_mode") + HANDS_ON, "`model`, train.py:4"),
    ],
    ids=["with", "no_grad", "nothing trains", "no network's name", "a network of its own", "handed on"],
)
def test_a_network_that_is_trained_is_also_called_in_inference_mode(tmp_path: Path, source: str, where: str) -> None:
    """By the name of a network that a function with a backward pass calls too."""
    assert shown(tmp_path, source) == ([("inference-mode", where)] if where else [])


def test_nothing_is_said_without_source(tmp_path: Path) -> None:
    """A recording of another machine names files that aren't there."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.exact(start + 4.5, ("elsewhere.py", 3, "step"))
        t.sync("aten::item > aten::_local_scalar_dense", at=start)
    analysis = api.analyze_trace(t.trace())
    assert in_source(analysis.trace, analysis.findings) == ()
