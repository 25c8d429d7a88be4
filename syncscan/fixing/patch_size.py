"""How many lines a change adds: one that adds many for each wait is left to the author, with its code."""

from __future__ import annotations

from syncscan.fixing.edits import Clash, Edit
from syncscan.fixing.proposal import Proposal
from syncscan.model.fix import Safety

MOST_LINES = 2
"""Lines that may be added for each place that no longer waits."""


def is_too_long(proposal: Proposal) -> bool:
    """Return whether a change adds more lines than its places are worth."""
    if proposal.safety is Safety.UNSAFE:
        return False  # it was asked for
    places = 1 + len(proposal.group) - proposal.shared
    return _added(proposal) > MOST_LINES * max(1, places)


def _added(proposal: Proposal) -> int:
    text = proposal.draft.text.text
    return sum(edit.text.count("\n") - text[edit.begin : edit.end].count("\n") for edit in _edits(proposal))


def by_hand(proposal: Proposal) -> str:
    """Return the reason for leaving a change that is too long, with the lines that it would add."""
    lines = [line.strip() for edit in _edits(proposal) if edit.begin == edit.end for line in edit.text.split("\n")]
    code = "; ".join(f"`{line}`" for line in lines if line)
    return f"it would take {_added(proposal)} more lines: to {proposal.change}, add {code}"


def _edits(proposal: Proposal) -> list[Edit]:
    try:
        return proposal.draft.edits()
    except Clash:
        return []
