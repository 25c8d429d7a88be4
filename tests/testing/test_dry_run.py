"""Without a GPU marked tests run dry: the same failures, and never a pass for what wasn't seen."""

from __future__ import annotations

import re

import pytest

from syncscan.scratch import landlock

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
    pytest.mark.usefixtures("imported"),
]
pytest_plugins = ["pytester"]

TESTS = """
import pytest, torch
import syncscan as library

def log(t):
    return t.item()

@pytest.fixture
def x():
    yield torch.ones(4, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)
    torch.cuda.synchronize()

@pytest.fixture(scope="module")
def wide():
    return torch.cuda.is_available()

@pytest.mark.no_syncs
def test_reads(x):
    log(x.sum())

@pytest.mark.no_syncs(allow=["test_it.py:log"])
def test_keeps(x, wide):
    assert not wide
    with library.allow("set up"):
        torch.ones(4).to("cuda")
    x.sum().item()  # syncscan: allow[item] the log
    log(x.sum())
    (x * x).sum().backward()

@pytest.mark.no_syncs
def test_another_rule_is_allowed(x):
    x.tolist()  # syncscan: allow[item] the log

@pytest.mark.limit_syncs(2)
def test_steps(syncscan, x):
    for many in (5, 1, 3):
        for _ in range(many):
            x.sum().item()
        syncscan.step()

@pytest.mark.no_syncs
def test_backward(x):
    with library.allow("the forward pass"):
        chosen = x[x > 0]
    chosen.sum().backward()

@pytest.mark.no_syncs
def test_on_the_cpu():
    torch.ones(3).sum().item()

@pytest.mark.limit_syncs(1, wait_ms=3)
def test_times():
    pass

@pytest.mark.no_syncs
def test_extension(x):
    torch.ops.syncscan_of_a_test.f(x)

def test_other():
    assert not torch.cuda.is_available()
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the tests in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=TESTS)
    return lambda *options: pytester.runpytest_inprocess("-p", "syncscan.pytest_plugin", "--strict-markers", *options)


@pytest.fixture
def extension():
    """An op that syncscan doesn't know."""
    from torch import library as libraries

    built = libraries.Library("syncscan_of_a_test", "FRAGMENT")
    built.define("f(Tensor x) -> Tensor")
    built.impl("f", lambda x: x.clone(), "CompositeExplicitAutograd")
    return built


def test_marks_hold_without_a_gpu(run, extension) -> None:
    """Fixtures of a test find the device, wider ones don't; steps, allowed lines and rules count as on a GPU."""
    done = run("-rs")
    done.assert_outcomes(failed=4, passed=3, skipped=2)
    assert "bound_thread" not in done.stdout.str()
    done.stdout.fnmatch_lines(
        [
            "*_ test_reads _*",
            "1 sync in step 1; @pytest.mark.no_syncs allows 0 syncs in a step.",
            "test_it.py:5 in log: item waits (a blocking copy or a stream synchronization)",
            "    called from test_it.py:18 in test_reads",
            "    `.item()`, `float(t)` and `int(t)` wait for a number. Instead (syncscan explain item):",
            "A dry run, without a GPU. All * ops on the simulated device were recognized.",
            "*_ test_another_rule_is_allowed _*",
            "    `.tolist()` copies a tensor to the host and waits. Instead (syncscan explain tolist):",
            "*_ test_steps _*",
            "3 syncs in step 3; @pytest.mark.limit_syncs allows 2 syncs in a step.",
            "*_ test_backward _*",
            "test_it.py:43 in test_backward: waits (a blocking copy or a stream synchronization)",
            "*(syncscan explain index-backward):",
            "*NotUnderstood: *test_extension met its limit in a dry run, *syncscan_of_a_test::f*",
            "SKIPPED*no GPU here, and nothing ran on the simulated one*",
            "SKIPPED*wait_ms needs times, and a dry run has none",
        ]
    )


def test_dry_runs_can_be_left_out(run) -> None:
    """By the configuration: marked tests are skipped then, and say so."""
    done = run("-rs", "-o", "syncscan_dryrun=false")
    done.assert_outcomes(passed=1, skipped=8)
    done.stdout.fnmatch_lines(["SKIPPED*dry runs are off (syncscan_dryrun = false)*"])


def test_a_report_is_kept(run, pytester: pytest.Pytester) -> None:
    """A page for each dry run; there is no trace."""
    run("--syncscan-report=out", "-k", "test_reads").assert_outcomes(failed=1, deselected=8)
    assert [path.name for path in (pytester.path / "out").iterdir()] == ["test_it_py_test_reads.html"]


RACES = """
import pytest, torch

def read():
    host = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
    return host

@pytest.mark.no_races
def test_reads_too_early():
    read().sum()

@pytest.mark.no_races
def test_waits():
    host = read()
    torch.cuda.synchronize()
    host.sum()
"""


def test_a_race_fails_a_test_marked_no_races(run, pytester) -> None:
    """With both lines and the fix; a synchronize in between passes, and syncs don't matter."""
    pytester.makepyfile(test_it=RACES)
    result = run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*1 race; @pytest.mark.no_races allows none.*", "*read in test_it.py:*copied in test_it.py:*"]
    )


@pytest.mark.parametrize(
    ("mark", "answer"),
    [
        ("no_races(allow=[])", "*@pytest.mark.no_races takes device, but got*"),
        ("no_syncs(device='npu')", "*No device 'npu' can be simulated. Choose one of cuda, xpu, mps.*"),
    ],
)
def test_a_mark_that_can_mean_nothing_is_refused(run, pytester, mark: str, answer: str) -> None:
    """By a sentence that says what it takes."""
    pytester.makepyfile(test_it=f"import pytest\n@pytest.mark.{mark}\ndef test(): pass\n")
    run().stdout.fnmatch_lines([answer])


DEVICES = """
import pytest, torch

@pytest.fixture
def batch(device):
    return torch.ones(1 << 20).to(device, non_blocking=True)

DEVICES = [pytest.param(name, marks=pytest.mark.no_syncs(device=name)) for name in ("cuda", "xpu", "mps")]

@pytest.mark.parametrize("device", DEVICES)
def test_reads(device, batch):
    batch.sum().item()

@pytest.mark.parametrize("device", DEVICES)
def test_moves(device):
    torch.ones(1 << 20).to(device, non_blocking=True)

@pytest.mark.no_races(device="mps")
def test_refills():
    host = torch.ones(4)
    on_device = torch.empty(4, device="mps")
    on_device.copy_(host, non_blocking=True)
    host.zero_()
"""


def test_a_mark_names_the_device(run, pytester) -> None:
    """Its fixtures see it, too; a large pageable copy waits on CUDA alone."""
    pytester.makepyfile(test_it=DEVICES)
    result = run("-rf")
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_moves?cuda?*", "FAILED test_it.py::test_refills*"])


@pytest.mark.parametrize("mark", ["no_syncs(dry=True)", "no_syncs(device='cuda')"])
def test_a_test_that_is_marked_dry_runs_so_beside_a_gpu(run, pytester, monkeypatch, mark: str) -> None:
    """So that it takes none, and fails alike on each machine."""
    monkeypatch.setattr("syncscan.capture.device.vendor", lambda: "cuda")
    pytester.makepyfile(
        test_it=f"import pytest, torch\n@pytest.mark.{mark}\ndef test(): torch.ones(2, device='cuda').tolist()\n"
    )
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["A dry run, without a GPU. All * ops on the simulated device were recognized."])


WRITING = """
import os, tempfile
import pytest, torch

@pytest.fixture
def log():
    open("train.log", "a").write("begun")
    yield "train.log"
    os.remove("train.log")

@pytest.fixture(scope="module")
def shared():
    os.mkdir("shared")
    assert "SYNCSCAN_DRY_RUN" not in os.environ
    temporary = tempfile.mkdtemp()
    yield "shared"
    os.rmdir(temporary)
    os.rmdir("shared")

@pytest.mark.no_syncs
def test_writes(log, shared, tmp_path):
    torch.ones(2, device="cuda").add(1)
    assert open(log).read() == "earlier" + "begun"
    torch.save({"step": 1}, "last.pt")
    torch.save({"step": 1}, tmp_path / "last.pt")
    assert torch.load("last.pt")["step"] == 1 == torch.load(tmp_path / "last.pt")["step"]
    assert os.environ["SYNCSCAN_DRY_RUN"] == "1"

def test_afterwards(shared):
    assert "SYNCSCAN_DRY_RUN" not in os.environ
    assert open("last.pt").read() == "checkpoint"
    assert os.listdir(shared) == []
"""


def test_a_dry_test_changes_no_file(pytester: pytest.Pytester, run) -> None:
    """A test and its own fixtures write into copies; fixtures that it shares with other tests don't."""
    (pytester.path / "train.log").write_text("earlier")
    (pytester.path / "last.pt").write_text("checkpoint")
    pytester.makepyfile(test_it=WRITING)
    run().assert_outcomes(passed=2)
    assert (pytester.path / "train.log").read_text() == "earlier"
    assert (pytester.path / "last.pt").read_text() == "checkpoint"
    assert not (pytester.path / "shared").exists()


NATIVE = """
import ctypes, subprocess
import pytest, torch

def writes():
    by_program = subprocess.run("echo x > last.pt", shell=True).returncode == 0
    return by_program or ctypes.CDLL(None).creat(b"last.pt", 0o600) != -1

@pytest.fixture(scope="module")
def shared():
    subprocess.run("touch shared", shell=True, check=True)
    yield
    subprocess.run("rm shared", shell=True, check=True)

@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield
    assert not writes(), "in the teardown"

@pytest.mark.no_syncs
def test_dry(shared, no_grad):
    torch.ones(2, device="cuda").add(1)
    assert not torch.is_grad_enabled()
    assert not writes()

def test_afterwards(shared):
    assert torch.is_grad_enabled()
    assert open("last.pt").read() == "checkpoint"
    assert writes()
"""


@pytest.mark.skipif(not landlock.holds(), reason="no Landlock here")
def test_what_cannot_be_redirected_is_refused_to_a_dry_test_alone(pytester: pytest.Pytester, run) -> None:
    """A writer in C and another program, in its own fixtures too; not in what it shares with others."""
    (pytester.path / "last.pt").write_text("checkpoint")
    pytester.makepyfile(test_it=NATIVE)
    done = run()
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        ["syncscan: What a test that runs dry writes goes to a scratch copy*else writes is refused."]
    )
    assert not (pytester.path / "shared").exists()


def test_what_is_not_held_back_is_said_before_the_first_test(
    pytester: pytest.Pytester, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system can't refuse it, and only if a test will run dry."""
    monkeypatch.setattr(landlock, "version", lambda: 0)
    (pytester.path / "train.log").write_text("earlier")
    (pytester.path / "last.pt").write_text("checkpoint")
    pytester.makepyfile(test_it=WRITING)
    done = run()
    done.stdout.fnmatch_lines(["syncscan: *native code and other programs write isn't held back here.", "*2 passed*"])
    assert "syncscan: " not in run("-k", "test_afterwards").stdout.str()


FAILING = """
import pytest, torch

@pytest.fixture(scope="module")
def shared():
    yield
    raise ValueError("of the module")

@pytest.fixture
def mine():
    yield
    raise ValueError("of the test")

@pytest.mark.no_syncs
def test_dry(shared, mine):
    torch.ones(2, device="cuda").add(1)
    raise ValueError("in the test")

@pytest.mark.no_syncs
def test_set_up(broken):
    pass
"""
CONFTEST = """
import pytest

@pytest.fixture
def broken():
    raise ValueError("in conftest")
"""


def test_errors_of_a_dry_test_are_its_own(pytester: pytest.Pytester, run) -> None:
    """Each phase has its error, and its lines are the user's."""
    pytester.makepyfile(test_it=FAILING, conftest=CONFTEST)
    done = run("--tb=short")
    done.assert_outcomes(failed=1, errors=3)
    shown = re.findall(r"^(\S+):\d+: in", done.stdout.str(), re.MULTILINE)
    assert set(shown) == {"test_it.py", "conftest.py"}


WORKERS = """
import multiprocessing
import pytest, torch
from writer import touched

def work(folder):
    worker = multiprocessing.get_context("forkserver").Process(target=touched, args=(folder,))
    worker.start()
    worker.join()
    return worker.exitcode

@pytest.mark.no_syncs
def test_dry():
    torch.ones(2, device="cuda").add(1)
    assert work(".") != 0

def test_afterwards():
    assert work(".") == 0
"""


@pytest.mark.skipif(not landlock.holds(), reason="no Landlock here")
def test_processes_of_later_tests_are_free(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, warm_python: str
) -> None:
    """The server that forks them isn't the one that a dry test has started; they import no torch."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=WORKERS, writer='def touched(folder): open(f"{folder}/file", "w").close()')
    done = pytester.run(warm_python, "-m", "pytest", "-p", "syncscan.pytest_plugin")
    done.assert_outcomes(passed=2)
    assert "Traceback" not in done.stderr.str()


CONNECTING = """
import socket
import pytest, torch

def connect(machine):
    with socket.socket() as connection:
        connection.settimeout(0.01)
        connection.connect_ex((machine, 9))

def test_before():
    connect("192.0.2.1")

@pytest.mark.no_syncs
@pytest.mark.parametrize("time", [1, 2])
def test_dry(time):
    torch.ones(2, device="cuda").add(1)
    connect("192.0.2.2")
    connect("127.0.0.1")
"""


def test_machines_are_named_that_a_dry_test_connects_to(pytester: pytest.Pytester, run) -> None:
    """Once, and none of another test's; the addresses are for documentation (RFC 5737)."""
    pytester.makepyfile(test_it=CONNECTING)
    done = run("-v")
    done.assert_outcomes(passed=3)
    named = [line for line in done.outlines if "isn't held back" in line]
    assert named == ["syncscan: 192.0.2.2: what a test sends there isn't held back"]
