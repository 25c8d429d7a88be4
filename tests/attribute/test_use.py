"""A value that is read is used for a decision, only shown, or used in a way that its source doesn't tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.attribute import attribute
from syncscan.attribute.use import use_of
from syncscan.detect import detect
from syncscan.model.finding import Source, Use
from tests.builder import TraceBuilder

ITEM = ("aten::item", "aten::_local_scalar_dense")
TO = ("aten::to", "aten::_to_copy", "aten::copy_")


def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, ops: tuple[str, ...] = ITEM, line: int = 2) -> Use:
    """The use of what line 2, the first of the body, reads."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("def step(x, t, losses, log, epoch):\n" + "".join(f"    {row}\n" for row in body.split("\n")))
    return use_of(Source(str(path), line, "step", exact=True), ops)


@pytest.mark.parametrize(
    "body",
    [
        "if t.item() > 3:\n    x = x + 1",
        "while float(t) > 3:\n    t = t - 1",
        "y = x[int(t)]",
        "y = x[: t.item()]",
        "y = 1 if t.item() else 2",
        "assert t.item() == 1",
        "for k in range(int(t)):\n    x = x + k",
        "n = t.item()\nif n > 3:\n    x = x + 1",
        "n = int(t)\nprint(n)\ny = x[n]",
        "y = [v for v in losses if v > t.item()]",
        "total = 0.0\ntotal += t.item()\nif total > 3:\n    x = x + 1",
    ],
)
def test_what_a_branch_a_shape_or_an_index_takes_steers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    """A fix has to keep that."""
    line = 3 if body.startswith("total") else 2
    assert used(tmp_path, monkeypatch, body, line=line) is Use.STEERS


@pytest.mark.parametrize(
    "body",
    [
        "print(t.item())",
        "losses.append(t.item())",
        "log.info('loss %s', float(t))",
        "log.log({'loss': t.item()})",
        "print(f'{t.item():.3f}')",
        "loss = t.item()\nprint(loss)\nlosses.append(round(loss, 3))",
    ],
)
def test_what_is_printed_logged_or_kept_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Nothing in the function depends on it."""
    assert used(tmp_path, monkeypatch, body) is Use.SHOWN


@pytest.mark.parametrize(
    "body",
    [
        "return t.item()",
        "x.mul_(t.item())",
        "loss = t.item()\nprint(loss)\nreturn loss",
        "loss = t.item()\nprint(loss)\nepoch(loss)",
        "x.value = t.item()",
        "import math\nprint(epoch)",
        "y = math.log(t.item())",
        "n = t.item()\nn = len(losses)\nif n:\n    x = x + 1",
        "global n\nn = t.item()\nprint(n)",
        "n = t.item()",
        "pass",
    ],
)
def test_what_leaves_the_function_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Returned, given on, kept in an attribute, or a name that another value has too: nothing is claimed."""
    line = 3 if body.startswith("global") else 2
    assert used(tmp_path, monkeypatch, body, line=line) is Use.UNKNOWN


def test_printing_reads_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that shows and the call that reads are one."""
    assert used(tmp_path, monkeypatch, "print(t)", ops=TO) is Use.SHOWN


def test_of_several_lines_that_it_can_be_all_have_to_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that may be a line that returns the value says nothing."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("def step(t):\n    print(t.item())\n    print(float(t))\n    return t.item()\n")
    uses = [use_of(Source(str(path), 1, "step", False, lines), ITEM) for lines in ((2, 3), (2, 4), ())]
    assert uses == [Use.SHOWN, Use.UNKNOWN, Use.UNKNOWN]


def test_a_source_that_is_not_at_hand_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one outside of the working directory: the trace may name any file."""
    (tmp_path / "train.py").write_text("def step(t):\n    print(t.item())\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert use_of(Source(str(tmp_path / "train.py"), 2, "step", exact=True), ITEM) is Use.UNKNOWN


@pytest.mark.parametrize(("chain", "use"), [("aten::nonzero", Use.STEERS), ("aten::item", Use.SHOWN)])
def test_the_rule_is_asked_first_and_then_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chain: str, use: Use
) -> None:
    """A size steers whatever stands around it; of a number read the line tells."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("def step(t):\n    print(t.item(), t.nonzero())\n")
    t = TraceBuilder()
    with t.step(0, 2000), t.frame(f"{tmp_path}/train.py(1): step", 1, 1900):
        t.sync(chain, at=20, wait=300)
    trace = t.trace()
    points, _ = detect(trace)
    (place,) = attribute(trace, points)
    assert place.use is use
