"""Windows paths in the names of frames, as torch 1.8 to 2.0 write them: without escaping a backslash."""

from __future__ import annotations

import io

import pytest

from syncscan.load import reader
from syncscan.load.valid_json import ValidText
from syncscan.load.windows_paths import with_backslashes
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder
from tests.load.reference import parse

FILES = [
    r"D:\work\train.py",
    r"D:\tools\net\run.py",
    r"C:\new\readme\backup\fit.py",
    r"C:\Users\me\project\utils\train.py",
    r"torch\nn\modules\module.py",
    r"\\server\share\train.py",
]


def written(file: str, quoted: str) -> bytes:
    """A trace with one frame of that file around a wait, its name as it stands in the text."""
    t = TraceBuilder(with_stack=1)
    for start in t.steps(2, lasts=1000):
        with t.frame("PLACE(12): train_step", start + 1, start + 900):
            t.launch("gemm", at=start + 2, lasts=300)
            t.sync("aten::item", at=start + 10)
    return t.json().replace(b"PLACE", quoted.encode())


def frames(trace: Trace) -> set[str]:
    return {trace.strings[number] for number in trace.frames.name.tolist()}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("piece", [1 << 20, 300])
def test_a_path_written_unescaped_is_whole(file: str, piece: int) -> None:
    """Whether JSON knows what stands behind its backslashes, or only some of it, or nothing."""
    trace = reader.read(io.BytesIO(written(file, file)), "t.json", piece)
    assert frames(trace) == {f"{file}(12): train_step"}


@pytest.mark.parametrize("file", FILES)
def test_a_path_written_escaped_stays_as_it_is(file: str) -> None:
    """Torch of today writes it so, if not with slashes."""
    text = written(file, file.replace("\\", "\\\\"))
    assert frames(reader.read(io.BytesIO(text), "t.json")) == frames(parse(text)) == {f"{file}(12): train_step"}


def test_both_readers_read_a_path_whose_escapes_are_all_valid() -> None:
    """Its text is valid JSON: a tab, a newline and a carriage return stand where backslashes were."""
    text = written("", r"D:\tools\net\run.py")
    assert (
        frames(reader.read(io.BytesIO(text), "t.json"))
        == frames(parse(text))
        == {r"D:\tools\net\run.py(12): train_step"}
    )


def test_a_repaired_trace_has_the_path() -> None:
    """Other readers, which know nothing of such paths, see it then."""
    text = b"".join(ValidText(io.BytesIO(written("", r"D:\work\train.py"))).document())
    assert rb'"D:\\work\\train.py(12): train_step"' in text


def test_other_names_stay_as_they_are() -> None:
    """Only a frame's file has lost backslashes."""
    for name in ("a\tb", "<built-in method x>", "f.py(3): a\tb", "nn.Module: Net_0"):
        assert with_backslashes(name) == name
