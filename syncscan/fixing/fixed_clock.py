"""A clock for dry runs that is the same in each of them, so that what a program computes from it can be compared.

It is for the program's own files and for what stamps their log lines: libraries keep the real one, so their timeouts
and loops stay as they are. Each thread has its own time, which advances by a fixed amount whenever the thread reads it
and by what it sleeps: two runs read the same times, whatever the machine does meanwhile.
"""

from __future__ import annotations

import copyreg
import datetime
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from syncscan.model.libraries import is_library

TICK_NS = 10_000_000
"""By how much each reading advances: a loop of ten seconds makes a thousand turns."""
BEGIN_NS = 1_767_225_600 * 10**9
"""2026-01-01 00:00 UTC."""
SINCE_START_NS = 10**12
"""First reading of the clocks that don't tell the date."""
_DATED = ("time", "time_ns")
_UNDATED = ("perf_counter", "monotonic", "process_time", "thread_time")
_STAMPS = ("logging/__init__.py", "/uuid.py", "syncscan/dryrun/stand_ins.py")
"""Files that write the time into the program's output: of Python's library, and the events of the simulated device."""


class FixedClock:
    """The clock of one process."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._real = {name: getattr(time, name) for name in dir(time) if callable(getattr(time, name))}

    def install(self) -> None:
        """Put it in the place of what `time` and `datetime` offer, for good."""
        for name in _DATED[:1] + _UNDATED:
            setattr(time, name, self._reading(name, lambda ns: ns / 10**9))
            setattr(time, f"{name}_ns", self._reading(f"{name}_ns", lambda ns: ns))
        time.sleep = self._sleep  # type: ignore[assignment]
        for name in ("localtime", "gmtime", "ctime"):
            setattr(time, name, self._converting(name))
        time.strftime, time.asctime = self._strftime, self._asctime
        os.environ.setdefault("SOURCE_DATE_EPOCH", str(BEGIN_NS // 10**9))  # matplotlib dates its files by it
        self._install_dates()

    def _ns(self) -> int:
        """Return the time since the start, one tick later than the last time in this thread."""
        elapsed: int = getattr(self._of_thread, "elapsed", 0) + TICK_NS
        self._of_thread.elapsed = elapsed
        return elapsed

    def _seconds(self) -> float:
        return (BEGIN_NS + self._ns()) / 10**9

    def _reading(self, name: str, of_ns: Callable[[int], Any]) -> Callable[[], Any]:
        real, begin = self._real[name], BEGIN_NS if name in _DATED else SINCE_START_NS

        def read() -> Any:
            return of_ns(begin + self._ns()) if _for_program() else real()

        return _named(read, name)

    def _sleep(self, seconds: float) -> None:
        """Sleep as long as that takes, and have the clock go on."""
        self._real["sleep"](seconds)
        self._of_thread.elapsed = getattr(self._of_thread, "elapsed", 0) + int(float(seconds) * 10**9)

    def _converting(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def convert(seconds: float | None = None) -> Any:
            return real(self._seconds() if seconds is None else seconds)

        return _named(convert, name)

    def _strftime(self, form: str, *moment: Any) -> Any:
        return self._real["strftime"](form, *(moment or [self._real["localtime"](self._seconds())]))

    def _asctime(self, *moment: Any) -> Any:
        return self._real["asctime"](*(moment or [self._real["localtime"](self._seconds())]))

    def _install_dates(self) -> None:
        clock = self

        class Now(datetime.datetime, metaclass=_StandsFor):
            real = datetime.datetime

            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return cls.real.fromtimestamp(clock._seconds(), tz)

            @classmethod
            def today(cls) -> Any:
                return cls.real.fromtimestamp(clock._seconds())

            @classmethod
            def utcnow(cls) -> Any:
                return cls.real.fromtimestamp(clock._seconds(), datetime.timezone.utc).replace(tzinfo=None)

        class Today(datetime.date, metaclass=_StandsFor):
            real = datetime.date

            @classmethod
            def today(cls) -> Any:
                return cls.real.fromtimestamp(clock._seconds())

        for stand_in, name in ((Now, "datetime"), (Today, "date")):
            real: Any = getattr(datetime, name)
            stand_in.__module__, stand_in.__name__, stand_in.__qualname__ = "datetime", name, name
            copyreg.pickle(real, lambda value, stand_in=stand_in: (stand_in, value.__reduce__()[1]))  # type: ignore[misc]
            setattr(_Module, name, _ByReader(real, stand_in))
        datetime.__class__ = _Module


class _Module(types.ModuleType):
    """The type of the module `datetime`."""


class _ByReader:
    """A class of a module, in whose place the program's own files see another.

    Libraries see the real one. They look up values by their type, and an extension such as pandas' relies on the layout
    of that type in memory.
    """

    def __init__(self, real: type, stand_in: type) -> None:
        self._real, self._shown = real, stand_in

    def __get__(self, module: object, kind: type | None = None) -> type:
        return self._shown if _for_program() else self._real

    def __set__(self, module: object, value: type) -> None:
        self._shown = value


class _StandsFor(type):
    """The type of a class in the place of another, whose objects and methods are the other's but for the clock."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        real = cls.__dict__.get("real")
        return real(*arguments, **keywords) if real else super().__call__(*arguments, **keywords)

    def __getattribute__(cls, name: str) -> Any:
        own = type.__getattribute__(cls, "__dict__")
        if "real" in own and name not in own and not name.startswith("__"):
            return getattr(own["real"], name)
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__dict__["real"]) if "real" in cls.__dict__ else type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.__dict__["real"]) if "real" in cls.__dict__ else type.__subclasscheck__(cls, kind)


def _for_program() -> bool:
    """Return whether the caller of the function that asks is in the program's own files, or stamps its output."""
    file = sys._getframe(2).f_code.co_filename
    if file.endswith(_STAMPS):
        return True
    imports = file.startswith("<frozen")
    return not imports and not is_library(file) and "syncscan" not in PurePath(file).parts


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


__all__ = ["FixedClock"]
