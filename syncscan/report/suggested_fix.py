"""Sentences and lines about the change of `syncscan fix` at a finding."""

from __future__ import annotations

from syncscan.model.fix import Suggested
from syncscan.report.printable import printable

LONGEST = 200
"""Characters of a line of the diff that are shown."""


def caption(suggested: Suggested) -> str:
    """Return one line about a change: the change in a few words, its safety, and whether it was verified."""
    also = f": {suggested.why}" if suggested.why else ""
    verified = "verified by a dry run" if suggested.verified else suggested.how or "not verified"
    return f"syncscan fix would {suggested.change} ({suggested.safety.value}{also}; {verified})."


def diff_lines(suggested: Suggested) -> list[str]:
    lines = suggested.diff.splitlines()
    return [printable(line.expandtabs(4), LONGEST) for line in lines if not line.startswith(("--- ", "+++ "))]
