"""Fixtures of all tests: golden files (`pytest --update-golden`; a mismatch stores the actual text), and signals."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from isal import igzip

from syncscan import __version__, features
from tests import registers
from tests import warm_python as warm_pythons

SLOWLY = [HealthCheck.too_slow]
"""No failure: a machine may be busy."""
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=20, suppress_health_check=SLOWLY)
settings.register_profile("thorough", deadline=None, max_examples=60, suppress_health_check=SLOWLY)
settings.register_profile("mutants", deadline=None, derandomize=True, max_examples=8)

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads would spin beside the other worker's
GOLDEN = Path(__file__).parent / "golden"
OF_ROOMS = {
    "browser/test_fleet.py": ["fleet"],
    "browser/test_pages.py": ["fleet", "gate", "proof"],
    "browser/test_perfetto.py": ["viewers"],
    "browser/test_trace_view.py": ["viewers"],
    "cli/test_heeded.py": features.FEATURES,
    "fuzz/test_fuzz.py": ["fleet", "gate", "viewers"],
    "report/test_dry_run.py": ["dryrun"],
    "test_benchmarks.py": ["gate", "watching"],
    "test_docs.py": features.FEATURES,
    "test_growth.py": ["fleet"],
    "test_pictures.py": ["fleet"],
    "test_public.py": features.FEATURES,
}
"""Tests of the core and of rooms together: the rooms without which they aren't collected."""
collect_ignore = [file for file, needed in OF_ROOMS.items() if not features.rooms().keys() >= set(needed)]


def pytest_configure(config: pytest.Config) -> None:
    """Try more examples, and others each time, where the slow tests run too.

    Commands are ended by signals, though this run may have been started to ignore them (nohup, a script's `&`).
    """
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "thorough")
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each of xdist's workers the one warm Python."""
    node.workerinput["warm_python"] = shared_python(node.config)


@functools.cache
def shared_python(config: pytest.Config) -> str:
    """Start the warm Python of all workers; empty where none can be."""
    if sys.platform != "linux" or not importlib.util.find_spec("torch"):
        return ""
    stack = contextlib.ExitStack()
    config.add_cleanup(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(warm_pythons.started(Path(folder)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests over recordings first: a worker takes what lies together, so that one analyzes them for all."""
    items.sort(key=lambda item: not hasattr(getattr(item, "module", None), "analyzed"))


def pytest_collection_finish() -> None:
    """All that is imported by now stays: neither a collection nor that of a forked child goes through it again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Holds a text to tests/golden/NAME; the version of syncscan in it is written as VERSION.

    On a mismatch the text is kept as NAME.actual, ready for a diff.
    """
    update = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        actual = text.replace(__version__, "VERSION")
        expected, stored = GOLDEN / name, GOLDEN / f"{name}.actual"
        if update:
            expected.write_text(actual, encoding="utf-8")
        if not expected.exists() or expected.read_text(encoding="utf-8") != actual:
            stored.write_text(actual, encoding="utf-8")
            pytest.fail(f"differs from {expected}: diff it with {stored}, and run with --update-golden if it is right")
        stored.unlink(missing_ok=True)

    return compare


@pytest.fixture
def own_main_program() -> Iterator[None]:
    """For tests that run a script in this process: it keeps `__main__` and `sys`, which here are the test runner's."""
    main, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path


@pytest.fixture
def clear_registers() -> None:
    """A thread with no wide register in use, on a machine where isal leaves some so."""
    registers.clear()
    igzip.compress(b"a" * 100_000)
    left = registers.upper_in_use()
    registers.clear()
    if not left:
        pytest.skip("isal leaves no wide register in use here, or this machine doesn't tell")


@pytest.fixture(scope="session")
def warm_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A `python` that has torch imported, where a system lets files be handed on; else the usual one."""
    pytest.importorskip("torch")
    shared = getattr(request.config, "workerinput", {}).get("warm_python", "")
    if shared or sys.platform != "linux":
        yield shared or sys.executable
        return
    with warm_pythons.started(tmp_path_factory.mktemp("warm")) as python:
        yield python


@pytest.fixture
def warm(warm_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever starts Python in a test starts it warm."""
    monkeypatch.setattr(sys, "executable", warm_python)
