"""Find a program's habits: what else, besides syncs, costs step time.

Each rule claims only what the trace proves, and states the numbers. The gain of removing a habit is predicted later
from its `changes`; until then the measured cost is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.rules import RULES
from syncscan.model.finding import Finding, Severity
from syncscan.model.habit import Habit
from syncscan.model.host import SampledHost
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace
from syncscan.rules.pages import RuleDoc, habit_page


def find(
    trace: Trace, findings: Sequence[Finding], step: StepSummary, sampled: SampledHost | None = None
) -> tuple[tuple[Habit, ...], tuple[str, ...]]:
    """Return the habits, costliest first (none without timed steps), and warnings that name rules that raised."""
    context = Context(trace, tuple(findings), step, sampled)
    if not trace.steps or not context.period_us or not len(trace.device_rows):
        return (), ()
    habits: list[Habit] = []
    warnings = []
    for rule, find_habits in RULES.items():
        try:
            habits += [bounded(h, context.period_us) for h in context.cached(find_habits)]
        except Exception as e:
            warnings.append(f"The rule {rule} failed ({type(e).__name__}: {e}) and was skipped.")
    return tuple(sorted(habits, key=lambda h: (-(h.cost_us or 0.0), h.id))), tuple(warnings)


def bounded(habit: Habit, period_us: float) -> Habit:
    """Return the habit with a severity, and with its measured cost as upper bound of the gain if it has no gain."""
    if habit.basis is not None:
        return habit
    if habit.cost_us is None:
        return replace(habit, severity=Severity.MEDIUM)
    return habit.gaining_at_most(habit.cost_us, period_us)


PREAMBLE = """\
import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
samples = [(torch.randn(64), k % 8) for k in range(64)]
x = torch.randn(16, 64, device=device)
labels = torch.randint(0, 8, (16,), device=device)


def train(x, labels):
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""
"""Code that the examples in the habits' documentation rely on."""


def catalogue() -> tuple[RuleDoc, ...]:
    """Return the documentation of every habit's rule, in the order in which rules run."""
    return tuple(map(habit_page, RULES))


__all__ = ["PREAMBLE", "bounded", "catalogue", "find"]
