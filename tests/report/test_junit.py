"""JUnit: well-formed whatever the names hold, a failure where a sync costs something."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

from tests.each import each
from tests.report.example import HOSTILE, analysis, hostile, rendered, typical


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.junit.xml", rendered("junit", typical()))


def test_severity_decides():
    """High and medium fail, low and info are skipped, and the counts say so."""
    suites = ET.fromstring(rendered("junit", typical()))
    outcomes = [case.find("failure") is not None for case in suites.iter("testcase")]
    assert outcomes == [True, True, False, False]
    assert [suites.get(k) for k in ("tests", "failures", "skipped")] == ["4", "2", "2"]


def test_no_findings_is_a_test_that_passes():
    """A server that counts tests sees one."""
    suites = ET.fromstring(rendered("junit", analysis()))
    (case,) = suites.iter("testcase")
    assert list(case) == []
    assert suites.get("tests") == "1"


@each("text", HOSTILE)
def test_hostile_text_is_text(text: str):
    """The XML parses, and holds the same elements as ever."""
    suites = ET.fromstring(rendered("junit", hostile(text)).encode())
    tags = [e.tag for e in suites.iter()]
    assert tags == [e.tag for e in ET.fromstring(rendered("junit", hostile("harmless"))).iter()]
