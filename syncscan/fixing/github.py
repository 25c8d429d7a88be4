"""A patch as a review with suggestion blocks, as GitHub's API takes it.

`gh api repos/OWNER/REPO/pulls/NUMBER/reviews --input FILE` posts it: each change is at its lines, to be
committed by a click.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence

from syncscan.fixing.report import gain, tolerance, verdict
from syncscan.model.fix import Fix, Fixed, Patched
from syncscan.report.markup import escaped


def render(fixed: Fixed) -> str:
    comments = [comment for file in fixed.files for comment in _comments(file, fixed.applied)]
    body = (
        f"{escaped(verdict(fixed), 400)}\n\n{escaped(tolerance(fixed))}" if fixed.applied else escaped(verdict(fixed))
    )
    return json.dumps({"event": "COMMENT", "body": body, "comments": comments}, indent=2, ensure_ascii=False) + "\n"


def _comments(file: Patched, fixes: Sequence[Fix]) -> Iterator[dict[str, object]]:
    before, after = _lines(file.before), _lines(file.after)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        if a == b:  # a suggestion replaces lines: what is put in stands behind the line in front of it
            a, c = (a - 1, c - 1) if a else (a, c)
            b, d = (b, d) if a < b else (b + 1, d + 1)
        in_hunk = [f for f in fixes if f.file == file.file and f.line <= b and f.end_line > a]
        lines: dict[str, object] = (
            {"line": b} if b - a == 1 else {"start_line": a + 1, "start_side": "RIGHT", "line": b}
        )
        yield {"path": file.file, **lines, "side": "RIGHT", "body": _body(in_hunk, after[c:d])}


def _lines(text: str) -> list[str]:
    """Return lines without their ends, as GitHub counts them: a form feed ends none."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _body(fixes: Sequence[Fix], lines: Sequence[str]) -> str:
    words = dict.fromkeys(f"`{f.rule}` {escaped(f.change)}" + (f": {gain(f)}" if f.gain else "") for f in fixes)
    fence = "`" * max([3, *(1 + len(run) for line in lines for run in line.split() if set(run) == {"`"})])
    head = "; ".join(words) or "Reads the deferred values."
    return "\n".join([head, "", f"{fence}suggestion", *lines, fence])
