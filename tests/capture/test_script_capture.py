"""An unchanged script under a capture behaves as under `python`, and its steps are found."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan.capture.plan import Plan
from syncscan.capture.script_capture import ScriptRun, run_script
from syncscan.capture.session import Session
from syncscan.errors import UsageError

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("own_main_program")

PLAN = Plan(wait=0, warmup=1, active=2, calibrate=1, settle=0)

LOOP = """
import sys, torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(steps):
    for i in range(steps):
        net(torch.ones(2)).sum().backward()
        with torch.profiler.record_function("optimizer"):
            opt.step()
        opt.zero_grad()
"""

Run = Callable[..., ScriptRun]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(
        code: str, *arguments: str, keep_running: bool = False, module: bool = False, plan: Plan = PLAN
    ) -> ScriptRun:
        (tmp_path / "train.py").write_text(LOOP + textwrap.dedent(code))
        return run_script(
            "train" if module else "train.py",
            arguments,
            lambda: Session(tmp_path / "out", "train", plan, notify=lambda sentence: None),
            keep_running=keep_running,
            module=module,
        )

    return run


def test_steps_are_the_optimizer_s_and_their_slices_nest(run: Run) -> None:
    """A step ends when the scope around the optimizer is closed: no slice crosses a step's bounds."""
    done = run("train(100)")
    trace = json.loads(gzip.decompress(done.paths[0].read_bytes()))
    slices = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in trace["traceEvents"] if e.get("ph") == "X"]
    steps = [s for s in slices if s[2].startswith("ProfilerStep#")]
    scopes = [s for s in slices if s[2] == "optimizer"]
    assert (len(steps), len(scopes)) == (2, 2)
    assert all(sum(a <= s[0] and s[1] <= b for a, b, _ in steps) == 1 for s in scopes)


def test_the_script_is_ended_when_the_capture_is_complete(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Its `finally` blocks run, what comes after the loop doesn't, and that is no failure."""
    done = run("try:\n    train(100)\n    print('after')\nfinally:\n    print('finally')")
    assert capfd.readouterr().out == "finally\n"
    assert (done.exit_code, done.stopped, done.complete, done.steps) == (0, True, True, 5)
    assert done.marked_by == "SGD.step()"


def test_a_thread_that_goes_on_does_not_hold_up_the_end_of_a_capture(run: Run) -> None:
    """A script that comes to its own end waits for its threads, as under `python`; one that is ended doesn't."""
    done = run(
        """
        import threading
        sys.over = threading.Event()
        threading.Thread(target=sys.over.wait).start()
        train(100)
        """
    )
    over = sys.over  # type: ignore[attr-defined]
    assert not over.is_set()
    over.set()
    assert (done.stopped, done.complete) == (True, True)


def test_it_can_be_kept_running(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Then the exit code is the script's."""
    done = run("train(100)\nprint('after')\nsys.exit(5)", keep_running=True)
    assert (capfd.readouterr().out, done.exit_code, done.stopped) == ("after\n", 5, False)


def test_a_script_that_swallows_the_end_runs_on(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """It is told a few times and then left alone."""
    done = run(
        "for _ in range(9):\n    try:\n        train(10)\n    except BaseException:\n        pass\nprint('after')"
    )
    assert (capfd.readouterr().out, done.exit_code, len(done.paths)) == ("after\n", 0, 1)


def test_a_script_finds_itself_as_under_python(run: Run, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`sys.argv`, `sys.path[0]`, `__name__`, `__file__`, and a `__main__` module that holds its classes."""
    run(
        "class A: pass\nprint(sys.argv, __name__, __file__, sys.path[0])\nprint(sys.modules['__main__'].A is A)",
        "-x",
        "1",
    )
    report, result = capfd.readouterr().out.splitlines()
    assert report == f"['train.py', '-x', '1'] __main__ {tmp_path / 'train.py'} {tmp_path}"
    assert result == "True"


def test_a_module_runs_as_with_dash_m(run: Run, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`sys.argv[0]` is the file, and its steps are found too."""
    done = run("print(sys.argv, __name__)\ntrain(100)", "1", module=True)
    assert capfd.readouterr().out == f"['{tmp_path / 'train.py'}', '1'] __main__\n"
    assert len(done.paths) == 1


def test_a_script_that_raises_keeps_its_traceback(run: Run, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without a frame of ours, with exit code 1, and with what was recorded until then."""
    done = run("def fail():\n    raise ValueError('mine')\ntrain(4)\nfail()")
    error = "".join(line for line in capfd.readouterr().err.splitlines(True) if not line.startswith("USDT:"))
    assert error.endswith("ValueError: mine\n")
    assert error.startswith(f'Traceback (most recent call last):\n  File "{tmp_path / "train.py"}", line')
    assert "syncscan" not in error
    assert "runpy" not in error
    assert (done.exit_code, len(done.paths), done.complete) == (1, 1, False)


@pytest.mark.parametrize(
    ("statement", "code"),
    [("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('why')", 1), ("raise KeyboardInterrupt", 130)],
)
def test_exit_codes_are_the_interpreter_s(run: Run, statement: str, code: int) -> None:
    """Whichever way the script ends."""
    assert run(statement).exit_code == code


def test_the_reason_of_an_exit_is_shown(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """As the interpreter does, on stderr."""
    run("sys.exit('why')")
    assert capfd.readouterr().err == "why\n"


def test_a_script_without_steps_is_distinguished(run: Run) -> None:
    """No optimizer stepped, so nothing marked a step."""
    done = run("pass")
    assert (done.marked_by, done.steps, done.paths) == ("", 0, ())


def test_a_script_that_captures_itself_does_it_its_way(run: Run, tmp_path: Path) -> None:
    """Its own `prof.step()` marks the steps, its own arguments stand, and its file is reported."""
    done = run(
        """
        from syncscan.capture.session import profile
        with profile("mine", "own", wait=0, warmup=1, active=1, calibrate=0, notify=print) as prof:
            for _ in range(9):
                train(2)
                prof.step()
        """
    )
    assert done.marked_by == "prof.step()"
    assert [path.parent for path in done.paths] == [tmp_path / "mine"]
    assert not (tmp_path / "out").exists()


def test_a_script_that_steps_before_it_captures_itself_does_it_its_way_too(run: Run, tmp_path: Path) -> None:
    """A first epoch, say: the capture that began with it makes room, and leaves nothing."""
    done = run(
        """
        from syncscan.capture.session import profile
        train(1)
        with profile("mine", "own", wait=0, warmup=1, active=1, calibrate=0, notify=print) as prof:
            for _ in range(9):
                train(2)
                prof.step()
        """
    )
    assert (done.exit_code, done.marked_by, done.complete) == (0, "prof.step()", True)
    assert [path.parent for path in done.paths] == [tmp_path / "mine"]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_second_capture_of_the_script_s_own_at_the_same_time_is_refused(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    """As without a runner; it counts for nothing, and the first goes on."""
    done = run(
        """
        from syncscan.capture.session import profile
        from syncscan.errors import UsageError
        with profile("mine", "own", wait=0, warmup=1, active=1, calibrate=0, notify=lambda sentence: None) as prof:
            try:
                profile("other", "own").__enter__()
            except UsageError as error:
                print(error)
            for _ in range(9):
                prof.step()
        """,
    )
    assert "already running" in capfd.readouterr().out
    assert (done.complete, len(done.paths), done.steps) == (True, 1, 2)


def test_the_rarer_optimizer_marks_the_steps(run: Run) -> None:
    """A critic steps three times for each step of the generator."""
    done = run(
        """
        critic, opt = opt, torch.optim.Adam(net.parameters())
        for _ in range(50):
            for _ in range(3):
                critic.step()
            train(1)
        """,
        plan=Plan(wait=0, warmup=1, active=2, calibrate=8, settle=0),
    )
    assert done.marked_by == "Adam.step()"


def test_a_compiled_step_is_not_compiled_anew(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Dynamo doesn't look into the hook, whose course changes from phase to phase."""
    run(
        """
        import torch._dynamo
        step = torch.compile(train, backend="eager")
        for i in range(12):
            step(1)
            if i == 2:
                compiled = dict(torch._dynamo.utils.counters["frames"])
        print(compiled == dict(torch._dynamo.utils.counters["frames"]))
        torch._dynamo.reset()
        """,
        keep_running=True,
    )
    assert capfd.readouterr().out == "True\n"


def test_no_hook_stays_in_the_process(run: Run) -> None:
    """Torch's classes, hooks and finders are as before; what a script is run as stays, for what it runs at exit."""
    scope = importlib.import_module("torch.autograd.profiler").record_function
    optimizers = importlib.import_module("torch.optim.optimizer")
    before = (list(sys.meta_path), scope.__enter__, scope.__exit__)
    hooks = dict(optimizers._global_optimizer_post_hooks)
    run("train(100)")
    assert (list(sys.meta_path), scope.__enter__, scope.__exit__) == before
    assert dict(optimizers._global_optimizer_post_hooks) == hooks
    assert Session.opened is None
    assert Session.running is None


def test_a_script_that_is_not_there_is_a_usage_error(run: Run) -> None:
    """Before anything else happens."""
    with pytest.raises(UsageError, match=r"no script at nowhere\.py"):
        run_script("nowhere.py", (), lambda: pytest.fail("made a session"))


@pytest.mark.slow
def test_torch_is_imported_by_the_script_not_before_it(tmp_path: Path) -> None:
    """So that what a script sets in the environment first still counts; workers of a DataLoader come through too."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            assert "torch" not in sys.modules
            import torch
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 64
                def __getitem__(self, i): return torch.ones(2)
            if __name__ == "__main__":
                net = torch.nn.Linear(2, 2)
                opt = torch.optim.SGD(net.parameters(), lr=0.1)
                for start in ("fork", "spawn"):
                    loader = torch.utils.data.DataLoader(Data(), 4, num_workers=1, multiprocessing_context=start)
                    for x in loader:
                        net(x).sum().backward()
                        opt.step()
                    print(start, "done")
            """
        )
    )
    code = (
        "import sys; from pathlib import Path; from syncscan.capture.script_capture import run_script;"
        "from syncscan.capture.session import Session; from syncscan.capture.plan import Plan;"
        "run = run_script(sys.argv[1], (), lambda: Session(Path('out'), 'train', Plan(active=2)), keep_running=True);"
        "print(run.exit_code, len(run.paths), run.complete)"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)]),
    }
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        env=environment,
        check=False,
    )
    assert ran.stdout.splitlines()[-3:] == ["fork done", "spawn done", "0 1 True"], ran.stderr
