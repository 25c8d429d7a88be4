"""Texts that the step's thread tokenizes.

## What it finds

Functions of tokenizers on the step's thread, outside of a DataLoader.

## How it shows in the trace

Not as a slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the outermost function of this kind. Work of a DataLoader is a habit of its own.

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

At most its sampled time; in a host-bound step, at least half of that.

## References

- https://huggingface.co/docs/datasets/use_dataset#tokenize-text
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="tokenize-on-step",
    area=Area.INPUT,
    title="The step's thread tokenizes texts",
    why="Tokens are the same in every epoch, and the thread launches nothing while it makes them.",
    fix="Tokenize once before training (Dataset.map), or in the DataLoader's workers.",
    when_fine="When texts arrive one by one, as on a server, or the device is busy meanwhile.",
)


def find(context: Context) -> Iterable[Habit]:
    """Return the habit for functions of tokenizers outside of a DataLoader, by samples."""
    return sampled_habit(context, ADVICE, WorkKind.TOKENIZING)
