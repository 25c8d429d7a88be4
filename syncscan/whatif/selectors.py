"""Select findings by `all`, `scope:GLOB`, `rule:ID`, `op:GLOB`, `id:ID`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from syncscan.errors import UsageError
from syncscan.model.finding import Finding

KINDS = ("scope", "rule", "op", "id")


def select(findings: Sequence[Finding], selectors: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings that any of these selectors matches, in order.

    `all` leaves out waits that are intended or not the program's own (severity `info`); select those by id. A scope
    glob matches any one scope of a finding, or all of them joined by `/`.
    """
    chosen: set[str] = set()
    for selector in selectors:
        _check(selector)
        hits = [f.id for f in findings if _matches(f, selector)]
        if not hits and selector != "all":
            raise UsageError(f"The selector {selector!r} matches no sync in this trace.", _close(findings, selector))
        chosen.update(hits)
    return tuple(f for f in findings if f.id in chosen)


def _check(selector: str) -> None:
    kind, _, glob = selector.partition(":")
    if selector != "all" and not (kind in KINDS and glob):
        raise UsageError(
            f"{selector!r} isn't a selector.",
            "Use all, scope:GLOB, rule:ID, op:GLOB or id:ID; give each with its own `--remove`.",
        )


def _matches(finding: Finding, selector: str) -> bool:
    if selector == "all":
        return not finding.intended
    kind, _, glob = selector.partition(":")
    return any(fnmatchcase(name, glob) for name in _names(finding, kind))


def _names(finding: Finding, kind: str) -> tuple[str, ...]:
    if kind == "scope":
        return (*finding.scope, "/".join(finding.scope))
    if kind == "op":
        return (finding.op, *finding.op_stack)
    return (finding.rule,) if kind == "rule" else (finding.id,)


def _close(findings: Sequence[Finding], selector: str) -> str:
    kind, _, glob = selector.partition(":")
    names = sorted({n for f in findings for n in _names(f, kind) if n})
    if not names:
        return f"No sync in it has any {kind}." if findings else "It has no syncs."
    import difflib

    near = difflib.get_close_matches(glob.strip("*"), names, n=5, cutoff=0.3) or names[:5]
    return "Did you mean " + " or ".join(f"{kind}:{n}" for n in near) + "?"
