"""Build the documentation of the habits' rules from their docstrings and advice."""

from __future__ import annotations

from syncscan.habits.rules import RULES, HabitRule
from syncscan.model import race_examples
from syncscan.model.rule_doc import RuleDoc, in_order, sections_of

WHY, INSTEAD, WHEN_FINE = "Why it matters", "Use instead", "When it is fine"
"""Headings of a rule's advice; the docstring's code follows under the second."""

HEADINGS = (
    "What it finds",
    WHY,
    "How it shows in the trace",
    "Example",
    INSTEAD,
    race_examples.HEADING,
    "What it would save",
    WHEN_FINE,
    "References",
)
"""Headings of every habit's documentation, in order."""

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
    return tuple(map(document, RULES))


def document(rule: HabitRule) -> RuleDoc:
    """Return the documentation of a rule, from its module's docstring and its advice."""
    summary, sections = sections_of(rule.__doc__ or "")
    advice = rule.ADVICE
    sections |= {WHY: advice.why, WHEN_FINE: advice.when_fine}
    sections[INSTEAD] = f"{advice.fix}\n\n{sections.get(INSTEAD, '')}".strip()
    race = getattr(rule, "RACE", None)
    if race is not None:
        sections[race_examples.HEADING] = race_examples.section(race)
    return RuleDoc(advice.rule, advice.title, advice.area, summary, in_order(sections, HEADINGS))
