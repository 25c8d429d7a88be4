"""How many lines that wait does `syncscan lint` name? `python -m benchmarks.lint_lines [FILE…]`, without a GPU.

Each program runs dry to its end: the lines of its own file that then wait in its steps and between them are what is to
be named. The table has how many of them lint names, and how many lines it guesses at medium that never waited. Without
a FILE it is for the programs of `benchmarks/training_loops`, which have the shapes of public ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parent / "training_loops"
ALL_STEPS = 1000
"""More steps than any program has."""


class Named(NamedTuple):
    """The lines of a program that wait, those of them that lint names, and those that it guesses wrongly."""

    waiting: frozenset[int]
    named: frozenset[int]
    wrong: frozenset[int]


def named_lines(program: Path) -> Named:
    """Run a program dry, and return which of its lines wait and which of them lint names."""
    waiting = frozenset(
        finding["source"]["line"]
        for finding in _json("dryrun", "--steps", str(ALL_STEPS), str(program))["findings"]
        if finding["severity"] != "info" and finding["source"] and _same(finding["source"]["file"], program)
    )
    guesses = _json("lint", str(program))["guesses"]
    spans = [(_lines(guess["source"]), guess["severity"]) for guess in guesses]
    named = frozenset(line for line in waiting if any(line in span for span, _ in spans))
    wrong = frozenset(span[0] for span, severity in spans if severity == "medium" and not waiting & set(span))
    return Named(waiting, named, wrong)


def table(programs: Sequence[Path]) -> list[str]:
    """Return the lines of a table of these programs, with a last row for all of them."""
    rows = [
        "| program | lines that wait | named | not named | medium guesses that don't wait |",
        "|---|---|---|---|---|",
    ]
    every = [named_lines(program) for program in programs]
    for program, lines in zip(programs, every, strict=True):
        rows.append(_row(f"`{program.stem}`", [lines]))
    return [*rows, _row("all", every)]


def _row(name: str, every: Sequence[Named]) -> str:
    missing = ", ".join(str(line) for lines in every for line in sorted(lines.waiting - lines.named))
    wrong = ", ".join(str(line) for lines in every for line in sorted(lines.wrong))
    if len(every) > 1:
        missing, wrong = "", str(sum(len(lines.wrong) for lines in every))
    waiting, named = sum(len(lines.waiting) for lines in every), sum(len(lines.named) for lines in every)
    return f"| {name} | {waiting} | {named} | {missing} | {wrong} |"


def _lines(source: dict[str, Any]) -> range:
    return range(source["line"], (source["end_line"] or source["line"]) + 1)


def _same(file: str, program: Path) -> bool:
    return Path(file).name == program.name


def _json(*arguments: str) -> Any:
    """Return what a command of syncscan's writes as JSON; what the program prints before it is skipped."""
    command, *rest = arguments
    words = [sys.executable, "-m", "syncscan", command, "--format", "json", *rest]
    done = subprocess.run(words, capture_output=True, text=True)
    begin = done.stdout.find("{\n")
    if begin < 0:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    return json.loads(done.stdout[begin:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="programs that run by themselves")
    given = parser.parse_args().files
    print("\n".join(table(given or sorted(PROGRAMS.glob("[a-z]*.py")))))


if __name__ == "__main__":
    main()
