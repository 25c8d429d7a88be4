"""The programs that the measured numbers come from start, and say what they lack."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import cost_of_waits, stages, wandering, watch_cost, watch_noise, watched_programs
from benchmarks.joint import table
from syncscan import load
from syncscan.detect import detect

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SHARED = {"capture_steps", "watched_jobs"}
"""Modules that benchmarks share, and that nobody calls."""
MODULES = sorted({path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")} - SHARED)
torch = pytest.importorskip("torch")


def called(
    module: str, *args: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Call a command in this process, which has imported torch already: return exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", [f"{module}.py", *args])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{module}", run_name="__main__")
    output = capsys.readouterr()
    return int(ended.value.code or 0), output.out, output.err


def run(module: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("module", MODULES)
def test_each_says_how_it_is_called(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 0, and without measuring anything."""
    if module == "mutants":
        pytest.importorskip("mutmut")  # comes with `make mutants`
    code, out, err = called(module, "--help", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0, err
    assert out.startswith(f"usage: {module}.py")


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize(
    "arguments",
    [
        *(("after_capture",), ("job_on_signal",), ("capture_cost",), ("capture_waits",), ("guard_cost",)),
        *(("watch_cost",), ("watched_programs",), ("watch_shares",)),
        *(("op_database", "record", "folder"), ("whatif", "record", "folder"), ("wandering", "record", "file")),
    ],
)
def test_what_measures_on_a_gpu_asks_for_one(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a sentence, and without leaving a folder."""
    code, _, err = called(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert err.splitlines()[-1].endswith("error: this measures on a GPU, and there is none.")
    assert not (ROOT / "folder").exists()


@pytest.mark.slow
def test_the_smallest_of_each_kind(tmp_path: Path) -> None:
    """A trace is tiled, read beside other readers, and looked at for the thresholds."""
    source, big = ROOT / "sample_traces/clean.pt.trace.json.gz", tmp_path / "big.json.gz"
    assert run("tile", str(source), str(big), "0.5").returncode == 0
    read = run("reading", "--sizes", "0.1", "--runs", "1", "--only", "reading", "--folder", str(tmp_path))
    assert "| syncscan, reading |" in read.stdout
    assert "launches that outlast their kernel" in run("detect_thresholds", str(big)).stdout


def test_a_host_that_wanders_is_distinguished_from_one_that_jitters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both vary equally: the next steps, and a diff with another process, differ."""
    blocks = (1000.0, 1000.0, 1000.0)
    apart, slow, fast = (900.0, 1100.0) * 20, (1100.0, 1090.0) * 20, (900.0, 910.0) * 20
    jitters = [wandering.Process(bool(k % 2), blocks, (apart,) * 5) for k in range(6)]
    wanders = [wandering.Process(bool(k % 2), blocks, (slow, fast, slow, fast, slow)) for k in range(6)]
    for processes, elsewhere in ((jitters, "0% of 24"), (wanders, "100% of 24")):
        wandering.table(processes)
        printed = capsys.readouterr().out
        assert printed.count(f"the next forty lie elsewhere in {elsewhere}") == 2
        assert "| with captures | 3 |" in printed
        assert "two processes, any two: called a change in 0% of 75" in printed


def test_a_trace_without_its_waits_has_the_same_events_and_no_sync_point() -> None:
    """The difference is the cost of the waits."""
    trace = load.load(str(ROOT / "sample_traces" / "maskedloss.v0.pt.trace.json.gz"))
    without = cost_of_waits.without_waits(trace)
    assert len(without.slices) == len(trace.slices)
    assert [len(detect(t)[0]) for t in (trace, without)] == [18, 0]


def test_what_the_tests_read_is_there_when_the_code_is_mutated() -> None:
    """Every folder of the project: a test that lacks one fails of every mutant, which then all count as killed."""
    mutated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    copied = {*mutated["source_paths"], *mutated["also_copy"], "tests"}
    if not (ROOT / ".git").exists():
        pytest.skip("what is tracked is told by git alone")
    tracked = subprocess.run(["git", "ls-tree", "-d", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    assert set(tracked.stdout.split()) - copied == {".github"}


def test_a_stage_above_its_ceiling_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at its ceiling isn't, and one that has no ceiling yet is."""
    monkeypatch.setattr(stages, "CEILINGS", {"load": 0.5, "detect": 0.2})
    assert stages.above_ceiling({"load": 0.5, "detect": 0.21, "unknown": 0.001}) == ["detect", "unknown"]


def test_every_stage_of_an_analysis_has_a_ceiling(capsys: pytest.CaptureFixture[str]) -> None:
    """Measured once over one recording: the stages that the clock names are those of the table."""
    recording = ROOT / "sample_traces" / "clean.pt.trace.json.gz"
    _, seconds = stages.measured([recording], runs=1)
    assert set(seconds) == set(stages.CEILINGS)
    assert min(seconds.values()) > 0


def test_every_program_was_timed_in_six_states() -> None:
    """And so that both changes together are never much slower than the program as it is: 22 programs of an H100."""
    times = dict(table.rows(table.RECORDED))
    assert (len(times), {len(states) for states in times.values()}) == (22, {6})
    assert [name for name, (as_it_is, *_, both) in times.items() if both > as_it_is] == []


def test_each_watched_program_has_each_wait_on_a_line_of_its_own() -> None:
    """Thirty programs, whose sources are Python."""
    assert len(set(watched_programs.CATALOGUE)) == 30
    for spec in watched_programs.CATALOGUE:
        text = watched_programs.source(spec)
        compile(text, spec.name, "exec")
        assert [text.count(f"  # {wait}\n") for wait in spec.waits] == [1] * len(spec.waits)


def test_the_part_of_times_in_intervals() -> None:
    assert watched_programs.within([(10, 20), (30, 40)], [5, 10, 25, 35, 40, 50]) == 0.5


def test_what_samples_cost_is_the_time_of_steps_that_hold_one() -> None:
    """A step takes 10 ms, and each sample a tenth more: at 20 samples a second 2 % of the time."""
    due = [25_000_000 + k * 50_000_000 for k in range(200)]
    ends, k = [0], 0
    while len(ends) < 1000:
        end = ends[-1] + 10_000_000
        hit = k < len(due) and due[k] < end
        ends.append(end + 1_000_000 * hit)
        k += hit
    share, error = watch_cost.by_samples([{"ends": ends, "due": due}], 20)
    assert abs(share - 0.02) < 0.002
    assert error < 0.002


def test_a_stored_recording_comes_back() -> None:
    """Samples that waited have their line, and others none."""
    ticks = [
        (1_000_000, 1, 0, False, "/job/train.py", 7, "device"),
        (2_000_000, 2, 0, True, "/job/train.py", 7, "device?"),
        (3_000_000, 1, 0, False, "/job/train.py", 9, "host"),
    ]
    noise = watch_noise.of_stored(watch_noise.stored(ticks, [500_000, 2_500_000]))
    key = ("train.py", 7, "")
    assert noise.rows == [(500_000, key, 1), (1_500_000, None, 2), (2_500_000, None, 1)]
    assert noise.ends == [0, 2_000_000]
