"""`syncscan profile` from the command line: what it prints where, and what it leaves behind."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan import api
from syncscan.capture.plan import Plan
from syncscan.cli import group
from syncscan.cli.analyze import command as analyze
from syncscan.cli.profile import command
from syncscan.errors import TraceTooLarge
from tests.builder import TraceBuilder

torch = pytest.importorskip("torch")
resource = pytest.importorskip("resource")
pytestmark = pytest.mark.usefixtures("own_main_program")

SHORT = ["--calibrate", "1", "--wait", "0", "--warmup", "1", "--active", "2", "--sample", "0"]

LOOP = """
import sys, torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(int(sys.argv[1])):
    net(torch.ones(2)).sum().backward()
    opt.step()
"""


def run(tmp_path: Path, code: str, *arguments: str, memory: str = "") -> Result:
    (tmp_path / "train.py").write_text(textwrap.dedent(code))
    options = [argument for argument in arguments if argument.startswith("--")]
    words = [*SHORT, "--out", str(tmp_path / "out"), *options, str(tmp_path / "train.py"), *arguments[len(options) :]]
    return CliRunner().invoke(group, [*(["--max-memory", memory] if memory else []), "profile", *words])


def test_the_report_is_on_stdout_and_the_rest_on_stderr(tmp_path: Path) -> None:
    """The report names the trace, which lies in the folder that was asked for."""
    result = run(tmp_path, LOOP, "100")
    (trace,) = (tmp_path / "out").iterdir()
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{trace.name.partition('.')[0]} · ")
    assert f"syncscan: wrote {trace}" in result.stderr
    assert "stopped the script after 8 steps: the capture is complete" in result.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_capture_without_a_device_leads_to_a_dry_run_of_that_program(tmp_path: Path) -> None:
    """With its arguments, as typed."""
    result = run(tmp_path, LOOP, "100")
    assert "\nNext   syncscan dryrun " in result.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_folder_of_escapes_is_harmless(tmp_path: Path) -> None:
    """It is written to, and named without them."""
    folder = tmp_path / "a\x1b[2Jb"
    folder.mkdir()
    result = run(folder, LOOP, "100")
    assert len(list((folder / "out").iterdir())) == 1
    assert "a�[2Jb" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_cpu_gets_a_plain_sentence(tmp_path: Path) -> None:
    """No traceback, no empty table: there is nothing to measure here."""
    assert "a CPU has no host-device syncs to measure" in run(tmp_path, LOOP, "100").stderr


def test_the_script_s_exit_code_is_the_command_s(tmp_path: Path) -> None:
    """Also after a report."""
    assert run(tmp_path, LOOP + "sys.exit(9)", "--keep-running", "100").exit_code == 9


def test_what_was_reported_in_the_capture_is_not_reported_again_with_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace holds it too, for those who read only that."""
    note = "CUPTI stays attached to the captured process"

    def of_a_gpu(profiler: object, out: Path, name: str, metadata: dict[str, object]) -> Path:
        t = TraceBuilder(syncscan=metadata)
        for start in t.steps(2, lasts=1000):
            t.launch(at=start + 1, lasts=500)
        return t.write(out / f"{name}.pt.trace.json.gz")

    monkeypatch.setattr(
        "syncscan.capture.cupti.Attachment.release", lambda built: setattr(built, "attached_because", "so it is")
    )
    monkeypatch.setattr("syncscan.capture.trace_file.write_trace", of_a_gpu)
    result = run(tmp_path, LOOP, "100")
    assert result.stderr.count(note) == 1
    assert CliRunner().invoke(analyze, [str(tmp_path / "out")]).stderr.count(note) == 1


def test_a_script_without_steps_is_reported_how_to_mark_them(tmp_path: Path) -> None:
    """And what to do where it trains in processes of its own."""
    result = run(tmp_path, "print('hello')")
    assert "with syncscan.profile() as prof:" in result.stderr
    assert "torchrun" in result.stderr
    assert (result.exit_code, result.stdout) == (0, "hello\n")


def test_a_script_that_fails_before_its_first_step_gets_no_such_advice(tmp_path: Path) -> None:
    """Its traceback says enough."""
    result = run(tmp_path, "raise ValueError('mine')")
    assert "optimizer" not in result.stderr
    assert result.exit_code == 1


def test_too_few_steps_are_counted(tmp_path: Path) -> None:
    """With how many it takes, and how to ask for less."""
    result = run(tmp_path, LOOP, "2")
    assert "ended after 2 steps (SGD.step()), before the first recorded step: 8 are needed" in result.stderr
    assert "--calibrate 0" in result.stderr


def test_options_after_the_script_are_the_script_s(tmp_path: Path) -> None:
    """Even those that syncscan has too."""
    (tmp_path / "train.py").write_text("import sys; print(sys.argv[1:])")
    result = CliRunner().invoke(command, ["--out", str(tmp_path), str(tmp_path / "train.py"), "--wait", "-m", "--help"])
    assert result.stdout == "['--wait', '-m', '--help']\n"


def test_impossible_options_are_usage_errors(tmp_path: Path) -> None:
    """Before the script runs."""
    result = CliRunner().invoke(command, ["--active", "0", "no.py"])
    assert getattr(result.exception, "exit_code", None) == 2
    assert "active is 0" in str(result.exception)


def test_of_several_traces_the_report_says_which_it_is_of(tmp_path: Path) -> None:
    """The last; the others are counted."""
    result = run(tmp_path, LOOP, "--repeat=2", "100")
    first, last = sorted((tmp_path / "out").iterdir())
    assert first.name not in result.stdout
    assert f"this report covers the last of 2 traces, {last.name}; use syncscan analyze for the other" in result.stderr


def test_a_script_that_changes_its_folder_writes_where_it_was_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder and script are resolved before it starts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import os; os.chdir('/')" + LOOP)
    result = CliRunner().invoke(command, [*SHORT, "--out", "traces", "train.py", "100"])
    (trace,) = (tmp_path / "traces").iterdir()
    assert result.exit_code == 0
    assert f"syncscan: wrote traces/{trace.name}" in result.stderr


def test_a_capture_that_fails_is_reported_and_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --keep-running the script goes on, and its exit code is its own."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("syncscan.capture.trace_file.copy_with", full)
    result = run(tmp_path, LOOP, "100")
    assert "The capture failed and has ended; the program continues: OSError" in result.stderr
    assert result.exit_code == 1
    stored = run(tmp_path, LOOP + "print('end')", "--keep-running", "100")
    assert (stored.exit_code, stored.stdout) == (0, "end\n")


def test_a_job_that_nobody_asks_for_a_capture_is_reported(tmp_path: Path) -> None:
    """It has run to its end as without syncscan."""
    result = run(tmp_path, LOOP + "print('end')", "--on-signal=USR2", "20")
    assert "ended after 20 steps (SGD.step()), but no capture was requested before" in result.stderr
    assert (result.exit_code, result.stdout) == (0, "end\n")


def test_a_late_capture_begins_at_its_step(tmp_path: Path) -> None:
    """And ends the script when it is complete, as one from the start does."""
    assert "stopped the script after 38 steps" in run(tmp_path, LOOP, "--start-at=30", "100").stderr


@pytest.mark.parametrize(
    ("options", "seconds"),
    [([], 5.0), (["--every", "9"], 0.0), (["--on-signal", "USR2"], 0.0), (["--every", "9", "--sample", "2"], 2.0)],
)
def test_a_job_that_is_asked_again_and_again_is_not_sampled_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], seconds: float
) -> None:
    """It runs at full speed as soon as a capture is written; a capture from the start ends with five seconds of it."""
    plans: list[Plan] = []
    built = Plan.__init__
    monkeypatch.setattr(Plan, "__init__", lambda self, *a, **k: (built(self, *a, **k), plans.append(self))[0])
    (tmp_path / "train.py").write_text("")
    CliRunner().invoke(command, [*options, "--out", str(tmp_path / "out"), str(tmp_path / "train.py")])
    assert [plan.sample for plan in plans] == [seconds]


LIMIT = """
import resource
print("limit:", resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data is Linux's")
def test_the_limit_on_memory_is_for_reading_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script isn't held to it."""
    soft: list[int] = []
    analyze = api.analyze

    def limit(*_: object) -> None:
        soft.append(resource.getrlimit(resource.RLIMIT_DATA)[0])

    def limited(path: Path, **options: object) -> object:
        limit()
        return analyze(path, **options)

    monkeypatch.setattr(api, "analyze", limited)
    before = resource.getrlimit(resource.RLIMIT_DATA)[0]
    result = run(tmp_path, LIMIT + LOOP, "100", memory="400M")
    assert result.stdout.splitlines()[0] == f"limit: {before}"
    assert 0 < soft[0] < 2**40


def test_a_trace_that_needs_more_memory_than_is_allowed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written all the same, and can be read where there is more."""
    monkeypatch.setattr("syncscan.load.memory_check.EVENT_BYTES", 10**9)
    result = run(tmp_path, LOOP, "100", memory="400M")
    assert isinstance(result.exception, TraceTooLarge)
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("has_capture", [True, False])
def test_options_that_a_script_s_own_capture_replaces_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_capture: bool
) -> None:
    """Each that was given, by its name; none where they count."""
    monkeypatch.chdir(tmp_path)
    head = "import sys, syncscan\nsys.argv[1] = '9'\nwith syncscan.profile('mine', calibrate=0, active=1) as prof:\n"
    code = head + textwrap.indent(LOOP + "    prof.step()\n", "    ") if has_capture else LOOP
    errors = run(tmp_path, code, "100").stderr
    text = "uses syncscan.profile itself, so --wait, --warmup, --active, --calibrate, --sample, --out had no effect"
    assert (text in errors) is has_capture


def test_the_steps_that_are_reported_are_those_that_ran(tmp_path: Path) -> None:
    """Neither one more nor one less than the script itself counts."""
    result = run(tmp_path, LOOP, "5")
    assert "The script ended after 5 steps" in result.stderr
    result = run(tmp_path, LOOP.replace("opt.step()", "print('step', i + 1, file=sys.stderr); opt.step()"), "100")
    last = [line for line in result.stderr.splitlines() if line.startswith("step ")][-1]
    assert f"stopped the script after {last.split()[1]} steps" in result.stderr
