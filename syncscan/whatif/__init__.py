"""Projections from a trace and its findings: the step replayed without chosen syncs, and what each would gain."""

from syncscan.whatif.gains import project_gains
from syncscan.whatif.habit_gains import project_habits
from syncscan.whatif.projector import Projector
from syncscan.whatif.rank_graph import graph_of_rank
from syncscan.whatif.remedies import remedies_of
from syncscan.whatif.states import together

__all__ = [
    "Projector",
    "graph_of_rank",
    "project_gains",
    "project_habits",
    "remedies_of",
    "together",
]
