"""Two commands are compared by their number: in turns while they run, or whole."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from syncscan.errors import ProgramFailed
from syncscan.proof.command_trial import NOT_COMPARED, CommandOptions, CommandTrial, CommandTrials, Metric
from syncscan.proof.outcome import Measured, Proof, ProofVerdict, Same, Side
from syncscan.proof.prove import prove_commands
from syncscan.proof.running_process import CommandRun, ShellCommand
from syncscan.scratch import KERNEL, kind_here
from tests.until import until

METRIC = Metric(r"step (\S+)")


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -S -c {shlex.quote(code)}"


def both(before: str, after: str) -> dict[Side, ShellCommand]:
    return {Side.BEFORE: ShellCommand(before, "first"), Side.AFTER: ShellCommand(after, "second")}


def proven(before: str, after: str, of: CommandOptions = CommandOptions(METRIC), limit_s: float = 120.0) -> Proof:  # noqa: B008
    return prove_commands(both(before, after), of, limit_s=limit_s, in_place=True)


def counting(number: str) -> str:
    """A command that prints a number until it is ended."""
    return python(f"import time\nwhile True:\n    time.sleep(0.01)\n    print('step', {number}, flush=True)")


def test_commands_that_go_on_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers are what counts, however long they took."""
    monkeypatch.setattr("syncscan.proof.command_trial.TURN_S", 0.05)
    proof = proven(counting("10"), counting("7"))
    assert (proof.verdict, proof.together, proof.measured) == (ProofVerdict.PROVEN, True, Measured.PRINTED)
    assert proof.gain is not None
    assert proof.gain.share == pytest.approx(0.3)
    assert proof.result == NOT_COMPARED


def test_a_command_that_ends_gives_a_number_for_each_run() -> None:
    """A larger one is better if that is said; lines besides are compared if that is asked for."""
    command = "echo hello; echo step {}"
    of = CommandOptions(METRIC, higher=True, same_output=True)
    proof = proven(command.format(100), command.format(150), of)
    assert (proof.verdict, proof.together, proof.result.same) == (ProofVerdict.PROVEN, False, Same.YES)
    assert (proof.before_value, proof.after_value) == pytest.approx((100, 150))
    other = proven(command.format(100), command.format(150).replace("hello", "bye"), of)
    assert (other.verdict, other.result.why) == (ProofVerdict.DIFFERENT, "line 1 is 'hello' and 'bye'")


def test_equal_commands_have_no_gain() -> None:
    """Where both print the same number each time."""
    assert proven("echo step 5", "echo step 5").verdict is ProofVerdict.NO_GAIN


def test_without_a_metric_the_time_of_a_run_counts() -> None:
    """It is counted from start to end."""
    proof = proven("sleep 0.2", "sleep 0.1", CommandOptions(), limit_s=3)
    assert proof.measured is Measured.RUN
    assert all(pair.before > 0.2 and pair.after > 0.1 for pair in proof.pairs)


def test_of_several_numbers_the_first_is_warm_up() -> None:
    """And the median of the others counts."""
    proof = proven("for n in 90 5 6 70; do echo step $n; done", "for n in 90 3 3 70; do echo step $n; done")
    assert (proof.before_value, proof.after_value) == pytest.approx((6, 3))


def test_the_slowest_rank_counts() -> None:
    """Where lines name their rank."""
    ranks = "printf '[rank0]: step %s\\n[rank1]: step %s\\n[rank0]: step %s\\n'"
    proof = proven(f"{ranks} 1 8 4", f"{ranks} 1 5 4")
    assert (proof.before_value, proof.after_value) == pytest.approx((8, 5))


class Scripted:
    """A run that prints the next of some numbers whenever it is awaited, each so many s later; it was stopped."""

    def __init__(self, *numbers: float, pace: Sequence[float] = ()) -> None:
        self.matched: list[tuple[str, float]] = []
        self._times = itertools.accumulate(pace or [1.0] * len(numbers))
        self.times: list[float] = []
        self._numbers, self.code = iter(numbers), None

    def wait(self, enough: Callable[[], bool], deadline: float) -> bool:
        while not enough():
            self.matched.append(("", next(self._numbers)))
            self.times.append(next(self._times))
        return True

    def resume(self) -> bool:
        return True


def turns_of(*numbers: float, pace: Sequence[float] = ()) -> float:
    """Return what a turn of three numbers measures, after two of warm-up and two behind a stop."""
    with CommandTrials({}, CommandOptions(METRIC), 60, in_place=True) as trials:
        trial = CommandTrial(Scripted(*numbers, pace=pace), "it", trials)  # type: ignore[arg-type]
        trial.ready()
        return trial.turn(3).mean


def test_the_numbers_after_a_stop_are_left_out() -> None:
    """One of them counts the time in which the command was stopped: the second, if the first was printed late."""
    assert turns_of(10, 10, 900, 11, 12, 13, 14) == 13
    assert turns_of(10, 10, 11, 900, 12, 13, 14) == 13


def test_a_mean_since_the_begin_takes_no_turns() -> None:
    """It counts each stop for long; so both run one after the other."""
    with pytest.raises(ProgramFailed, match="it counts the time in which it was stopped"):
        turns_of(10, 10, 15, 15, 14, 14, 13)
    with pytest.raises(ProgramFailed, match="it counts the time in which it was stopped"):
        turns_of(10, 10, 15, 15, 14, 14, 13, pace=(0, 0, 60, 0, 1, 1, 1))  # of a buffer


def test_numbers_that_come_more_slowly_are_of_a_busier_machine() -> None:
    """They are no means since the begin, which come as before, so the two go on taking turns."""
    assert turns_of(10, 10, 15, 15, 14, 14, 13, pace=(1, 1, 60, 1.5, 1.4, 1.4, 1.3)) == pytest.approx(41 / 3)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo step 5; exit 3", "first ended with exit code 3."),
        ("echo nothing", r"first printed nothing that step (\S+) finds."),
        ("echo step 0", "first printed 0, which has no ratio to another number."),
    ],
)
def test_a_command_without_a_number_fails(command: str, message: str) -> None:
    """With the end of what it printed."""
    with pytest.raises(ProgramFailed) as failed:
        proven(command, "echo step 5")
    assert failed.value.message == message


def test_a_server_is_timed_by_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it says that it is ready; both servers may use the same port, here a file."""
    monkeypatch.chdir(tmp_path)
    server = "echo {} > answer; echo ready; exec sleep 60"
    of = CommandOptions(METRIC, ready="^ready", client="echo step $(cat answer)")
    proof = proven(server.format(8), server.format(4), of)
    assert (proof.verdict, proof.before_value, proof.after_value) == (ProofVerdict.PROVEN, 8, 4)


def test_all_ranks_stop_and_none_is_left(tmp_path: Path) -> None:
    """Those of a launcher too, which have a session of their own."""
    rank = "import time\nwhile True: print('step 1', flush=True); time.sleep(0.01)"
    launcher = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-S', '-c', {rank!r}], start_new_session=True)\n"
    )
    run = CommandRun(ShellCommand(python(launcher + "import time; time.sleep(60)")), None, METRIC.in_line)
    deadline = time.monotonic() + 120
    assert run.wait(lambda: len(run.matched) > 3, deadline)
    run.pause()
    pids = run.pids()
    assert len(pids) >= 2
    until(lambda: {state(pid) for pid in pids} == {"T"})
    run.resume()
    count = len(run.matched)
    assert run.wait(lambda: len(run.matched) > count + 20, deadline)
    run.end(5)
    until(lambda: not any(Path(f"/proc/{pid}").exists() and state(pid) != "Z" for pid in pids))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(kind_here() != KERNEL, reason="no mount namespaces here")
def test_a_command_writes_into_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run begins with the user's files as they are."""
    monkeypatch.chdir(tmp_path)
    Path("last").write_text("mine")
    command = ShellCommand("cat last; echo theirs > last; echo step 2", "it")
    with CommandTrials(
        {Side.BEFORE: command, Side.AFTER: command}, CommandOptions(METRIC, same_output=True), 60
    ) as both:
        assert both.tried().same is Same.YES
    assert Path("last").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_one_that_has_ended_is_signaled_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be that of another process by then."""
    run = CommandRun(ShellCommand("true"), None, None)
    run.wait(lambda: False, time.monotonic() + 60)
    run.end(0)
    sent: list[int] = []
    monkeypatch.setattr(run, "_signal", sent.append)
    run.pause()
    run.end(0)
    assert not sent


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by their marks on Linux alone")
def test_a_stopped_command_ends_with_the_proof_that_is_killed(tmp_path: Path) -> None:
    """Nobody else would ever resume it."""
    proof = tmp_path / "proof.py"
    proof.write_text(
        "import sys, time\n"
        f"from {CommandTrials.__module__} import *\n"
        f"from {CommandRun.__module__} import CommandRun, ShellCommand\n"
        "with CommandTrials({}, CommandOptions(), 60, in_place=True):\n"
        "    run = CommandRun(ShellCommand('sleep 600 & sleep 600'), None, None)\n"
        "    while len(run.pids()) < 3: time.sleep(0.01)\n"
        "    run.pause()\n"
        "    print(*run.pids(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    killed = subprocess.Popen([sys.executable, str(proof)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    with killed, killed.stdout:
        pids = killed.stdout.readline().split()
        killed.kill()
    assert len(pids) == 3
    until(lambda: not any(Path(f"/proc/{pid}").exists() and state(int(pid)) != "Z" for pid in pids))
