"""List the documentation of the habits' rules, and the code that its examples rely on."""

from __future__ import annotations

from syncscan.habits.rules import RULES
from syncscan.model.rule_doc import RuleDoc
from syncscan.rules.pages import habit_page

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
    return tuple(habit_page(rule.id) for rule in RULES)
