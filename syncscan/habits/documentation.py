"""From the habits' rules to what there is to read about them: the docstring of each, with the words of its advice."""

from __future__ import annotations

from syncscan.habits.rules import RULES, Rule
from syncscan.model.rule_doc import RuleDoc, in_order, sections_of

WHY, INSTEAD, WHEN_FINE = "Why it matters", "Use instead", "When it is fine"
"""The headings under which a rule's advice stands; the second has the docstring's code behind it."""

HEADINGS = (
    "What it finds",
    WHY,
    "How it shows in the trace",
    "Example",
    INSTEAD,
    "What it would save",
    WHEN_FINE,
    "References",
)
"""The headings of every habit's documentation, in their order."""

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
"""What the examples in the habits' documentation stand on."""


def catalogue() -> tuple[RuleDoc, ...]:
    """The documentation of every habit's rule, in the order in which they are asked."""
    return tuple(map(document, RULES))


def document(rule: Rule) -> RuleDoc:
    """The documentation of a rule, from its module's docstring and its advice."""
    summary, found = sections_of(rule.__doc__ or "")
    advice = rule.ADVICE
    found |= {WHY: advice.why, WHEN_FINE: advice.when_fine}
    found[INSTEAD] = f"{advice.fix}\n\n{found.get(INSTEAD, '')}".strip()
    return RuleDoc(advice.rule, advice.title, advice.area, summary, in_order(found, HEADINGS))
