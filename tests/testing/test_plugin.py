"""Marked tests fail by their syncs, with the line, the chain and the fix; others never notice the plugin."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import syncscan as library
from syncscan import api
from syncscan.capture import device
from tests.as_on_a_gpu import Machine

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("imported")

SAMPLES = Path(__file__).parents[2] / "sample_traces"

HEAD = """
import pytest
import sys
import syncscan as library

machine = sys.modules["machine_of_the_test"]

def item():
    machine.sync()
"""

TWO = """
@pytest.mark.no_syncs
def test_it():
    pass

def test_other():
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, machine: Machine, monkeypatch: pytest.MonkeyPatch):
    """Run a test file in this process, on the machine that stands for a GPU."""
    monkeypatch.setitem(sys.modules, "machine_of_the_test", machine)  # type: ignore[misc]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_file(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + text)
        with warnings.catch_warnings():
            return pytester.runpytest_inprocess("-p", "syncscan.pytest_plugin", "--strict-markers", *options)

    return run_file


def test_what_a_block_allows_is_known_of_a_guarded_test(machine: Machine) -> None:
    """A recording leaves those lines out, and hears of them from the guard."""
    watched = importlib.import_module("syncscan.testing.watched_test").WatchedTest()
    with watched.guarded():
        with library.allow("its log"):
            machine.sync()
        machine.sync()
    assert [sync.allowed for sync in watched.syncs] == ["", "its log"]


def test_a_sync_fails_with_line_chain_and_fix(run, machine: Machine) -> None:
    """The planted one is two calls deep; the rule's own words say what to write."""
    done = run("""
class T:
    item = property(lambda self: machine.sync)

def log(t):
    return t.item()

def train():
    log(T())

@pytest.mark.no_syncs
def test_step():
    train()
""")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "1 sync in step 1; @pytest.mark.no_syncs allows 0 syncs in a step.",
            "test_it.py:14 in log: item waits (a blocking copy or a stream synchronization)",
            "    called from test_it.py:17 in train",
            "    called from test_it.py:21 in test_step",
            "    `.item()`, `float(t)` and `int(t)` wait for a number. Instead (syncscan explain item):",
            "        total = torch.zeros((), device=device)",
            "If it is intended: `with syncscan.allow(*",
        ]
    )


@pytest.mark.parametrize(
    ("mark", "body", "passes"),
    [
        ("no_syncs", "pass", True),
        ("no_syncs", "item()", False),
        ("no_syncs(allow=['test_it.py:item'])", "item()", True),
        ("no_syncs(allow={'other.py': 'no'})", "item()", False),
        ("no_syncs", "with library.allow('its log'): item()", True),
        ("no_syncs", "machine.sync()  # syncscan: allow[item] its log", True),
        ("limit_syncs(2)", "item(); item()", True),
        ("limit_syncs(2)", "item(); item(); item()", False),
        ("limit_syncs(n=0, per_step=False)", "item()", False),
    ],
)
def test_marks_hold_a_test_to_their_numbers(run, mark: str, body: str, passes: bool) -> None:
    """A test that marks no steps counts as one step."""
    done = run(f"@pytest.mark.{mark}\ndef test_it():\n    {body}\n")
    done.assert_outcomes(passed=int(passes), failed=int(not passes))


@pytest.mark.parametrize(
    ("mark", "syncs", "passes"),
    [
        ("no_syncs", [3, 0, 0], True),
        ("no_syncs", [0, 0, 1], False),
        ("no_syncs(warmup=2)", [1, 1, 0], True),
        ("no_syncs(warmup=0)", [1, 0, 0], False),
        ("limit_syncs(1)", [0, 1, 1], True),
        ("limit_syncs(1, per_step=False)", [0, 1, 1], False),
        ("no_syncs", [3], False),
    ],
)
def test_steps_are_counted_after_the_warm_up(run, mark: str, syncs: list[int], passes: bool) -> None:
    """A test whose steps are all warm-up has shown nothing, and fails."""
    done = run(f"""
@pytest.mark.{mark}
def test_it(syncscan):
    for many in {syncs}:
        for _ in range(many):
            item()
        syncscan.step()
""")
    done.assert_outcomes(passed=int(passes), failed=int(not passes))
    if len(syncs) == 1:
        done.stdout.fnmatch_lines(["Nothing was counted: the test marked 1 steps*"])


def test_a_test_that_fails_by_itself_shows_its_own_error(run) -> None:
    """And not its syncs."""
    done = run("@pytest.mark.no_syncs\ndef test_it():\n    item()\n    assert 'mine' == 'yours'\n")
    done.assert_outcomes(failed=1)
    assert "'mine' == 'yours'" in done.stdout.str()
    assert "allows 0 syncs" not in done.stdout.str()


def test_nothing_is_left_for_the_next_test(run, machine: Machine) -> None:
    """Unmarked tests wait as they like."""
    done = run("""
@pytest.mark.no_syncs
def test_first():
    pass

def test_second():
    item()
""")
    done.assert_outcomes(passed=2)
    assert machine.mode == 0


@pytest.mark.parametrize("mark", ["limit_syncs", "limit_syncs(-1)", "no_syncs(3, 4, 5)", "no_syncs(allow='x')"])
def test_marks_that_mean_nothing_are_reported(run, mark: str) -> None:
    """Before the test runs."""
    done = run(f"@pytest.mark.{mark}\ndef test_it():\n    pass\n")
    done.assert_outcomes(errors=1)


def test_wait_ms_is_held_to_a_recording(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's steps are captured for real; what an H200 recorded of a step that logs stands for what they did."""
    recorded = api.analyze(SAMPLES / "log_item.pt.trace.json.gz")
    waited = sum(f.wait_us for f in recorded.findings) / 1e3
    read: list[object] = []
    monkeypatch.setattr(api, "analyze", lambda path: read.append(path.exists()) or recorded)
    test = """
@pytest.mark.limit_syncs(None, wait_ms={})
def test_{}(syncscan):
    for _ in range(3):
        syncscan.step()
"""
    done = run(test.format(waited * 0.5, "long") + test.format(waited * 2, "short"))
    done.assert_outcomes(passed=1, failed=1)
    assert read == [True, True]
    done.stdout.fnmatch_lines(
        ["*s of waiting; @pytest.mark.limit_syncs allows *", "    fix: *", "    (syncscan explain *"]
    )


def test_a_comment_allows_what_a_recording_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the line that the trace names, for its rule."""
    failure = importlib.import_module("syncscan.testing.failure")
    limit = importlib.import_module("syncscan.testing.limit").limit_of("no_syncs", (), {})
    analysis = api.analyze(SAMPLES / "log_item.pt.trace.json.gz")
    monkeypatch.chdir(tmp_path)
    assert "1 syncs per step" in failure.of_analysis(limit, analysis)
    path = Path("sample_traces/workloads.py")
    path.parent.mkdir()
    lines = (SAMPLES / path.name).read_text().splitlines()
    lines[analysis.findings[0].source.line - 1] += "  # syncscan: allow[item] logged"  # type: ignore[union-attr]
    path.write_text("\n".join(lines))
    assert failure.of_analysis(limit, analysis) == ""


def test_reports_are_kept(run, pytester: pytest.Pytester) -> None:
    """A trace and a page for each marked test, by its name."""
    done = run(
        "@pytest.mark.no_syncs\ndef test_it():\n    pass\n\ndef test_other():\n    pass\n", "--syncscan-report=out"
    )
    done.assert_outcomes(passed=2)
    stored = sorted(path.name for path in (pytester.path / "out").iterdir())
    assert [name.split(".")[0] for name in stored] == ["test_it_py_test_it"] * 2
    assert [name.endswith((".html", ".pt.trace.json.gz")) for name in stored] == [True, True]
    done.stdout.fnmatch_lines(["syncscan: 1 report in out"])


def test_a_block_can_be_recorded_without_a_mark(run) -> None:
    """By the fixture; on a CPU there is nothing to find."""
    done = run("""
def test_it(syncscan):
    with syncscan.record():
        syncscan.step()
    assert syncscan.findings == ()
    assert syncscan.analysis.step.count == 1
""")
    done.assert_outcomes(passed=1)


@pytest.mark.slow
def test_under_xdist(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks are known to the workers, where a test that never asks for a GPU skips without one; the controller counts
    reports.
    """
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        "import pytest\n\n@pytest.mark.no_syncs\ndef test_it():\n    pass\n\ndef test_other():\n    pass\n"
    )
    options = ("-p", "syncscan.pytest_plugin", "-p", "xdist", "-n", "1", "--strict-markers", "--syncscan-report=out")
    done = pytester.runpytest_subprocess(*options)
    gpu = device.vendor() is not None
    done.assert_outcomes(passed=1 + gpu, skipped=1 - gpu)
    done.stdout.fnmatch_lines(["syncscan: * report* in out"])


def test_it_costs_nothing_where_it_is_not_used() -> None:
    """Importing it loads neither torch nor numpy nor any other part of syncscan."""
    code = (
        "import sys, syncscan.pytest_plugin\n"
        "heavy = {'torch', 'numpy', 'pandas', 'msgspec', 'rich', 'click', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if m.startswith('syncscan')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[] ['syncscan', 'syncscan.pytest_plugin', 'syncscan.version']"
