"""GitHub annotations: within the limits, the worst first, and no command but ours."""

from __future__ import annotations

import re
from collections.abc import Callable

from syncscan.model.finding import Severity
from tests.each import each
from tests.report.example import HOSTILE, analysis, finding, hostile, rendered, typical

COMMAND = re.compile(r"::(error|warning|notice) (?:file=([^:,]*),line=(\d+),)?title=([^:,]*)::(.*)")


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.github.txt", rendered("github", typical()))


def test_no_findings_is_one_notice():
    """Nothing found is said."""
    (line,) = rendered("github", analysis()).splitlines()
    assert line.startswith("::notice title=syncscan::")
    assert "No sync was found." in line


def test_limits_are_kept_and_reported():
    """Ten of a kind, the first ones, and the closing notice counts the rest."""
    many = [
        finding(f"nonzero-{severity.value}-{k}", severity=severity)
        for severity in (Severity.HIGH, Severity.MEDIUM, Severity.LOW)
        for k in range(20)
    ]
    lines = rendered("github", analysis(*many)).splitlines()
    kinds = [COMMAND.fullmatch(line).group(1) for line in lines]  # type: ignore[union-attr]
    assert {kind: kinds.count(kind) for kind in kinds} == {"error": 10, "warning": 10, "notice": 10}
    assert "31 more of them have no annotation" in lines[-1]


def test_intended_waits_are_left_out():
    """Findings of severity info get no annotation."""
    lines = rendered("github", typical()).splitlines()
    assert len(lines) == 4
    assert not [line for line in lines if "torch.cuda.synchronize" in line]


@each("text", HOSTILE)
def test_hostile_text_gives_no_command(text: str):
    """Every line is one command of ours, whatever the names hold."""
    lines = rendered("github", hostile(text)).split("\n")
    assert lines.pop() == ""
    assert len(lines) == 2
    assert all(COMMAND.fullmatch(line) for line in lines)
    assert not any(re.search("[\x00-\x1f]", line) for line in lines)


def test_escapes_are_those_of_the_runner():
    """The runner unescapes them to the original text."""
    (line, _) = rendered("github", hostile("50%, a:b")).splitlines()
    _, file, number, title, message = COMMAND.fullmatch(line).groups()  # type: ignore[union-attr]
    assert (file, number, title) == ("50%25%2C a%3Ab", "3", "50%25%2C a%3Ab")
    assert "50%25, a:b" in message
