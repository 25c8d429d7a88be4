"""The source tells what a line calls and indexes, and what a value is used for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from syncscan.api import analyze_trace
from syncscan.attribute import attribute
from syncscan.attribute.line_calls import candidates, copies_what_it_indexes, use_of
from syncscan.attribute.source_file import MAX_BYTES
from syncscan.detect import detect
from syncscan.model.finding import Source, Use
from tests.builder import TraceBuilder
from tests.detect.test_rules import H2D, TO
from tests.each import each

CODE = """\
import torch


def step(x, mask, items):
    n = x.item()
    if x.sum() > 0:
        y = x[mask]
    y[mask] = 0
    values = x.tolist()
    torch.cuda.synchronize()
    w = float(x)
    where = x.nonzero()
    z = x[3]
    return where


@torch.no_grad()
def decorated(x):
    return x.item()


class Net:
    def forward(self, x):
        return x.cpu()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(CODE)
    return str(path)


def lines(
    file: str, *ops: str, api: str = "cudaStreamSynchronize", at: int = 4, function: str = "step"
) -> tuple[int, ...]:
    return candidates(Source(file, at, function, exact=False), ops, api)


@each(
    ("ops", "expected"),
    [
        (("aten::nonzero",), (12,)),
        (("aten::index", "aten::nonzero"), (7,)),
        (("aten::index_put_", "aten::nonzero"), (8,)),
        (("aten::item", "aten::_local_scalar_dense"), (5, 9, 11)),
        (("aten::is_nonzero", "aten::item"), (6,)),
        (("aten::multinomial",), ()),
    ],
)
def test_calls_that_can_be_the_op(file: str, ops: tuple[str, ...], expected: tuple[int, ...]):
    """The outermost op that the function calls at all decides; an op that nothing in it can be gives no candidate."""
    assert lines(file, *ops) == expected


def test_a_synchronize_without_an_op(file: str):
    """It is looked for by its own name."""
    assert lines(file, api="cudaDeviceSynchronize") == (10,)


def test_an_op_of_any_length_is_looked_for_soon(file: str):
    """3 MB of digits that don't end the name: tried from each of them on they would take hours."""
    assert lines(file, "aten::" + "7" * 3_000_000 + "x", "aten::nonzero") == (12,)


def test_decorated_functions_begin_at_their_decorator(file: str):
    """The profiler gives the decorator's line as the function's."""
    assert lines(file, "aten::item", at=17, function="decorated") == (19,)


def test_methods(file: str):
    """A method is found by its name and line."""
    assert lines(file, "aten::to", at=23, function="forward") == (24,)


def test_another_function_of_that_name_is_not_taken(file: str):
    """The line must fit too: the file may have changed since the recording."""
    assert lines(file, "aten::item", at=40) == ()


def test_only_the_program_s_own_files_are_opened(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A trace names whatever it likes: nothing above the working directory, no pipe, nothing that leads there."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.py").symlink_to(file)
    os.mkfifo(inner / "pipe.py")
    (inner / "large.py").write_text(CODE + "#" * MAX_BYTES)
    monkeypatch.chdir(inner)
    for name in (
        file,
        "../train.py",
        "link.py",
        "pipe.py",
        "large.py",
        "/dev/zero",
        "/proc/self/mem",
        "a\0.py",
        "n" * 3000,
    ):
        assert lines(name, "aten::nonzero") == ()
    monkeypatch.chdir(tmp_path)
    assert lines("train.py", "aten::nonzero") == (12,)


def test_without_the_file_there_are_no_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Missing files, folders, code that doesn't parse, and what isn't Python."""
    monkeypatch.chdir(tmp_path)
    broken, text = tmp_path / "broken.py", tmp_path / "notes.txt"
    broken.write_text("def step(:\n")
    text.write_text(CODE)
    for path in (tmp_path / "none.py", tmp_path, broken, text):
        assert lines(str(path), "aten::item") == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("res = th.from_numpy(arr).to(device=timesteps.device)[timesteps].float()", True),
        ("res = torch.as_tensor(arr, device=dev)[t]", True),
        ("table = th.from_numpy(arr).cuda()\nres = table[t]", True),
        ("x[index] = 0", False),
        ("res = x[th.from_numpy(index).to(dev)]", False),
        ("index = th.from_numpy(arr).to(dev)\nres = x[index]", False),
        ("batch = batch.to(dev)\nres = x[mask]", False),
    ],
)
def test_a_copy_before_brackets_is_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, expected: bool
) -> None:
    """In brackets it is of an index, and elsewhere of neither."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "diffusion.py"
    path.write_text("def extract(arr, timesteps, x):\n" + "".join(f"    {row}\n" for row in body.split("\n")))
    assert copies_what_it_indexes(Source(str(path), 2, "extract", exact=True)) is expected
    assert not copies_what_it_indexes(Source(str(path), 2, "extract", exact=False))


def test_a_finding_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the source is at hand; else both are named."""
    t = TraceBuilder(
        syncscan={
            "schema": "syncscan.capture/1",
            "lines": {
                "source": "callbacks",
                "frames": [[str(tmp_path / "diffusion.py"), 2, "extract"]],
                "stacks": [[0]],
                "modules": [],
                "syncs": [[1_790_000_000_000_000_000 + 130_000, 100, "stream", 0, -1, 0]],
            },
        }
    )
    t.step(0, 10_000)
    t.launch("busy", at=20, lasts=1000)
    t.sync(TO, at=100, copy=H2D)
    t.op("aten::index", 1_100, 1_110)
    trace = t.trace()
    monkeypatch.chdir(tmp_path)
    (either,) = analyze_trace(trace).findings
    (tmp_path / "diffusion.py").write_text("def extract(arr, t):\n    return torch.from_numpy(arr).to(t.device)[t]\n")
    (table,) = analyze_trace(trace).findings
    assert (either.rule, table.rule) == ("cpu-index", "cpu-index")
    assert "around an index" in either.title
    assert "a table on the host" in table.title


ITEM = ("aten::item", "aten::_local_scalar_dense")
TO_OPS = ("aten::to", "aten::_to_copy", "aten::copy_")


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
    assert used(tmp_path, monkeypatch, "print(t)", ops=TO_OPS) is Use.SHOWN


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
    (point,) = attribute(trace, points)
    assert point.where.value is use
