"""Every shape that a trace comes in gives the same trace."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from pathlib import Path

import pytest

from syncscan.errors import TraceEmpty, TraceNotFound, TraceUnreadable
from syncscan.load import byte_stream, find, load, open_bytes
from syncscan.model.trace import NONE, Category, Trace, Vendor
from tests.builder import TraceBuilder
from tests.each import each
from tests.load.test_oracle import assert_equal, assert_same_columns


def story() -> TraceBuilder:
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("loss", start + 10, start + 400), t.frame("train.py(3): step", start + 11, start + 399):
            t.launch("gemm", at=start + 12, lasts=100)
            t.sync("aten::item", at=start + 200, wait=50)
    return t


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def plain(tmp_path: Path) -> Trace:
    return load(write(tmp_path / "plain.json", story().json()))


def test_gzip_and_zstd_are_recognized_by_their_bytes(tmp_path: Path) -> None:
    """The file's name says nothing."""
    zstandard = pytest.importorskip("zstandard")
    expected = plain(tmp_path)
    assert_equal(load(write(tmp_path / "a.json", gzip.compress(story().json()))), expected)
    assert_equal(load(write(tmp_path / "b.gz", story().json())), expected)
    assert_equal(load(write(tmp_path / "c.txt", zstandard.compress(story().json()))), expected)


def test_gzip_members_follow_each_other(tmp_path: Path) -> None:
    """As bgzip and `cat a.gz b.gz` write them, padded with zeros."""
    text = story().json()
    packed = gzip.compress(text[:700]) + gzip.compress(text[700:]) + bytes(512)
    assert_equal(load(write(tmp_path / "a.gz", packed)), plain(tmp_path))


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads a pipe, packed or not."""
    for content in (story().json(), gzip.compress(story().json())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert_equal(load("-"), plain(tmp_path))


def test_urls_go_through_fsspec(tmp_path: Path) -> None:
    """Anything that fsspec opens; here its memory."""
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://runs/t.json.gz", "wb") as f:
        f.write(gzip.compress(story().json()))
    assert_equal(load("memory://runs/t.json.gz"), plain(tmp_path))
    with pytest.raises(TraceNotFound, match="no such file"):
        load("memory://runs/nothing")
    with pytest.raises(TraceUnreadable, match="can't be opened"):
        load("nonsense://x")


def test_a_storage_whose_files_have_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an SFTP client: no file of this machine, and read all the same."""
    text = story().json()

    class Remote:
        closed = False

        def __init__(self) -> None:
            self.text = io.BytesIO(text)
            self.readinto, self.seek, self.tell = self.text.readinto, self.text.seek, self.text.tell
            self.close, self.flush = self.text.close, self.text.flush

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

    monkeypatch.setattr(byte_stream, "_remote", lambda name: (Remote(), len(text)))
    assert len(load("sftp://host/t.json").slices)


@pytest.mark.parametrize("indent", [None, 0, 1, "\t"])
def test_layout_of_the_text(tmp_path: Path, indent: int | str | None) -> None:
    """Pretty-printed or on one line, with a byte order mark or Windows' line ends."""
    text = json.dumps(story().dict(), indent=indent).encode()
    for content in (text, b"\xef\xbb\xbf" + text, text.replace(b"\n", b"\r\n")):
        assert_same_columns(load(write(tmp_path / "t.json", content)), plain(tmp_path))


def test_a_bare_list(tmp_path: Path) -> None:
    """The events alone; what the head says is then missing."""
    events = json.dumps(story().dict()["traceEvents"]).encode()
    trace, expected = load(write(tmp_path / "t.json", events)), plain(tmp_path)
    assert trace.info.vendor == Vendor.CUDA
    assert (trace.slices.ts == expected.slices.ts).all()


def test_metadata_stands_on_both_sides(tmp_path: Path) -> None:
    """Keys behind the events count as those before them."""
    top = {"schemaVersion": 1, "traceEvents": [], "distributedInfo": {"rank": 3, "world_size": 8}, "with_stack": 1}
    info = load(write(tmp_path / "t.json", json.dumps(top).encode())).info
    assert (info.rank, info.world_size, info.with_stack) == (3, 8, True)
    assert info.metadata["schemaVersion"] == 1


def test_a_list_that_begins_late(tmp_path: Path) -> None:
    """A head of megabytes, as capture's own table makes it, is read to its end."""
    table = [[i, "ph", "some/long/path.py"] for i in range(100_000)]
    top = {"syncscan": {"syncs": table, "x": [{"ph": "not an event"}]}, **story().dict()}
    trace = load(write(tmp_path / "t.json", json.dumps(top).encode()))
    assert trace.info.warnings == ()
    assert len(trace.info.metadata["syncscan"]["syncs"]) == 100_000
    assert (trace.slices.ts == plain(tmp_path).slices.ts).all()


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", TraceEmpty), (b"hello", TraceUnreadable), (b"{}", TraceUnreadable), (bytes(9), TraceUnreadable)],
)
def test_what_is_no_trace(tmp_path: Path, content: bytes, error: type[Exception]) -> None:
    """One sentence with the file's name, and what to do."""
    for packed in (content, gzip.compress(content)):
        with pytest.raises(error, match=r"t\.bin"):
            load(write(tmp_path / "t.bin", packed))


def test_no_file_and_no_right(tmp_path: Path) -> None:
    """A path that isn't there, and a folder."""
    with pytest.raises(TraceNotFound):
        load(tmp_path / "nothing.json")
    with pytest.raises(TraceUnreadable, match="is a folder"):
        load(tmp_path)


def test_progress_counts_stored_bytes(tmp_path: Path) -> None:
    """Done never exceeds all, and ends there."""
    path = write(tmp_path / "t.json.gz", gzip.compress(story().json()))
    seen: list[tuple[int, int]] = []
    load(path, lambda done, size: seen.append((done, size)), piece=200)
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert all(done <= size for done, _ in seen)


def test_open_bytes_gives_the_text_in_any_portion(tmp_path: Path) -> None:
    """A stream like any other: read, readinto, lines."""
    text = json.dumps(story().dict(), indent=1).encode()
    path = write(tmp_path / "t.gz", gzip.compress(text))
    with open_bytes(path) as source:
        assert source.read(10) == text[:10]
        assert source.readall() == text[10:]
    with open_bytes(path) as source:
        assert b"".join(io.BufferedReader(source)) == text


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    """By rank, which the trace tells, or its name; other files are passed over."""
    for name, rank in (("a.json.gz", 10), ("b.json", 9), ("rank2.json", None), ("rank1.json.tmp", None)):
        top = {"distributedInfo": {"rank": rank}} if rank is not None else {}
        text = json.dumps({**top, "traceEvents": []}).encode()
        write(tmp_path / name, gzip.compress(text) if name.endswith("gz") else text)
    write(tmp_path / "baseline.json", b'{"findings": []}')
    write(tmp_path / "notes.txt", b"[]")
    assert [Path(p).name for p in find(tmp_path)] == ["rank1.json.tmp", "rank2.json", "b.json", "a.json.gz"]


def test_a_trace_of_a_folder_that_cant_be_read_is_one(tmp_path: Path) -> None:
    """By the name that torch gives it, in its rank's place; another JSON file that can't be read is none."""
    two = TraceBuilder(distributedInfo={"rank": 2})
    two.write(tmp_path / "b.pt.trace.json.gz")
    for name in ("a.rank1.pt.trace.json.gz", "settings.json.gz"):
        (tmp_path / name).write_bytes((tmp_path / "b.pt.trace.json.gz").read_bytes()[:30])
    matches = [Path(path).name for path in find(tmp_path)]
    assert matches == ["a.rank1.pt.trace.json.gz", "b.pt.trace.json.gz"]


def test_a_folder_of_runs(tmp_path: Path) -> None:
    """Subfolders are looked through where the folder itself holds no trace; a file is itself."""
    (tmp_path / "run").mkdir()
    path = write(tmp_path / "run" / "t.pt.trace.json", b'{"traceEvents": []}')
    assert find(tmp_path) == [str(path)]
    assert find(path) == [str(path)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceNotFound, match="contains no traces"):
        find(tmp_path / "empty")


def event(cat: str, name: str, ts: float, dur: float = 1, pid: object = 1, tid: object = 1, **args: object) -> dict:  # type: ignore[type-arg]
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def read(tmp_path: Path, *events: object, **metadata: object) -> Trace:
    return load(write(tmp_path / "t.json", json.dumps({**metadata, "traceEvents": list(events)}).encode()))


def test_torch_1_8(tmp_path: Path) -> None:
    """Its categories, its words for streams, its lower-case ids, whole µs since 1970."""
    now = 1_614_000_000_000_001
    trace = read(
        tmp_path,
        event("Operator", "aten::item", now, 50, **{"external id": "7"}),
        event("Runtime", "cudaStreamSynchronize", now + 5, 40, **{"external id": 7, "correlation": 3}),
        event("Kernel", "gemm", now + 6, 30, pid=0, tid="stream 7", **{"external id": 7, "correlation": 3}),
        event("Memcpy", "Memcpy DtoH", now + 7, 3, pid=0, tid="stream 7"),
        event("User", "ProfilerStep#2", now, 99, pid=0, tid="stream 7 user"),
        event("python_function", "a.py(1): f", now, 60),
    )
    s = trace.slices
    assert s.category.tolist() == [Category.KERNEL, Category.MEMCPY, Category.CPU_OP, Category.RUNTIME]
    assert s.stream.tolist() == [7, 7, NONE, NONE]
    assert s.device.tolist() == [0, 0, NONE, NONE]
    assert s.ts.tolist()[2] == now * 1000
    assert s.parent.tolist() == [NONE, NONE, NONE, 2]
    assert len(trace.frames) == 1


def test_cupti_monitor_copies_get_their_full_names(tmp_path: Path) -> None:
    """The 2.13 backend calls every copy `Memcpy` and tells the rest in args."""
    kinds = {"copy kind": "DtoH", "src kind": "device", "dst kind": "pageable"}
    trace = read(tmp_path, event("gpu_memcpy", "Memcpy", 1, **kinds), event("gpu_memcpy", "Memcpy", 2))
    assert trace.strings == ("Memcpy DtoH (Device -> Pageable)", "Memcpy")


@each(
    ("events", "metadata", "expected"),
    [
        ([event("cuda_runtime", "hipMemcpyWithStream", 1, kind="2")], {}, Vendor.ROCM),
        ([event("cuda_runtime", "cudaLaunchKernel", 1)], {"hip_runtime_version": 6}, Vendor.CUDA),
        ([event("xpu_runtime", "urEnqueueKernelLaunch", 1)], {}, Vendor.XPU),
        ([event("xpu_driver", "zeCommandListHostSynchronize", 1)], {}, Vendor.XPU),
        ([event("mtia_ccp_events", "fc", 1)], {}, Vendor.MTIA),
        ([event("mtia_runtime", "runtime call", 1)], {}, Vendor.MTIA),
        ([event("kernel", "k", 1)], {"deviceProperties": "x"}, Vendor.CUDA),
        ([event("cuda_driver", "cuLaunchKernel", 1)], {}, Vendor.CUDA),
        ([event("cpu_op", "aten::add", 1)], {"cuda_runtime_version": 12}, Vendor.NONE),
    ],
)
def test_vendor(tmp_path: Path, events: list[object], metadata: dict[str, object], expected: Vendor) -> None:
    """Calls tell it first, then categories; without device work there is none."""
    assert read(tmp_path, *events, **metadata).info.vendor == expected


@each(
    ("device", "expected"),
    [
        ({"computeMajor": 8, "computeMinor": 6}, (8, 6)),
        ({"computeMajor": "9", "computeMinor": 0.0}, (9, 0)),
        ({"computeMajor": 7}, (7, 0)),
        ({"computeMajor": 8, "computeMinor": "x"}, None),
        ({"computeMajor": True, "computeMinor": 0}, None),
        ({"computeMinor": 6}, None),
        (["computeMajor"], None),
    ],
)
def test_the_first_devices_compute_capability(tmp_path: Path, device: object, expected: tuple[int, int] | None) -> None:
    """Two numbers, or none where the file doesn't have two; what other devices have doesn't count."""
    other = {"computeMajor": 5, "computeMinor": 2}
    assert read(tmp_path, event("kernel", "k", 1), deviceProperties=[device, other]).info.compute_capability == expected


def test_records_that_the_profiler_says_it_lost_are_counted(tmp_path: Path) -> None:
    """All lines of its warnings and errors count; other text is skipped."""
    logs = {"WARNING": ["x] Dropped 17 activity records", 7, "Dropped all"], "ERROR": ["Dropped 3 activity records"]}
    assert read(tmp_path, event("kernel", "k", 1), **logs).info.dropped == 20
    assert read(tmp_path, event("kernel", "k", 1), WARNING="Dropped 17 activity records").info.dropped == 0


def test_hip_copies_keep_their_kind(tmp_path: Path) -> None:
    """ROCm writes hipMemcpyKind as text."""
    trace = read(tmp_path, event("cuda_runtime", "hipMemcpyWithStream", 1, kind="2", bytes=4, correlation=9))
    s = trace.slices
    assert (s.copy_kind[0], s.bytes[0], s.correlation[0]) == (2, 4, 9)


def test_ids_that_do_not_fit(tmp_path: Path) -> None:
    """An id beyond its column's type is none, and takes no other id with it."""
    trace = read(tmp_path, event("kernel", "k", 1, correlation=2**64 - 1, stream=2**40, device=0, tid=7))
    s = trace.slices
    assert (s.correlation[0], s.stream[0], s.device[0]) == (NONE, 7, 0)


def test_a_list_of_numbers_is_no_trace_of_a_folder(tmp_path: Path) -> None:
    """Other JSON files lie beside traces."""
    (tmp_path / "numbers.json").write_text("[1, 2, 3]")
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "trace.json").write_text(' [ {"ph": "X", "ts": 1}]')
    assert find(tmp_path) == [str(tmp_path / "trace.json")]


@pytest.mark.parametrize("text", [b"[1, 2, 3]", b" []", b'\xef\xbb\xbf[["ph"], "X"]', b"[1] [2", b"[", b'[{"ph": }]'])
@each("piece", [1, 1 << 20])
def test_a_list_without_an_event_is_no_trace(tmp_path: Path, text: bytes, piece: int) -> None:
    """Any JSON file may be a list; a file that says `traceEvents` is a trace, however empty."""
    why = r"list\.json isn't a trace: it is a list without a readable event\."
    with pytest.raises(TraceUnreadable, match=why):
        load(write(tmp_path / "list.json", text), piece=piece)
    assert load(write(tmp_path / "trace.json", b'{"traceEvents": [1, 2]}'), piece=piece).info.events == 0


def test_a_list_that_was_cut_before_its_first_event_ends(tmp_path: Path) -> None:
    """The reason is then the data lost in unpacking."""
    packed = gzip.compress(json.dumps([{"ph": "X", "name": random.Random(0).randbytes(9000).hex()}]).encode())
    with pytest.raises(TraceUnreadable, match=r"list\.json can't be read: After [0-9,]+ bytes the compressed data"):
        load(write(tmp_path / "list.json", packed[:5000]))


def test_a_kernels_blocks_are_its_grids_sizes_multiplied(tmp_path: Path) -> None:
    """A grid that isn't a list of sizes is none."""
    grids = ([4, 3, 2], None, "1", [4, -1, 2], [2**20, 2**20, 1])
    events = [event("kernel", "k", at, grid=grid) for at, grid in enumerate(grids)]
    assert read(tmp_path, *events).slices.blocks.tolist() == [24, NONE, NONE, NONE, NONE]
