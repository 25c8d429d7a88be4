"""A trace file appears whole, under its name, or not at all."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from syncscan.capture import trace_file
from syncscan.errors import UsageError
from tests import registers


class Exports:
    """A profiler whose export is this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text(self.text)


def test_the_table_stands_beside_the_profiler_s_own_keys(tmp_path: Path) -> None:
    """Whatever its text: quotes, backslashes and foreign letters survive."""
    table = {"file": 'C:\\häuser\\"a".py', "n": [1, 2]}
    path = trace_file.write_trace(Exports('\n {"schemaVersion": 1, "traceEvents": []}'), tmp_path, "train", table)
    assert json.loads(gzip.decompress(path.read_bytes())) == {
        "syncscan": table,
        "schemaVersion": 1,
        "traceEvents": [],
    }


def test_the_name_is_one_that_tensorboard_reads(tmp_path: Path) -> None:
    """`NAME.DIGITS.pt.trace.json.gz`, and nothing else lies in the folder."""
    path = trace_file.write_trace(Exports("{}"), tmp_path, "train", {})
    name, digits, rest = path.name.split(".", 2)
    assert (name, digits.isdigit(), rest) == ("train", True, "pt.trace.json.gz")
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_of_an_export_that_fails(tmp_path: Path) -> None:
    """Neither the file nor the temporary folder."""
    with pytest.raises(ValueError, match="is not a JSON object"):
        trace_file.write_trace(Exports("no trace {}"), tmp_path, "train", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exported", [None, "", '{"traceEvents": [{"ph": "X", "name": "ab'])
def test_an_export_that_kineto_could_not_write_is_no_trace(tmp_path: Path, exported: str | None) -> None:
    """It only logs that: on a full disk its file is missing or cut."""
    profiler = Exports(exported or "")
    if exported is None:
        profiler.export_chrome_trace = lambda path: None  # type: ignore[method-assign]
    with pytest.raises(OSError, match="is the disk full"):
        trace_file.write_trace(profiler, tmp_path, "train", {})
    assert list(tmp_path.iterdir()) == []


def test_big_exports_are_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunk by chunk."""
    monkeypatch.setattr(trace_file, "CHUNK", 8)
    text = json.dumps({"traceEvents": list(range(100))}).encode()
    target = io.BytesIO()
    trace_file.copy_with(io.BytesIO(text), target, "k", {"v": 1})
    assert json.loads(target.getvalue()) == {"k": {"v": 1}, "traceEvents": list(range(100))}


def test_a_folder_that_can_t_be_made_is_reported_before_the_run(tmp_path: Path) -> None:
    """The sentence names the folder."""
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UsageError, match=r"Can't write traces to .*file/out"):
        trace_file.prepare(file / "out")


@pytest.mark.usefixtures("clear_registers")
def test_the_thread_that_trains_runs_as_before(tmp_path: Path) -> None:
    """Isal leaves wide registers in use: an allocation of torch took 1.2 to 1.3 times as long from then on (H200)."""
    trace_file.write_trace(Exports('{"traceEvents": []}' + " " * 100_000 + "}"), tmp_path, "train", {})
    assert registers.upper_in_use() == 0


def test_at_the_interpreters_end_a_trace_is_written_too(tmp_path: Path) -> None:
    """A session that a program closes by atexit: no thread starts any more then, and none trains."""
    program = """
        import atexit, sys
        from pathlib import Path
        from syncscan.capture import trace_file
        from tests.capture.test_trace_file import Exports
        atexit.register(trace_file.write_trace, Exports("{}"), Path(sys.argv[1]), "train", {})
    """
    done = subprocess.run([sys.executable, "-c", dedent(program), str(tmp_path)], capture_output=True, text=True)
    assert done.stderr == ""
    assert [path.name.split(".", 1)[0] for path in tmp_path.iterdir()] == ["train"]


def test_metadata_can_be_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    """Facts known later than the trace are added; the file keeps its name, and no other file is left in the folder."""
    export = '\n {"schemaVersion": 1, "traceEvents": [' + ", ".join(["1"] * 3_000_000) + "]}"
    before, after = {"notes": ["ä" * 3]}, {"notes": ["ä" * 3], "host": {"steps": 3}}
    path = trace_file.write_trace(Exports(export), tmp_path, "train", before)
    trace_file.write_metadata(path, before, after)
    assert list(tmp_path.iterdir()) == [path]
    assert json.loads(gzip.decompress(path.read_bytes())) == {"syncscan": after, **json.loads(export)}


def test_metadata_longer_than_a_piece_is_replaced_whole(tmp_path: Path) -> None:
    """As of a recording with very many stacks."""
    before, after = {"lines": "x" * (trace_file.CHUNK + 17)}, {"lines": ""}
    path = trace_file.write_trace(Exports('{"traceEvents": []}'), tmp_path, "train", before)
    trace_file.write_metadata(path, before, after)
    assert json.loads(gzip.decompress(path.read_bytes())) == {"syncscan": after, "traceEvents": []}


def test_a_trace_that_somebody_has_changed_is_left_as_it_is(tmp_path: Path) -> None:
    """It isn't ours to write over any more."""
    path = trace_file.write_trace(Exports('{"traceEvents": []}'), tmp_path, "train", {"a": 1})
    theirs = path.read_bytes()
    with pytest.raises(OSError, match="has been changed"):
        trace_file.write_metadata(path, {"a": 2}, {"a": 3})
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (theirs, [path])
