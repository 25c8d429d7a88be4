"""Run a script or module as `python SCRIPT` or `python -m MODULE` would.

What the interpreter does is done here step by step (CPython `Modules/main.c`, `pymain_run_python`): a module `__main__`
of its own in `sys.modules`, absolute `__file__`, the script's folder first on the path, exit codes, tracebacks. Nothing
of it is put back: what the script leaves running (threads, `atexit`) finds the process as it would under Python.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import runpy
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from syncscan.errors import UsageError


class RunComplete(BaseException):
    """Unwinds a program that has run long enough; a BaseException, so that `except Exception` lets it through."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a script ended: its exit code, whether by Ctrl-C, which ends Python like a signal, and what it raised."""

    code: int
    interrupted: bool = False
    error: BaseException | None = None
    """The exception that left the script; None for a script that came to its end."""


def run_main(
    target: str,
    arguments: Sequence[str],
    *,
    module: bool,
    code_of: Callable[[str], CodeType | None] = lambda path: None,
) -> Exit:
    """Run a script or module as the main program, until its threads have ended too.

    `target` is a path (of a file, or of a folder or archive with a `__main__.py`), or a module's name. `RunComplete`
    ends the script without a word, as if it had come to its end. `code_of` gives the code that runs in the place of a
    script's own, by its path; None for its own.
    """
    ended = Exit(0)
    try:
        _run_module(target, arguments) if module else _run_path(target, arguments, code_of)
    except RunComplete:
        return ended  # threads of a script that was ended in its middle may go on for ever
    except BaseException as error:
        ended = _exit_by(error)
    try:
        _join_threads()
    except KeyboardInterrupt as error:
        _show(error)
        ended = Exit(130, interrupted=True)
    return ended


def _run_path(target: str, arguments: Sequence[str], code_of: Callable[[str], CodeType | None]) -> None:
    sys.argv = [target, *arguments]
    main = _new_main()
    if not Path(target).is_file() or Path(target).suffix in (".pyz", ".zip", ".pyc"):
        _first_on_path(os.path.abspath(target))  # noqa: PTH100
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
        return
    path = os.path.abspath(target)  # noqa: PTH100  (links stay in it, as under Python)
    _first_on_path(str(Path(path).resolve().parent))
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    if sys.version_info < (3, 15):
        main.__dict__["__cached__"] = None
    code = code_of(path) or compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _run_module(name: str, arguments: Sequence[str]) -> None:
    sys.argv = ["-m", *arguments]
    _new_main()
    _first_on_path(str(Path.cwd()))
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _new_main() -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _first_on_path(folder: str) -> None:
    """Replace the first entry of the path, which led to syncscan's command, by the script's folder."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0:1] = [folder]


def _exit_by(error: BaseException) -> Exit:
    """Print what the interpreter would of an error that left the program, and return how that ended by it."""
    if not isinstance(error, SystemExit):
        _show(error)
        interrupted = isinstance(error, KeyboardInterrupt)
        return Exit(130 if interrupted else 1, interrupted, error)
    if error.code is None or isinstance(error.code, int):
        return Exit(int(error.code or 0), error=error)
    sys.stdout.flush()
    sys.stderr.write(f"{error.code}\n")
    return Exit(1, error=error)


def _show(error: BaseException) -> None:
    """Print a traceback as the interpreter would, without the frames of this runner."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename in _RUNNERS:
        tb = tb.tb_next
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(tb), tb)


_RUNNERS = (__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


def _join_threads() -> None:
    """Wait for the threads that the interpreter would wait for before it ends."""
    while others := [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]:
        others[0].join()


def script_and_function(spec: str) -> tuple[str, str]:
    """Return file and function of `FILE.py:FUNCTION`; of any other text itself and an empty name."""
    script, colon, name = spec.rpartition(":")
    # A name may be too long for `Path.exists`.
    return (script, name) if colon and name.isidentifier() and not os.path.exists(spec) else (spec, "")  # noqa: PTH110


def run_function(script: str, name: str, step_ended: Callable[[Any], None]) -> Exit:
    """Call a script's function time and again, each call a step, until `step_ended` raises `RunComplete`.

    That gets what the call has returned. A function that returns a function sets up what all steps share, as a model
    and its optimizer, and what it returns is called instead.
    """
    try:
        step = function = _function_of(script, name)
        returned = function()
        if callable(returned):
            step = returned
            returned = step()
        while True:
            step_ended(returned)
            returned = step()
    except RunComplete:
        return Exit(0)
    except UsageError:
        raise
    except BaseException as error:
        return _exit_by(error)


def _function_of(script: str, name: str) -> Callable[..., Any]:
    """Return a script's function; it is imported under a name other than `__main__`, its folder first on `sys.path`."""
    module = _imported(Path(script))
    function = getattr(module, name, None)
    if callable(function):
        return function  # type: ignore[no-any-return]
    names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    own = [n for n in names if getattr(getattr(module, n), "__module__", "") == module.__name__]
    what = f"has no function '{name}'" if function is None else f"has '{name}', which is not a function"
    raise UsageError(f"{script} {what}.", f"It has: {', '.join(own[:8]) or 'no functions'}.")


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"There is no script at {path}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} can't be imported as a Python module.", "Its name must end in .py.")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module
