"""From an Analysis to projections: the step replayed without chosen sync points, and what each finding would gain."""

from syncscan.whatif.enrich import enrich
from syncscan.whatif.habits import project_habits
from syncscan.whatif.project import pipeline, project

__all__ = ["enrich", "pipeline", "project", "project_habits"]
