"""Have pytest run a test dry: setup, call and teardown on a simulated device, with files of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from syncscan.dryrun.device_kinds import kind_of
from syncscan.dryrun.pretence import Pretence
from syncscan.report.printable import printable
from syncscan.scratch.connections import name_connections
from syncscan.testing.scratch_files import TestFiles
from syncscan.testing.watched import WatchedTest

_NAMED = "_syncscan_named"


class DryItem:
    """A test that runs dry, with its own fixtures, until `end`; fixtures that it shares with other tests don't.

    Args:
        item: the test.
        watched: gets its syncs.
        device: type of the simulated device.
        warmup: steps that aren't watched.
    """

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
