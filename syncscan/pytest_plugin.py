"""Marked tests go in; those that make their host wait for its device more than they may come out failed.

Loaded by pytest wherever syncscan is installed, so that nothing is imported here until a test asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from syncscan.testing.limit import Limit
    from syncscan.testing.watched import Watched

MARKS = {
    "no_syncs": "no_syncs(allow=[], warmup=1): fail where the test's thread waits for its device",
    "limit_syncs": "limit_syncs(n, wait_ms=None, per_step=True, allow=[], warmup=1): fail where it waits more than n"
    " times a step, or longer than wait_ms",
}
NO_DEVICE = "no GPU here: a CPU has no host-device syncs to count"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--syncscan-report`."""
    told = "record each test marked no_syncs or limit_syncs, and keep its trace and an HTML report in DIR"
    parser.getgroup("syncscan").addoption("--syncscan-report", metavar="DIR", type=Path, help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    for told in MARKS.values():
        config.addinivalue_line("markers", told)


@pytest.fixture
def syncscan(request: pytest.FixtureRequest) -> Watched:
    """The syncs of this test: `step()` ends a step of it, `record()` records a block, `findings` has what it found."""
    return _watched(request.node)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a marked test where there is nothing to count."""
    mark = _mark(item)
    if mark is None:
        return
    from syncscan.capture import device

    _limit(mark)
    if device.vendor() is None:
        pytest.skip(NO_DEVICE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a marked test under a guard or a recording, and fail it by what it did."""
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
    """Say where reports lie."""
    folder = config.getoption("--syncscan-report")
    if folder is not None:
        reports = sorted(folder.glob("*.html")) if folder.is_dir() else []
        terminalreporter.write_line(f"syncscan: {len(reports)} report{'' if len(reports) == 1 else 's'} in {folder}")


def _watching(item: pytest.Item, limit: Limit, watched: Watched) -> AbstractContextManager[None]:
    folder = item.config.getoption("--syncscan-report")
    warmup = limit.warmup if _tells_steps(item) else 0
    if folder is None and limit.wait_ms is None:
        return watched.guarded(warmup)
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", item.nodeid).strip("_")
    return watched.record(folder, name, warmup, guarded=True)


def _verdict(item: pytest.Item, limit: Limit, watched: Watched) -> None:
    from syncscan.testing import failure

    if _tells_steps(item) and watched.steps <= limit.warmup:
        told = f"the test told {watched.steps} steps by syncscan.step(), and the first {limit.warmup} are warm-up"
        pytest.fail(f"Nothing was counted: {told} (warmup=0 counts all).", pytrace=False)
    if watched.analysis is None:
        text = failure.of_guarded(limit, watched.syncs)
    else:
        _report(item, watched)
        text = failure.of_analysis(limit, watched.analysis, watched.syncs)
    if text:
        pytest.fail(text, pytrace=False)


def _tells_steps(item: pytest.Item) -> bool:
    """Whether a test has the fixture by which it says that a step has ended."""
    return "syncscan" in getattr(item, "fixturenames", ())


def _report(item: pytest.Item, watched: Watched) -> None:
    """Write the HTML report beside a trace that is kept."""
    if item.config.getoption("--syncscan-report") is None or watched.trace is None or watched.analysis is None:
        return
    from syncscan import files, report

    page = watched.trace.with_name(watched.trace.name.partition(".")[0] + ".html")
    files.write(page, [report.render(watched.analysis, "html").encode()], force=True)


def _mark(item: pytest.Item) -> pytest.Mark | None:
    """The innermost of our marks."""
    return next((mark for mark in item.iter_markers() if mark.name in MARKS), None)


def _limit(mark: pytest.Mark) -> Limit:
    from syncscan.errors import UsageError
    from syncscan.testing.limit import limit_of

    try:
        return limit_of(mark.name, mark.args, mark.kwargs)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


_KEY = "_syncscan_watched"


def _watched(item: pytest.Item) -> Watched:
    """What belongs to one test, made when it is first asked for."""
    from syncscan.testing.watched import Watched

    if not hasattr(item, _KEY):
        setattr(item, _KEY, Watched())
    found: Watched = getattr(item, _KEY)
    return found
