"""An export of Nsight Systems has what a trace of torch.profiler has: ops, scopes, calls, device work and steps."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan import analyze, load
from syncscan.cli import group
from syncscan.errors import TraceUnreadable, UsageError
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import Category, Trace
from tests.load.nsys.export import DEVICE, DTOH, HTOD, PAGEABLE, PINNED, Export, steps
from tests.offered import offered


def read(export: Export, tmp_path: Path) -> Trace:
    return load.load(export.save(tmp_path / "report.sqlite"))


def names(trace: Trace, *categories: Category) -> list[str]:
    return [trace.name(row) for row in trace.is_category(*categories).nonzero()[0].tolist()]


def test_waits_are_found_by_op_and_step(tmp_path: Path) -> None:
    analysis = analyze(steps().save(tmp_path / "report.sqlite"))
    (finding,) = analysis.findings
    assert (finding.rule, finding.op, finding.per_step) == ("item", "aten::item", 1.0)
    assert finding.wait_us == pytest.approx(300, rel=0.05)
    assert finding.scope == ()
    assert [step.number for step in analysis.trace.steps] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "name", "category", "sequence"),
    [
        ("aten::item, op_id = 317177", "aten::item", Category.CPU_OP, -1),
        ("aten::mul, seq = 12, op_id = 3, sizes = [[2, 3], []]", "aten::mul", Category.CPU_OP, 12),
        ("aten::mul, seq = 12", "aten::mul", Category.CPU_OP, 12),
        ("aten::add, sizes = [[2]]", "aten::add", Category.CPU_OP, -1),
        ("FlashAttnFunc, seq = 45368, op_id = 990812", "FlashAttnFunc", Category.CPU_OP, 45368),
        ("forward, of all, op_id = 4", "forward, of all", Category.ANNOTATION, -1),
        ("Optimizer.step#SGD.step, op_id = 9", "Optimizer.step#SGD.step", Category.ANNOTATION, -1),
        ("forward", "forward", Category.ANNOTATION, -1),
    ],
)
@pytest.mark.parametrize("registered", [False, True])
def test_ranges_of_torch_are_ops_and_others_scopes(
    tmp_path: Path, text: str, name: str, category: Category, sequence: int, registered: bool
) -> None:
    export = Export()
    if registered:
        export.range(None, 0, 10, textId=export.string(text))
    else:
        export.range(text, 0, 10)
    trace = read(export, tmp_path)
    (row,) = range(len(trace.slices))
    assert (trace.name(row), trace.slices.category[row], trace.slices.sequence[row]) == (name, category, sequence)


def test_a_scope_that_looks_like_an_op_has_no_id(tmp_path: Path) -> None:
    """Torch gives every op one, so a range without is the program's."""
    export = Export()
    export.range("train::epoch", 0, 100)
    export.range("aten::add, op_id = 1", 10, 10)
    assert names(read(export, tmp_path), Category.ANNOTATION) == ["train::epoch"]


def test_other_ranges_are_left_out(tmp_path: Path) -> None:
    """Marks, ranges that end on another thread or never, a library's, and those of Python's lock."""
    export = Export()
    export.range("kept", 0, 100)
    export.range("mark", 1, 0, eventType=34, end=None)
    export.range("open", 2, 0, end=None)
    export.range("elsewhere", 3, 5, eventType=60, endGlobalTid=10 << 24 | 99)
    export.range("NCCL", -10, 0, eventType=75, end=None, domainId=4)
    export.range("ncclAllReduce", 4, 5, domainId=4)
    export.range("Holding GIL", 5, 500)
    assert names(read(export, tmp_path), *Category) == ["kept"]


def test_calls_and_work_are_named_as_torch_does(tmp_path: Path) -> None:
    export = Export()
    launch = export.call("cudaLaunchKernel_ptsz_v7000", 0)
    export.call("cuLaunchKernelEx", 1, 2, eventClass=1)
    export.kernel(launch, 10, 20, name="void gemm<float>(int)")
    to_device, to_host = export.call("cudaMemcpyAsync_v3020", 5), export.call("cudaMemcpyAsync_v3020", 10)
    export.copy(to_device, 40, 5, copyKind=HTOD, srcKind=PAGEABLE, dstKind=DEVICE, bytes=64)
    export.copy(to_host, 50, 5, copyKind=DTOH, srcKind=DEVICE, dstKind=PINNED)
    export.copy(to_host, 60, 5, copyKind=11, srcKind=4, dstKind=4)
    trace = read(export, tmp_path)
    assert names(trace, Category.RUNTIME)[:2] == ["cudaLaunchKernel_ptsz", "cudaMemcpyAsync"]
    assert names(trace, Category.DRIVER) == ["cuLaunchKernelEx"]
    assert names(trace, Category.KERNEL) == ["void gemm<float>(int)"]
    copies = ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)"]
    assert names(trace, Category.MEMCPY) == copies, "migrations of unified memory aren't a stream's"
    kernel = trace.device_rows[0]
    assert (trace.slices.blocks[kernel], trace.slices.stream[kernel], trace.slices.ts[kernel]) == (8, 7, 10_000)
    assert trace.slices.bytes[trace.device_rows[1]] == 64


def test_a_graph_may_be_one_record_or_nodes(tmp_path: Path) -> None:
    export = Export()
    whole, nodes = export.call("cudaGraphLaunch_v10000", 0), export.call("cudaGraphLaunch_v10000", 10)
    export._work("GRAPH_TRACE", whole, 20, 30, 10, graphId=3)
    export.kernel(nodes, 60, 5, name="a")
    export.kernel(nodes, 65, 5, name="b")
    trace = read(export, tmp_path)
    assert names(trace, Category.KERNEL) == ["CUDA graph 3", "a", "b"]
    assert (trace.device_calls != -1).all()


def test_synchronizations_name_what_they_wait_for(tmp_path: Path) -> None:
    """Those of queries don't wait, and are left out."""
    export = Export()
    record, wait = export.call("cudaEventRecord_v3020", 0), export.call("cudaStreamWaitEvent_v3020", 10)
    query, sync = export.call("cudaEventQuery_v3020", 20), export.call("cudaStreamSynchronize_v3020", 30)
    export.row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", globalPid=10 << 24, eventSyncId=5, correlationId=record)
    export.sync(wait, 11, 1, 2, eventSyncId=5)
    export.sync(query, 21, 1, 1, eventSyncId=5, streamId=0xFFFFFFFF)
    export.sync(sync, 31, 2, 3, eventSyncId=0)
    trace = read(export, tmp_path)
    assert names(trace, Category.SYNC) == ["Stream Wait Event", "Stream Sync"]
    rows = trace.is_category(Category.SYNC).nonzero()[0]
    assert trace.slices.awaits[rows].tolist() == [record, -1]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("step {}", 4),
        ("iteration_{}", 4),
        ("train_step", 4),
        ("[pl][profile]run_training_batch", 4),
        ("ProfilerStep#{}", 4),
        ("ProfilerStep#{}, op_id = 5", 4),
        ("execute_context_0(0)_generation_{}(8)", 4),
    ],
)
def test_ranges_that_repeat_are_steps(tmp_path: Path, name: str, found: int) -> None:
    trace = read(steps(name=name), tmp_path)
    assert len(trace.steps) == found
    assert trace.steps_found.by is not FoundBy.REPETITION


def test_a_part_of_a_step_is_none(tmp_path: Path) -> None:
    """Half of the launches are outside of the ranges; then what repeats is a step."""
    export = steps(name="forward_step")
    for number in range(4):
        export.item(number * 1000 + 920, 10)
    trace = read(export, tmp_path)
    assert trace.steps_found.by is FoundBy.REPETITION


def test_what_repeats_is_found_among_many_equal_calls(tmp_path: Path) -> None:
    """Without ranges, a hundred equal launches look like a hundred rounds."""
    export = Export()
    for number in range(3):
        for launch in range(100):
            at = number * 2000 + launch * 10
            export.kernel(export.call("cudaLaunchKernel_v7000", at), at + 8, 5)
        copy = export.call("cudaMemcpyAsync_v3020", number * 2000 + 1010)
        export.copy(copy, number * 2000 + 1012, 2, copyKind=DTOH, srcKind=DEVICE, dstKind=PAGEABLE)
        export.call("cudaStreamSynchronize_v3020", number * 2000 + 1020, 100)
    assert read(export, tmp_path).steps_found.calls == 102


def test_steps_are_those_of_the_first_thread(tmp_path: Path) -> None:
    """Another one, autograd's, launches twice as much, and nothing names it."""
    export = Export()
    for number in range(4):
        for launch in range(6):
            at = number * 1000 + launch * 100
            call = export.call("cudaLaunchKernel_v7000", at, tid=10 if launch < 2 else 99)
            export.kernel(call, at + 10, 20 + launch)
    trace = read(export, tmp_path)
    assert trace.steps_found.by is FoundBy.REPETITION
    assert {trace.tracks[step.track].tid for step in trace.steps} == {"10"}


def two_ranks() -> Export:
    export = steps(4, pid=20)
    one = steps(3, pid=21)
    for table, rows in one.tables.items():
        for row in rows:
            if name := row.get("nameId") or row.get("demangledName"):
                text = next(text for text, number in one._strings.items() if number == name)
                row["nameId" if "nameId" in row else "demangledName"] = export.string(text)
            export.row(table, **row)
    return export


def test_a_process_is_chosen_as_in_merged_traces(tmp_path: Path) -> None:
    """Both count their launches from one and use stream 7 of device 0; nothing is mixed up."""
    path = two_ranks().save(tmp_path / "report.sqlite")
    both = analyze(path)
    assert both.warnings[0].startswith("The trace holds 2 processes: this report covers process 20 only")
    assert len(both.trace.steps) == 4
    other = analyze(path, process="21")
    assert (len(other.trace.steps), len(other.trace.device_rows)) == (3, 6)
    assert len(analyze(f"{path}/21").trace.steps) == 3


def test_each_process_has_a_clock(tmp_path: Path) -> None:
    """One's device times are 10 µs late, the other's are right."""
    export = two_ranks()
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"):
        for row in export.tables[table]:
            late = 10_000 + 12_000 if row["globalPid"] >> 24 == 21 else 0
            row["start"], row["end"] = row["start"] + late, row["end"] + late
    trace = read(export, tmp_path)
    assert [w for w in trace.info.warnings if "late" in w and "process 21" in w]
    assert not [w for w in trace.info.warnings if "process 20" in w]


def test_it_is_read_wherever_it_is_stored(tmp_path: Path) -> None:
    plain = Path(steps().save(tmp_path / "report.sqlite"))
    packed, archive, folder = tmp_path / "r.sqlite.gz", tmp_path / "r.zip", tmp_path / "runs"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with zipfile.ZipFile(archive, "w") as z:
        z.write(plain, "run/report.sqlite")
    folder.mkdir()
    (folder / "report.sqlite").write_bytes(plain.read_bytes())
    (folder / "other.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(100))
    for path in (packed, archive):
        assert len(analyze(path).findings) == 1
    assert load.find(folder) == [str(folder / "report.sqlite")]


def test_python_frames_of_call_chains_give_lines(tmp_path: Path) -> None:
    export = steps()
    frames = [("item", "torch/_tensor.py:40"), ("train (/w/train.py:12)", "python3"), ("<module>", "/w/train.py:30")]
    for depth, (symbol, module) in enumerate([*frames, ("_start", "python3")]):
        values = {"symbol": export.string(symbol), "module": export.string(module), "stackDepth": depth}
        export.row("CUDA_CALLCHAINS", id=3, **values)
    for row in export.tables["CUPTI_ACTIVITY_KIND_RUNTIME"]:
        row["callchainId"] = 3
    (finding,) = analyze(export.save(tmp_path / "report.sqlite")).findings
    assert finding.source is not None
    assert (finding.source.file, finding.source.line, finding.source.function) == ("/w/train.py", 12, "train")


@pytest.mark.parametrize("inside", [True, False])
def test_python_stacks_taken_in_a_call_give_its_line(tmp_path: Path, inside: bool) -> None:
    """The copy of the same op is waited for in the next call. Elsewhere a sample tells of no call."""
    export = steps()
    frames = [("item", "site-packages/torch/_tensor.py", 40), ("train", "/w/train.py", 12), ("<module>", "<string>", 1)]
    for at in range(0, 4000, 1000):
        export.stack(at + (300 if inside else 500), *frames)
    (finding,) = analyze(export.save(tmp_path / "report.sqlite")).findings
    place = finding.source and (finding.source.file, finding.source.line, finding.source.function)
    assert place == (("/w/train.py", 12, "train") if inside else None)


def test_other_marks_are_no_stacks(tmp_path: Path) -> None:
    """A payload of another size, texts that are missing, and a number too large for SQLite."""
    export = steps()
    export.stack(300, ("f", "file.py", 1 << 40))
    export.stack(1300)
    export.stack(2300, *[("g", "file.pyx", 1 << 63)] * 2)
    for row, payload in zip(export.tables["NVTX_EVENTS"][-3:], (b"\xff" * 96, b"short", b"\xff" * 47), strict=True):
        row["binaryData"] = payload
    assert len(read(export, tmp_path).frames) == 0


def with_os_calls() -> Export:
    """Before the op, in its sync, in the op beside that, and in a helper thread."""
    export = steps()
    for at in range(0, 4000, 1000):
        export.os_call("poll", at + 20, 60)
        export.os_call("read", at + 30, 5, level=1)
        export.os_call("ioctl", at + 130, 10)
        export.os_call("sched_yield", at + 112, 2)
        export.os_call("poll", at, 900, tid=77)
    return export


def test_calls_of_the_os_are_slices_of_threads_that_call_cuda(tmp_path: Path) -> None:
    """Those inside a call of CUDA, or of the OS, are parts of it."""
    trace = read(with_os_calls(), tmp_path)
    rows, _ = trace.rows_of(Category.OS_CALL)
    around = [trace.name(trace.slices.parent.item(row)) for row in rows[:2].tolist()]
    assert names(trace, Category.OS_CALL) == ["poll", "sched_yield"] * 4
    assert around == ["ProfilerStep#0", "aten::_local_scalar_dense"]
    assert [track.tid for track in trace.tracks] == ["7", "10"]


def test_calls_of_the_os_are_a_part_of_the_hosts_time(tmp_path: Path) -> None:
    """They take from Python and from the op around them, counted by call; waits and gains stay."""
    plain = analyze(steps().save(tmp_path / "plain.sqlite"))
    analysis = analyze(with_os_calls().save(tmp_path / "report.sqlite"))
    before, after = plain.host_time.counted, analysis.host_time.counted
    assert before is not None
    assert after is not None
    assert (before.os_calls_us, after.os_calls_us) == (0, 62)
    assert (before.python_us - after.python_us, before.dispatch_us - after.dispatch_us) == (60, 2)
    assert [(dear.op, dear.per_step, dear.us) for dear in after.dearest if ":" not in dear.op] == [
        ("poll", 1.0, 60.0),
        ("sched_yield", 1.0, 2.0),
    ]
    assert (analysis.step, analysis.habits) == (plain.step, plain.habits)
    assert [f.wait_us for f in analysis.findings] == [f.wait_us for f in plain.findings]


def test_a_host_that_waits_in_the_os_is_not_said_to_compute(tmp_path: Path) -> None:
    export = Export()
    for at in range(0, 6000, 1000):
        export.range("step", at, 990)
        export.os_call("poll", at + 10, 700)
        for launch in range(at + 750, at + 950, 40):
            export.kernel(export.call("cudaLaunchKernel_v7000", launch), launch + 10, 10)
    done = CliRunner().invoke(group, ["analyze", export.save(tmp_path / "report.sqlite")])
    assert "The host is the limit: one call of the OS takes 70% of the step." in done.stdout


def test_an_export_without_cuda_and_ranges_is_refused(tmp_path: Path) -> None:
    """With ranges it is analyzed as a recording on a CPU is."""
    export = Export()
    export.os_call("poll", 0, 50)
    with pytest.raises(TraceUnreadable, match="has no calls of CUDA, no device work and no NVTX ranges"):
        analyze(export.save(tmp_path / "report.sqlite"))
    export.range("step", 0, 90)
    assert len(analyze(export.save(tmp_path / "with_ranges.sqlite")).trace.slices) == 1


def test_what_it_lacks_is_said_with_the_option(tmp_path: Path) -> None:
    export = Export()
    for number in range(4):
        export.kernel(export.call("cudaLaunchKernel_v7000", number * 100), number * 100 + 10, 50)
    warnings = read(export, tmp_path).info.warnings
    assert warnings == (
        "The export of Nsight Systems has no ops (--pytorch=autograd-nvtx) and no source lines (syncscan profile).",
    )


def test_without_device_work(tmp_path: Path) -> None:
    export = Export()
    export.call("cudaGetDeviceCount_v3020", 0)
    assert "no device work" in " ".join(analyze(export.save(tmp_path / "report.sqlite")).warnings)


def test_older_schemas_lack_columns(tmp_path: Path) -> None:
    """They state no memory kinds, processes, event classes or domains."""
    export = steps()
    for rows in export.tables.values():
        for row in rows:
            for name in ("srcKind", "dstKind", "globalPid", "eventClass", "callchainId", "domainId", "endGlobalTid"):
                row.pop(name, None)
    assert analyze(export.save(tmp_path / "report.sqlite")).findings[0].rule == "item"


def test_a_report_is_exported_by_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, export = tmp_path / "report1.nsys-rep", steps().save(tmp_path / "e.sqlite")
    report.write_bytes(b"report")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TraceUnreadable, match="nsys export --type sqlite"):
        analyze(report)
    program = tmp_path / "nsys"
    program.write_text(f"#!/bin/sh\n/bin/cp {export} $5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(analyze(report).findings) == 1
    program.write_text("#!/bin/sh\necho unknown version >&2\nexit 1\n")
    with pytest.raises(TraceUnreadable, match="unknown version"):
        analyze(report)


def test_other_databases_are_named(tmp_path: Path) -> None:
    for table, sentence in (("rocpd_kernel_dispatch", "rocpd"), ("runs", "not an export of Nsight Systems")):
        path = tmp_path / f"{table}.sqlite"
        with sqlite3.connect(path) as base:
            base.execute(f"CREATE TABLE {table} (id)")
        base.close()
        with pytest.raises(TraceUnreadable, match=sentence):
            analyze(path)


def test_a_locked_database_is_read(tmp_path: Path) -> None:
    path = steps().save(tmp_path / "report.sqlite")
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    assert len(analyze(path).findings) == 1
    other.close()


def test_a_cut_database_is_read_up_to_there(tmp_path: Path) -> None:
    path = Path(steps(400).save(tmp_path / "report.sqlite"))
    text = path.read_bytes()
    path.write_bytes(text[: len(text) * 3 // 4])
    trace = load.load(path)
    assert not trace.info.complete
    assert len(trace.slices)
    path.write_bytes(text[:1000])
    with pytest.raises(TraceUnreadable, match=r"not an export|damaged SQLite database"):
        analyze(path)


def test_repair_needs_a_chrome_trace(tmp_path: Path) -> None:
    path = steps().save(tmp_path / "report.sqlite")
    done = CliRunner().invoke(group, ["repair", path, "-o", str(tmp_path / "a.json")])
    assert isinstance(done.exception, UsageError)
    assert "an export of Nsight Systems" in str(done.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]


COMMANDS = [("analyze",), ("report",), ("whatif", "--remove", "all"), ("check", "--syncs", "9"), ("fleet",)]


@pytest.mark.parametrize("command", offered(COMMANDS), ids=lambda command: command[0])
def test_commands_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    path = steps().save(tmp_path / "report.sqlite")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, [command[0], path, *command[1:]])
    assert done.exception is None, done.output
