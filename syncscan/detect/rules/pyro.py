"""Match a wait in one of the places of the table, or of a distribution that Pyro makes."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.detect.rule_table import table_of
from syncscan.model.finding import Cause, Removal


def match(call: Call) -> Match | None:
    if call.in_library("pyro") and call.in_library("torch/distributions"):
        return Match(
            variant="distribution",
            removal=Removal.NOTHING,
            cause=Cause.CHECK,
            for_caller=True,
        )
    return table_of("pyro").match(call)
