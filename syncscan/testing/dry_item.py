"""Have pytest run a test dry: setup, call and teardown on a simulated device, with scratch copies of its files."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import util
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from syncscan.dryrun.device_kinds import kind_of
from syncscan.dryrun.pretend import Pretence
from syncscan.report.printable import printable
from syncscan.scratch import Scratch, landlock
from syncscan.scratch.environment import name_connections
from syncscan.testing.bound_thread import BoundThread
from syncscan.testing.watched_test import WatchedTest

_NAMED = "_syncscan_named"


class DryItem:
    """A test that runs dry, with its own fixtures, until `end`; fixtures that it shares with other tests don't."""

    def __init__(self, item: pytest.Item, watched: WatchedTest, device: str, warmup: int) -> None:
        self._item, self._device = item, device
        self._setup, self._test = item.setup, watched.pretended(warmup, device)(item.runtest)
        self._files: TestFiles | None = None
        item.setup, item.runtest = self._set_up, self._run  # type: ignore[method-assign]

    def end(self) -> BaseException | None:
        """Tear its own fixtures down, remove what it wrote, and return what was raised."""
        del self._item.setup, self._item.runtest
        if self._files is None:
            return None
        tear_down = functools.partial(self._item.session._setupstate.teardown_exact, self._item.parent)  # type: ignore[arg-type]
        try:
            self._files.call(_on_device(self._device, tear_down))
        except BaseException as error:
            return error
        finally:
            self._files.close()
        return None

    def _set_up(self) -> None:
        __tracebackhide__ = True
        config: Any = self._item.config
        for name in _shared(self._item):
            self._item._request.getfixturevalue(name)  # type: ignore[attr-defined]
        _name_connections(config)
        factory = getattr(config, "_tmp_path_factory", None)  # its folder is made when it is first asked for
        self._files = TestFiles([factory.getbasetemp()] if factory is not None else [])
        config.add_cleanup(self._files.close)  # where the test is interrupted
        self._files.call(_on_device(self._device, self._setup))

    def _run(self) -> None:
        __tracebackhide__ = True
        assert self._files is not None
        self._files.call(self._test)


def _shared(item: pytest.Item) -> Iterator[str]:
    """Yield the fixtures that a test shares with others, in their order."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    names = [name for name in getattr(item, "fixturenames", ()) if name in known]
    yield from (name for name in names if known[name][-1].scope != "function")


def _on_device(device: str, part: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls another on a simulated device, without recording."""

    def run() -> None:
        __tracebackhide__ = True
        pretence = Pretence(kind=kind_of(device))
        pretence.begin()
        try:
            part()
        finally:
            pretence.end()

    return run


def _name_connections(config: pytest.Config) -> None:
    """Name each other machine before a dry test first connects to it, until pytest ends; set up once."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, _NAMED):
        return
    setattr(config, _NAMED, True)

    def tell(machine: str) -> None:
        reporter.ensure_newline()
        reporter.write_line(f"syncscan: {printable(machine)}: what a test sends there isn't held back")

    ended: list[bool] = []
    config.add_cleanup(lambda: ended.append(True))
    name_connections(tell, lambda: TestFiles.is_running and not ended)


Result = TypeVar("Result")


class TestFiles:
    """Redirects what one test writes to scratch copies, until `close`.

    Where the system can forbid to write anywhere else, the test's parts run in a thread of their own to which it is
    forbidden: pytest's process goes on, and a process has no way back.

    Args:
        passed: folders that the test shares with others, such as pytest's for temporary files.
    """

    __test__ = False
    is_running: ClassVar[bool] = False
    """Whether a part of any test is called now."""

    def __init__(self, passed: Sequence[Path]) -> None:
        self._stack = ExitStack()
        scratch = self._stack.enter_context(Scratch.made())
        sockets = Path(util.get_temp_dir()).resolve()  # of the process, until it ends
        self._redirection = self._stack.enter_context(scratch.entered([*passed, sockets]))
        self._redirection.tree.paused = True
        self._stack.callback(_stop_forkserver, _forkserver())
        self._thread: BoundThread | None = None
        if landlock.holds():
            self._thread = BoundThread(self._redirection.writable)
            self._stack.callback(self._thread.end)
            import torch

            grad = torch.is_grad_enabled()  # each thread has its own
            self._thread.call(lambda: torch.set_grad_enabled(grad))

    def call(self, part: Callable[[], Result]) -> Result:
        """Call a part of the test, all of whose writing is redirected or refused."""
        __tracebackhide__ = True
        self._redirection.tree.paused = False
        TestFiles.is_running = True
        try:
            return part() if self._thread is None else self._thread.call(part)
        finally:
            self._redirection.tree.paused = True
            TestFiles.is_running = False

    def close(self) -> None:
        self._stack.close()


def _forkserver() -> Any:
    """Return the process from which this one forks others, if there is one."""
    server = sys.modules.get("multiprocessing.forkserver")
    return getattr(server and server._forkserver, "_forkserver_pid", None)


def _stop_forkserver(before: Any) -> None:
    """Stop one that was started meanwhile: it is bound as the test was, and later ones are not."""
    if _forkserver() != before:
        sys.modules["multiprocessing.forkserver"]._forkserver._stop()
