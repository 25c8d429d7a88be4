"""Find changes of the measuring and projecting code that no test notices.

    python -m benchmarks.mutants run [--sample N] [--seed S] [FILE…]    changes functions (mutmut), prints the table
    python -m benchmarks.mutants constants [NAME | FILE…]               moves the numbers that results depend on
    python -m benchmarks.mutants table [--survivors]                    prints the last run's table again

Which files are changed and which tests run stands in pyproject.toml (`tool.mutmut`). mutmut changes functions alone, so
that the constants of a module would stay as they are; `constants` moves each of those, and each share in a function, by
half of it, down and up (a share above a half: its distance from 1), in a copy of the tree, and runs the same tests.
NAME and FILE are globs.
"""

from __future__ import annotations

import argparse
import ast
import collections
import difflib
import fnmatch
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import NoReturn

from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

WORKERS = 2
MOVED = 1.5
"""By how much a constant is moved, down and up: what is known less exactly than that is no measurement."""
WITH_CONSTANTS = (
    *(f"syncscan/facts/{name}.py" for name in ("device_work", "period", "recorded_stacks")),
    *(f"syncscan/model/{name}.py" for name in ("finding", "habit", "step")),
)
"""Further files whose constants are moved."""
TIMEOUT_S = 240
SUMMARY = "| file | mutants | killed | survived | share killed |\n|---|--:|--:|--:|--:|"


# ------------------------------------------------------------------ functions, by mutmut


def run(sample: int, seed: int, files: list[str]) -> None:
    """Run mutmut on all mutants of these files, or on so many of them."""
    shutil.rmtree("mutants", ignore_errors=True)  # mutmut makes nothing anew of a file that it finds mutated there
    names: list[str] = []
    if sample or files:
        _mutmut("no-such-mutant")
        names = [name for file, codes in _results() if _asked(file, files) for name in codes]
    if sample:
        names = random.Random(seed).sample(names, min(sample, len(names)))
    _mutmut(*names)


def _mutmut(*names: str) -> None:
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ["PATH"]])
    subprocess.run(["mutmut", "run", "--max-children", str(WORKERS), *names], env={**os.environ, "PATH": path})


def _asked(file: str, files: list[str]) -> bool:
    return not files or any(fnmatch.fnmatch(file, pattern) for pattern in files)


def _results() -> Iterator[tuple[str, dict[str, int | None]]]:
    """Each mutated file with the exit code of each of its mutants' tests, None where they didn't run."""
    for path in sorted(Path("mutants").glob("syncscan/**/*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        if codes:
            yield str(path.relative_to("mutants").with_suffix("")), codes


def table(survivors: bool) -> None:
    """Print how many mutants of each file were killed, what kind the others are, and which they are."""
    every, alive = collections.Counter[str](), []
    if not any(_fate(code) != "not run" for _, codes in _results() for code in codes.values()):
        sys.exit("No mutant was run: `run` comes before `table`, and mutmut says above why it ended.")
    print(SUMMARY)
    for file, codes in _results():
        result = collections.Counter(_fate(code) for code in codes.values())
        _row(file, result)
        every += result
        alive += [name for name, code in codes.items() if _fate(code) == "survived"]
    _row("all", every)
    if alive:
        _explain(alive, every, survivors)


def _fate(code: int | None) -> str:
    status = status_by_exit_code[code]
    if status in ("survived", "no tests"):
        return "survived"
    return "not run" if status == "not checked" else "killed"


def _row(name: str, result: collections.Counter[str]) -> None:
    count = result["killed"] + result["survived"]
    share = f"{result['killed'] / count:.0%}" if count else ""
    print(f"| {name} | {count} | {result['killed']} | {result['survived']} | {share} |")


def _explain(alive: list[str], every: collections.Counter[str], names: bool) -> None:
    changes = {name: _change(get_diff_for_mutant(name)) for name in alive}
    kinds = collections.Counter(_kind(*change) for change in changes.values())
    print("\n| kind of survivor | mutants |\n|---|--:|")
    for kind, count in kinds.most_common():
        print(f"| {kind} | {count} |")
    if kinds[GUARD]:
        every["survived"] -= kinds[GUARD]
        print(f"\nWithout the survivors that change a {GUARD} alone:\n{SUMMARY}")
        _row("all", every)
    for name, (before, after) in changes.items() if names else ():
        print(f"\n{name}\n    - {before}\n    + {after}")


def _change(diff: str) -> tuple[str, str]:
    """The lines that a mutant changes, before and after."""
    lines = diff.splitlines()[2:]
    return tuple(" ".join(line[1:].strip() for line in lines if line[:1] == sign) for sign in "-+")  # type: ignore[return-value]


GUARD = "guard (strict, dtype, kind)"
_GUARD = re.compile(r",?\s*(strict|dtype|kind)=[\w.\"']+|,(?=\s*\))")
"""Arguments that change no result of right code: `zip`'s check of lengths, an array's type said twice, which sort."""
_KINDS = {
    "comparison": r"[<>]=?|[!=]=|in|is|not",
    "and, or": r"and|or",
    "arithmetic": r"[-+*/%&|^~@]|//|\*\*|<<|>>|[-+*/&|]=",
    "number": r"[\d.][\d_.e-]*|True|False",
    "None instead of a value": r"None",
    "text": r"[rbfu]*[\"'].*",
}


def _kind(before: str, after: str) -> str:
    """Return the kind of the change, by the tokens that differ."""
    if _tokens(_GUARD.sub("", before)) == _tokens(_GUARD.sub("", after)):
        return GUARD
    old, new = _tokens(before), _tokens(after)
    edits = [e for e in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if e[0] != "equal"]
    fresh = [token for _, _, _, a, b in edits for token in new[a:b]]
    for kind, pattern in _KINDS.items():
        if any(re.fullmatch(pattern, token, re.DOTALL) for token in fresh):
            return kind
    return "argument left out" if not fresh else "other"


def _tokens(line: str) -> list[str]:
    try:
        return [t.string for t in tokenize.generate_tokens(io.StringIO(line).readline) if t.string.strip()]
    except (tokenize.TokenError, IndentationError):
        return line.split()


# ------------------------------------------------------------------ constants


@dataclass(frozen=True)
class Constant:
    """A number in an assignment outside of functions, moved: `source` is the file with it."""

    file: Path
    name: str
    line: int
    was: float
    moved: float
    source: str


def constants(patterns: list[str]) -> None:
    """Move each constant, run the tests, print which moves they notice."""
    globs = [*config().only_mutate, *WITH_CONSTANTS]
    files = sorted({path for glob in globs for path in Path().glob(glob) if path.suffix == ".py"})
    todo = [c for path in files for c in _constants(path) if _asked(c.name, patterns) or _asked(str(c.file), patterns)]
    trees: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        for number in range(WORKERS):
            trees.put(_copied(Path(folder) / str(number)))
        _require_passing(Path(folder) / "0")
        fates = list(pool.map(lambda c: _told(c, _tested(c, trees)), todo))
    result: dict[str, collections.Counter[str]] = {}
    for constant, fate in zip(todo, fates, strict=True):
        result.setdefault(str(constant.file), collections.Counter())[fate] += 1
    print(f"\n{SUMMARY}")
    for file, counts in result.items():
        _row(file, counts)
    _row("all", sum(result.values(), collections.Counter()))


def _constants(path: Path) -> Iterator[Constant]:
    """The numbers of a module's own assignments, and the shares (between 0 and 1) in its functions."""
    source = path.read_text()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and _is_constant(statement):
            name = ", ".join(n.id for n in ast.walk(statement.targets[0]) if isinstance(n, ast.Name))
            matches = [n for n in _numbers(statement.value) if n.value not in (0, 1)]
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            name, matches = statement.name, [n for n in _numbers(statement) if 0 < n.value < 1]
        else:
            continue
        for node in matches:
            for to in _moves(node.value):
                yield Constant(path, name, node.lineno, node.value, to, _replaced(source, node, to))


def _is_constant(statement: ast.Assign) -> bool:
    """Written in capitals: not a type's name."""
    return all(n.id.isupper() for n in ast.walk(statement.targets[0]) if isinstance(n, ast.Name))


def _numbers(tree: ast.AST) -> list[ast.Constant]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]


def _moves(value: float) -> Iterable[float]:
    if isinstance(value, int):
        step = max(1, round(abs(value) * (MOVED - 1)))
        return (value - min(step, max(1, round(value - value / MOVED))), value + step)
    if 0.5 < value < 1.0:
        return (1.0 - (1.0 - value) * MOVED, 1.0 - (1.0 - value) / MOVED)
    return (value / MOVED, value * MOVED)


def _replaced(source: str, node: ast.Constant, to: float) -> str:
    lines = source.splitlines(keepends=True)
    line = lines[node.lineno - 1].encode()
    text = line[: node.col_offset] + repr(to).encode() + line[node.end_col_offset :]
    return "".join([*lines[: node.lineno - 1], text.decode(), *lines[node.lineno :]])


def _copied(tree: Path) -> Path:
    tree.mkdir()
    for path in (*config().source_paths, *config().also_copy):
        if path.is_dir():
            shutil.copytree(path, tree / path, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():  # mutmut adds names of lock files
            shutil.copy(path, tree / path)
    return tree


def _require_passing(tree: Path) -> None:
    """A test that fails of the tree as it is would fail of every constant moved, and each would count as killed."""
    ended = _run_tests(tree)
    if ended.returncode:
        sys.exit(f"{_end_of(ended)}\nThe tests fail with nothing changed, so that no change can be tried.")


def _run_tests(tree: Path) -> subprocess.CompletedProcess[bytes]:
    likely = sorted(str(path.relative_to(tree)) for path in tree.glob("tests/*/test_constants.py"))
    chosen = [*config().pytest_add_cli_args, *likely, *config().pytest_add_cli_args_test_selection]
    command = [sys.executable, "-m", "pytest", "-x", "-q", *chosen]
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=TIMEOUT_S)


def _tested(constant: Constant, trees: Queue[Path]) -> str:
    tree = trees.get()
    try:
        (tree / constant.file).write_text(constant.source)
        ended = _run_tests(tree)
        return "killed" if ended.returncode == 1 else "survived" if ended.returncode == 0 else _broken(ended)
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        shutil.copy(constant.file, tree / constant.file)
        trees.put(tree)


def _broken(ended: subprocess.CompletedProcess[bytes]) -> NoReturn:
    raise RuntimeError(f"pytest could not run: {_end_of(ended)}")


def _end_of(ended: subprocess.CompletedProcess[bytes]) -> str:
    return ended.stdout.decode()[-2000:]


def _told(constant: Constant, fate: str) -> str:
    place = f"{constant.file}:{constant.line} {constant.name}"
    print(f"{fate:9s} {place}: {constant.was:g} → {constant.moved:g}", flush=True)
    return fate


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--sample", type=int, default=0)
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("files", nargs="*")
    moving = commands.add_parser("constants")
    moving.add_argument("names", nargs="*")
    commands.add_parser("table").add_argument("--survivors", action="store_true")
    given = parser.parse_args()
    if given.command == "constants":
        constants(given.names)
        return
    if given.command == "run":
        run(given.sample, given.seed, given.files)
    table(given.command == "table" and given.survivors)


if __name__ == "__main__":
    main()
