"""Fail marked pytest tests that make their host wait for its device more than they may.

Loaded by pytest wherever syncscan is installed, so that nothing is imported here until a test asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from syncscan.testing.limit import SyncLimit
    from syncscan.testing.watched_test import WatchedTest

MARKS = {
    "no_syncs": "no_syncs(allow=[], warmup=1, dry=False, device=None): fail if the test's thread waits for its device;"
    " with dry or a device ('cuda', 'xpu', 'mps') on a simulated one",
    "limit_syncs": "limit_syncs(n, wait_ms=None, per_step=True, allow=[], warmup=1, dry=False, device=None): fail if it"
    " waits more than n times per step, or longer than wait_ms",
    "no_races": "no_races(device='cuda'): run the test on a simulated GPU, and fail where host and device, or two"
    " streams, use memory without synchronization",
}
NO_DEVICE = "no GPU here, and dry runs are off (syncscan_dryrun = false): a CPU has no host-device syncs to count"
NO_TIMES = "wait_ms needs times, and a dry run has none"
NOTHING_RAN = (
    "no GPU here, and nothing ran on the simulated one: the test, or a fixture with a wider scope than function,"
    " chose the CPU"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--syncscan-report`, and the option of the configuration file."""
    record = "record each test marked no_syncs or limit_syncs, and keep its trace and an HTML report in DIR"
    parser.getgroup("syncscan").addoption("--syncscan-report", metavar="DIR", type=Path, help=record)
    without = "without a GPU, run tests marked no_syncs or limit_syncs on a simulated GPU; false skips them"
    parser.addini("syncscan_dryrun", without, type="bool", default=True)


class NotUnderstood(pytest.PytestWarning):
    """A marked test passed in a dry run with ops that weren't recognized: whether they wait is unknown."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    for mark in MARKS.values():
        config.addinivalue_line("markers", mark)


@pytest.fixture
def syncscan(request: pytest.FixtureRequest) -> WatchedTest:
    """Return the syncs of this test: `step()` ends a step, `record()` records a block, `findings` has the results."""
    return _watched(request.node)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str | None:
    """Say what holds back the writing of the tests that will run dry, before the first of them."""
    if not any(map(_will_be_dry, items)):
        return None
    from syncscan import scratch

    return f"syncscan: {scratch.sentence('a test that runs dry', 'python')}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run a marked test dry without a GPU, or skip it where that would say nothing."""
    mark = _mark(item)
    if mark is None:
        return
    from syncscan.capture import device

    limit = _limit(mark)
    if _is_dry(item, limit):
        if limit.wait_ms is not None:
            pytest.skip(NO_TIMES)
        from syncscan.testing.dry_item import DryItem

        setattr(item, _DRY, DryItem(item, _watched(item), limit.device, limit.warmup if _tells_steps(item) else 0))
    elif limit.dry or device.vendor() is None:
        pytest.skip(NO_DEVICE)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Run the teardown of a dry run's own fixtures on its device, and remove what the test wrote."""
    dry = vars(item).pop(_DRY, None)
    failure = dry.end() if dry is not None else None
    outcome: Any = yield
    if failure is not None:
        outcome.force_exception(failure)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a marked test under a guard or a recording, and fail it if it exceeds its limit."""
    mark = _mark(item)
    if mark is None:
        yield
        return
    limit, watched = _limit(mark), _watched(item)
    watching = _watching(item, limit, watched)
    watching.__enter__()
    outcome: Any = yield
    try:
        watching.__exit__(*(outcome.excinfo or (None, None, None)))
        if outcome.excinfo is None:
            _verdict(item, limit, watched)
    except BaseException as failure:
        if outcome.excinfo is None:
            outcome.force_exception(failure)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print where the reports are."""
    folder = config.getoption("--syncscan-report")
    if folder is not None:
        reports = sorted(folder.glob("*.html")) if folder.is_dir() else []
        terminalreporter.write_line(f"syncscan: {len(reports)} report{'' if len(reports) == 1 else 's'} in {folder}")


def _watching(item: pytest.Item, limit: SyncLimit, watched: WatchedTest) -> AbstractContextManager[None]:
    folder = item.config.getoption("--syncscan-report")
    warmup = limit.warmup if _tells_steps(item) else 0
    if getattr(item, _DRY, None):
        return nullcontext()  # it is watched where it runs
    if folder is None and limit.wait_ms is None:
        return watched.guarded(warmup)
    return watched.record(folder, _name(item), warmup, guarded=True)


def _verdict(item: pytest.Item, limit: SyncLimit, watched: WatchedTest) -> None:
    from syncscan.testing import failure

    if _tells_steps(item) and watched.steps <= limit.warmup:
        reason = f"the test marked {watched.steps} steps with syncscan.step(), and the first {limit.warmup} are warm-up"
        pytest.fail(f"Nothing was counted: {reason} (warmup=0 counts all).", pytrace=False)
    if watched.dry is not None:
        _verdict_of_dry_run(item, limit, watched)
        return
    if watched.analysis is None:
        text = failure.of_guarded(limit, watched.syncs)
    else:
        _report(item, watched)
        text = failure.of_analysis(limit, watched.analysis, watched.syncs)
    if text:
        pytest.fail(text, pytrace=False)


def _tells_steps(item: pytest.Item) -> bool:
    """Return whether a test has the fixture that marks the end of a step."""
    return "syncscan" in getattr(item, "fixturenames", ())


def _verdict_of_dry_run(item: pytest.Item, limit: SyncLimit, watched: WatchedTest) -> None:
    """Apply a guard's limit; never pass a test silently with ops that weren't recognized."""
    from syncscan.testing import failure

    dry = watched.dry
    assert dry is not None
    _report(item, watched)
    of_races = limit.mark == "no_races"
    text = failure.of_races(dry.analysis.races) if of_races else failure.of_guarded(limit, watched.syncs)
    if text:
        pytest.fail(f"{text}\n\nA dry run, without a GPU. {dry.said}", pytrace=False)
    if not dry.coverage.ops:
        pytest.skip(NOTHING_RAN)
    if dry.coverage.gaps:
        item.warn(NotUnderstood(f"{item.nodeid} met its limit in a dry run, without a GPU. {dry.said}"))


def _report(item: pytest.Item, watched: WatchedTest) -> None:
    """Write the HTML report, beside a trace that is kept; a dry run has none."""
    folder = item.config.getoption("--syncscan-report")
    if folder is None or watched.analysis is None:
        return
    from syncscan import files, report

    name = watched.trace.name.partition(".")[0] if watched.trace is not None else _name(item)
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / f"{name}.html", [report.render(watched.analysis, "html").encode()], force=True)


def _is_dry(item: pytest.Item, limit: SyncLimit) -> bool:
    """Return whether a marked test runs on a simulated GPU here."""
    from syncscan.capture import device

    is_on = limit.mark == "no_races" or bool(item.config.getini("syncscan_dryrun"))
    return is_on and (limit.dry or device.vendor() is None)


def _will_be_dry(item: pytest.Item) -> bool:
    mark = _mark(item)
    try:
        return mark is not None and _is_dry(item, _limit(mark))
    except pytest.UsageError:  # said where the test runs
        return False


def _name(item: pytest.Item) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", item.nodeid).strip("_")


def _mark(item: pytest.Item) -> pytest.Mark | None:
    """Return the innermost syncscan mark."""
    return next((mark for mark in item.iter_markers() if mark.name in MARKS), None)


def _limit(mark: pytest.Mark) -> SyncLimit:
    from syncscan.errors import UsageError
    from syncscan.testing.limit import limit_of

    try:
        return limit_of(mark.name, mark.args, mark.kwargs)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


_KEY = "_syncscan_watched"
_DRY = "_syncscan_dry"


def _watched(item: pytest.Item) -> WatchedTest:
    """Return the state of one test, created on first use."""
    from syncscan.testing.watched_test import WatchedTest

    if not hasattr(item, _KEY):
        setattr(item, _KEY, WatchedTest())
    watched: WatchedTest = getattr(item, _KEY)
    return watched
