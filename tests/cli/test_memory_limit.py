"""`--max-memory` is held by the system, and what hits it ends with a sentence."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.cli.memory_limit import held, option, size
from syncscan.load import memory_check
from tests.builder import TraceBuilder
from tests.each import each

GB = 10**9

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit on data is Linux's")


def run(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "syncscan", *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """58 kB of gzip whose one member, a list of lists, takes gigabytes as Python's objects."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=6) as f:
        f.write(
            b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"k","ts":1,"dur":1}],"a":[' + b"[]," * 20_000_000 + b"1]}"
        )
    return path


SLOW = [("repair", "-o", "out.json"), ("report", "-o", "-")]


@pytest.mark.parametrize("command", [("analyze",), *(pytest.param(words, marks=pytest.mark.slow) for words in SLOW)])
def test_a_bomb_ends_with_a_sentence(bomb: Path, command: tuple[str, ...]) -> None:
    """Neither a MemoryError nor a machine that swaps."""
    done = run("--max-memory", "400M", command[0], bomb, *command[1:])
    assert done.returncode == 3
    assert "needs more memory than is available or allowed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("out.json").exists()


@each("text", ["0", "-1", "4X", "99M", "1e9", "99999999T"])
def test_what_is_no_size(text: str) -> None:
    """Said before anything is read."""
    done = CliRunner().invoke(group, ["--max-memory", text, "analyze", "t.json"])
    assert done.exit_code == 2
    assert "is not a size" in done.output


def test_the_limit_ends_with_the_command(tmp_path: Path) -> None:
    """Whoever calls a command in a process of his own has his limit back."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    CliRunner().invoke(group, ["--max-memory", "4G", "analyze", str(tmp_path / "none.json")])
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[int, int]]]:
    """Gives the limit that a command runs under, beyond what is taken already, and what it is told of it."""
    free, before = memory_check.taken() or 0, resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(memory_check, "taken", lambda: free)
    monkeypatch.setattr(memory_check, "available", lambda: 4 * GB)

    @click.command()
    @option
    @held
    def command(max_memory: int | None) -> None:
        click.echo(json.dumps([resource.getrlimit(resource.RLIMIT_DATA)[0] - free, size()]))

    def limit(process_limit: int, *args: str) -> tuple[int, int]:
        resource.setrlimit(resource.RLIMIT_DATA, (free + process_limit, before[1]))
        held, report = json.loads(CliRunner().invoke(command, args).stdout)
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == free + process_limit
        return held, report

    yield limit
    resource.setrlimit(resource.RLIMIT_DATA, before)


def test_a_limit_of_the_users_own_is_only_lowered(allowed: Callable[..., tuple[int, int]]) -> None:
    """`ulimit -d` stays what it is where it is tighter than what is asked for, or free."""
    assert allowed(3 * GB, "--max-memory", "1G") == (GB, GB)
    assert allowed(2 * GB, "--max-memory", "3G") == (2 * GB, 3 * GB)
    assert allowed(2 * GB) == (2 * GB, 4 * GB)
    assert allowed(5 * GB) == (4 * GB, 4 * GB)


def test_what_is_free_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading counts with the same limit that the system holds the command to."""
    requests: list[int] = []
    monkeypatch.setattr(memory_check, "available", lambda: requests.append(1) or 4 * GB)
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    path = t.write(tmp_path / "t.json")
    assert CliRunner().invoke(group, ["analyze", str(path)]).exit_code == 0
    assert requests == [1]
