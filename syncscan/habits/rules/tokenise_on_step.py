"""Texts that the step's thread tokenises.

## What it finds

Functions of tokenisers on the step's thread, outside of a DataLoader.

## How it shows in the trace

In no slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the
outermost function of this kind. What a DataLoader does is its own habit.

## Example

```python
texts = ["a first text", "a second one"] * 8
for _ in range(3):
    tokens = torch.tensor([[len(word) for word in text.split()] for text in texts])
    train(x + tokens.sum().item(), labels)
```

## Use instead

```python
texts = ["a first text", "a second one"] * 8
tokens = torch.tensor([[len(word) for word in text.split()] for text in texts])
shift = tokens.sum().item()
for _ in range(3):
    train(x + shift, labels)
```

## What it would save

Its time as samples show it is the most that can be saved; at least half of it is, where the host bounds the step.

## References

- https://huggingface.co/docs/datasets/use_dataset#tokenize-text
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="tokenise-on-step",
    area=Area.INPUT,
    title="The step's thread tokenises texts",
    why="Tokens are the same in every epoch, and while it makes them the thread launches nothing.",
    fix="Tokenise once before training (Dataset.map), or in the DataLoader's workers.",
    when_fine="When texts come one by one, as to a server, or the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of tokenisers, by samples, outside of a DataLoader."""
    return sampled_habit(context, ADVICE, Kind.TOKENIZING)
