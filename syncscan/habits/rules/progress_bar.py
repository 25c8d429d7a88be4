r"""A progress bar that the step's thread draws.

## What it finds

Functions of tqdm, rich and Lightning's bars on the step's thread; not what they iterate over.

## How it shows in the trace

In no slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the
outermost function of this kind. What a DataLoader does is its own habit.

## Example

```python
import sys

for step in range(3):
    train(x, labels)
    print(f"\r{step}", end="", file=sys.stderr, flush=True)  # as a bar does, every step
```

## Use instead

```python
import sys

for step in range(3):
    train(x, labels)
    if step % 50 == 0:
        print(f"\r{step}", end="", file=sys.stderr, flush=True)
```

## What it would save

Its time as samples show it is the most that can be saved; at least half of it is, where the host bounds the step.

## References

- https://tqdm.github.io/docs/tqdm/ (`mininterval`, `miniters`)
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="progress-bar",
    area=Area.HOST,
    title="The step's thread draws a progress bar",
    why="Each update formats and writes to the terminal, and launches nothing meanwhile.",
    fix=(
        "Draw it seldom: tqdm(mininterval=1, miniters=50), Lightning's TQDMProgressBar(refresh_rate=50); or not at "
        "all: Trainer(enable_progress_bar=False), transformers' disable_tqdm=True."
    ),
    when_fine="When the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of tqdm, rich and Lightning's bars, by samples; not what they iterate over."""
    return sampled_habit(context, ADVICE, Kind.PROGRESS)
