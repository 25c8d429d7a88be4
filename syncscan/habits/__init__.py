"""From a trace, its findings and its measured step to the program's habits: what else costs the step time.

Each rule claims only what the trace proves, and says by which numbers. What a habit's removal would gain is predicted
later, from the `changes` it names; until then its measured cost stands as an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.rules import RULES
from syncscan.model.finding import Finding, Severity
from syncscan.model.habit import Basis, Habit, HabitGain
from syncscan.model.host import SampledHost
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace


def find(
    trace: Trace, findings: Sequence[Finding], step: StepSummary, sampled: SampledHost | None = None
) -> tuple[tuple[Habit, ...], tuple[str, ...]]:
    """Find the habits of a trace.

    Args:
        trace: with steps that take time; without them there is nothing to say of a step.
        findings: its syncs, so that a habit can name those that would go with it.
        step: as measured, with the unprofiled time where it is known.
        sampled: the functions that the step's thread was in, where capture sampled it.

    Returns:
        The habits, the costliest first, and warnings: a rule that raises is named there and skipped.
    """
    context = Context(trace, tuple(findings), step, sampled)
    if not trace.steps or not context.period_us or not len(trace.device_rows):
        return (), ()
    found: list[Habit] = []
    warnings = []
    for rule in RULES:
        try:
            found += [bounded(h, context.period_us) for h in rule.find(context)]
        except Exception as e:
            warnings.append(f"The rule {rule.ADVICE.rule} failed ({type(e).__name__}: {e}) and was skipped.")
    return tuple(sorted(found, key=lambda h: (-(h.cost_us or 0.0), h.id))), tuple(warnings)


def bounded(habit: Habit, period_us: float) -> Habit:
    """The habit with its measured cost as the upper bound of its gain, unless it has one; and a severity by that."""
    if habit.gain is not None:
        return replace(habit, severity=habit.gain.severity(period_us))
    if habit.cost_us is None:
        return replace(habit, severity=Severity.MEDIUM)
    gain = HabitGain(habit.cost_us, (0.0, habit.cost_us), Basis.UPPER_BOUND)
    return replace(habit, gain=gain, severity=gain.severity(period_us))


__all__ = ["bounded", "find"]
