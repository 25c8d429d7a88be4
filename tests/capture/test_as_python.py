"""`syncscan profile --keep-running SCRIPT` beside `python SCRIPT`: the same output, the same errors, the same end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from syncscan.cli.profile_outcome import NO_STEPS

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]

SCRIPTS = {
    "looks around": """
        import sys
        print(__name__, __file__, __spec__ and __spec__.name, __package__, sys.argv, sys.path[0], sorted(globals()))
        print([m for m in ('torch', 'numpy', 'pandas') if m in sys.modules])
        print(sys.modules['__main__'].__dict__ is globals(), type(__loader__).__name__)
        import inspect, os, pickle, signal, warnings
        print(sorted(k for k in os.environ if 'CUPTI' in k or 'SYNCSCAN' in k))
        print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)])
        class Mine:
            def __init__(self): self.x = 1
        print(pickle.loads(pickle.dumps(Mine())).x, pickle.dumps(Mine))
        def f():
            return 1
        print(inspect.getsource(f), inspect.getfile(f) == __file__)
        warnings.warn('mine'); print(len(warnings.filters) > 0)
        print(input())
        """,
    "module found": "import helper; print(helper.__file__)",
    "spawn": """
        import multiprocessing as mp
        class Mine: pass
        def work(queue): queue.put((Mine, __name__))
        if __name__ == "__main__":
            context = mp.get_context("spawn")
            queue = context.Queue()
            child = context.Process(target=work, args=(queue,))
            child.start()
            print(queue.get()); child.join(); print(child.exitcode)
        """,
    "fork": """
        import multiprocessing as mp
        class Mine: pass
        def work(queue): queue.put((Mine, __name__))
        context = mp.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=work, args=(queue,))
        child.start(); print(queue.get()); child.join(); print(child.exitcode)
        """,
    "a worker that is told to end": """
        import multiprocessing as mp, time
        child = mp.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start(); child.terminate(); child.join(); print(child.exitcode)
        """,
    "exit code": "import sys; sys.exit(7)",
    "exit code -1": "import sys; sys.exit(-1)",
    "exit text": "import sys; print('out'); sys.exit('why')",
    "exit object": "import sys; sys.exit(('a', 2))",
    "exit none": "import sys; sys.exit(None)",
    "os._exit": "import os, sys; print('out', flush=True); os._exit(3)",
    "raises": """
        def inner(): raise ValueError('mine')
        def outer(): inner()
        outer()
        """,
    "raises from": """
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise RuntimeError('mine') from e
        """,
    "syntax error": "print('a'\n",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "import os, signal; print('out', flush=True); os.kill(os.getpid(), signal.SIGTERM); print('after')",
    "own handler": """
        import os, signal
        signal.signal(signal.SIGTERM, lambda *a: print('handled', a[0]))
        os.kill(os.getpid(), signal.SIGTERM); print('after')
        """,
    "own excepthook": "import sys; sys.excepthook = lambda *a: print('hook', a[1]); raise ValueError('mine')",
    "atexit": """
        import atexit
        class Mine: pass
        atexit.register(print, 'first registered')
        def late():
            import pickle, helper
            print('late', pickle.loads(pickle.dumps(Mine())).__class__ is Mine, helper.__name__)
        atexit.register(late)
        print('main')
        """,
    "atexit after an error": "import atexit; atexit.register(print, 'bye'); raise ValueError('mine')",
    "thread": """
        import threading, time
        print('main')
        threading.Thread(target=lambda: (time.sleep(0.3), print('thread'))).start()
        """,
    "thread that raises": """
        import threading
        def work(): raise ValueError('in a thread')
        t = threading.Thread(target=work, name='T'); t.start(); t.join(); print('main')
        """,
    "chdir": "import os; os.chdir('/'); print(__file__); open(__file__).close()",
    "stdout replaced": "import io, sys; sys.stdout = io.StringIO(); print('nowhere')",
    "stdout closed": "import sys; print('out'); sys.stdout.close()",
    "stderr closed": "import sys; print('out'); sys.stderr.close()",
    "argparse": "import argparse; p = argparse.ArgumentParser(); p.add_argument('--x'); print(p.parse_args())",
    "future": "def f(x: Missing): return 1\nprint('annotations')",
    "trains, profiles itself and raises": """
        import torch
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scope = torch.autograd.profiler.record_function
        before = (scope.__enter__, scope.__exit__)
        for i in range(12):
            if i == 5: own = torch.profiler.profile(); own.start()
            net(torch.ones(2)).sum().backward(); opt.step()
            if i == 7: own.stop(); print(sum(e.name == 'aten::addmm' for e in own.events()))
            print(i)
        print((scope.__enter__, scope.__exit__) == before)
        raise ValueError('mine')
        """,
}

ARGUMENTS = {"argparse": ["--x", "-m", "--x", "1"], "looks around": ["a", "--out", "b"]}


Ran = tuple[int, str, list[str]]
"""Exit code, stdout, lines of stderr."""


def ran(command: list[str], folder: Path) -> Ran:
    """Run a command, warnings shown."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        input="typed\n",
        cwd=folder,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "default"},
    )
    kineto = ("USDT:", "[W")  # its own words, of every profiler
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if not line.startswith(kineto)]


def python(folder: Path, *arguments: str) -> Ran:
    """Return the exit code and the output of `python ARGUMENTS`."""
    return ran([sys.executable, *arguments], folder)


def profiled(folder: Path, *arguments: str) -> Ran:
    """Return the same of `syncscan profile --keep-running ARGUMENTS`, without syncscan's own messages and reports."""
    options = ["--calibrate", "0", "--wait", "0", "--warmup", "1", "--active", "2", "--keep-running", "--out", "traces"]
    code, out, err = ran([sys.executable, "-m", "syncscan", "profile", *options, *arguments], folder)
    ours = ("syncscan: ", "warning: No device events", *NO_STEPS.splitlines())
    report = re.compile(r"script ·.*The trace has no device work\.\n.*?\nMore [^\n]*\n", re.DOTALL)
    return code, report.sub("", out), [line for line in err if not line.startswith(ours)]


QUICK = (
    *("looks around", "spawn", "fork", "exit code", "exit text", "os._exit", "raises", "syntax error", "interrupted"),
    *("killed", "own handler", "own excepthook", "atexit", "thread", "stdout closed", "argparse"),
)
"""One of each way to begin and to end; what else scripts do is tried with the slow tests."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in SCRIPTS]
)
def test_a_script_runs_as_under_python(name: str, tmp_path: Path) -> None:
    """Whatever it does, and however it ends."""
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPTS[name]))
    arguments = ["script.py", *ARGUMENTS.get(name, [])]
    expected = python(tmp_path, *arguments)
    assert expected[0] == 0 or name != "looks around"  # else it wouldn't have come to its last line
    assert profiled(tmp_path, *arguments) == expected


@pytest.mark.parametrize("name", ["looks around", "spawn", "exit text", "raises"])
def test_a_module_runs_as_under_python(name: str, tmp_path: Path) -> None:
    """`-m package.module`."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "script.py").write_text(textwrap.dedent(SCRIPTS[name]))
    assert profiled(tmp_path, "-m", "package.script", "a") == python(tmp_path, "-m", "package.script", "a")


def test_a_module_that_is_not_there_ends_as_under_python(tmp_path: Path) -> None:
    """With the interpreter's own sentence."""
    assert profiled(tmp_path, "-m", "no_such_module") == python(tmp_path, "-m", "no_such_module")


def test_a_folder_runs_as_under_python(tmp_path: Path) -> None:
    """By its `__main__.py`."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__main__.py").write_text("import sys; print(__name__, __file__, sys.argv, sys.path[0])")
    assert profiled(tmp_path, "job", "a") == python(tmp_path, "job", "a")
