"""Render flagged lines as JUnit XML for CI servers: each is a failed or a skipped test."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from syncscan.model.finding import Severity
from syncscan.report.flagged import Flagged, FlaggedLine
from syncscan.report.printable import shown

FAILING = (Severity.HIGH, Severity.MEDIUM)
"""Severities that count as failures; lower ones are skipped tests, since they aren't worth a red build."""

_TEXT = 1000


def drawn(flagged: Sequence[Flagged]) -> str:
    """Return a suite per recording, with a test per exceeded limit, or per flagged line where no limits are tested."""
    suites = ET.Element("testsuites", {"name": flagged[0].tool, **_counts(flagged)})
    for report in flagged:
        attributes = {"name": clean(PurePath(report.path).name), **_counts([report]), "time": _seconds(report.took_us)}
        suite = ET.SubElement(suites, "testsuite", attributes)
        _properties(suite, report)
        suite.extend(_case(line) for line in _tests(report))
        if report.passed and not _tests(report):
            suite.append(_element(report.passed))
        if report.output:
            ET.SubElement(suite, "system-out").text = clean(report.output, 4 * _TEXT)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _tests(flagged: Flagged) -> tuple[FlaggedLine, ...]:
    return flagged.limits or flagged.lines


def _counts(flagged: Iterable[Flagged]) -> dict[str, str]:
    tests = [_tests(one) for one in flagged]
    failed = sum(line.severity in FAILING for lines in tests for line in lines)
    skipped = sum(map(len, tests)) - failed
    count = sum(max(len(lines), 1) for lines in tests)
    return {"tests": str(count), "failures": str(failed), "errors": "0", "skipped": str(skipped)}


def _properties(suite: ET.Element, flagged: Flagged) -> None:
    if flagged.properties:
        properties = ET.SubElement(suite, "properties")
        for name, value in flagged.properties.items():
            ET.SubElement(properties, "property", {"name": name, "value": value})


def _case(line: FlaggedLine) -> ET.Element:
    case = _element(line)
    if line.place:
        case.set("file", clean(line.place.file))
        case.set("line", str(line.place.line))
    message = clean(line.cost, _TEXT)
    if line.severity in FAILING:
        failure = ET.SubElement(case, "failure", {"type": clean(line.rule), "message": message})
        failure.text = "\n".join(clean(text, _TEXT) for text in line.details if text)
    else:
        ET.SubElement(case, "skipped", {"message": message})
    return case


def _element(line: FlaggedLine) -> ET.Element:
    attributes = {"classname": clean(line.group), "name": clean(line.name), "time": _seconds(line.took_us)}
    return ET.Element("testcase", attributes)


def _seconds(us: float | None) -> str:
    return "0" if us is None else f"{us / 1e6:.6f}"


_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NAME = 200
"""Characters of a name."""


def clean(text: str, limit: int = NAME) -> str:
    """Return text without characters that XML 1.0 can't hold; not escaped."""
    return _ILLEGAL.sub("\ufffd", shown(text, limit))
