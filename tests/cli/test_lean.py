"""Commands that only read switch off what they don't need, and leave it alone where they run a program."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import textwrap

import pytest

from syncscan.cli import all_commands, lean

STARTERS = {"attach", "demo", "profile", "dryrun", "fix", "prove", "open", "serve", "watch"}
"""They run a program of the user's, or start one."""
SAYS = "lambda: print(gc.get_freeze_count() > 0, os.getenv('OPENBLAS_NUM_THREADS'))"


def test_each_command_is_of_one_kind() -> None:
    """It only reads, or it is one that starts programs: a new one is to be put in its place."""
    assert {name for name in all_commands() if not lean.only_reads(name)} == STARTERS & set(all_commands())


def test_a_command_that_reads_begins_and_ends_lean() -> None:
    """No thread of OpenBLAS's is to begin, and no object is looked at when it ends."""
    begin = f"import atexit, gc, os, sys; atexit.register({SAYS})"
    code = f"{begin}; sys.argv[1:] = ['analyze', '/nowhere']; from syncscan.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=_without_blas())
    assert (done.returncode, done.stdout) == (3, "True 1\n")


def test_another_program_s_process_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy is loaded it isn't the command's own, as in this one."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = gc.get_threshold(), gc.get_freeze_count()
    lean.begin()
    lean.before_reading()
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_what_the_process_itself_has_frozen_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that called `gc.freeze()` isn't made to collect with each trace: of a large one it takes a second."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)
    monkeypatch.setattr(gc, "collect", lambda *_: pytest.fail("collects"))
    lean.before_reading()


def _without_blas() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told so")
@pytest.mark.parametrize(("begin", "stored"), [("lean.begin()", True), ("", False)])
def test_memory_that_was_freed_is_used_again(begin: str, stored: bool) -> None:
    """It stays with the process: asking for it anew, the system would clear each page first."""
    code = f"""
        from syncscan.cli import lean
        {begin}
        def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
        before, blocks = resident(), [bytearray(8 << 20) for _ in range(8)]
        blocks.clear()
        print(resident() - before > 32 << 20)"""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{stored}\n"
