r"""A progress bar that the step's thread draws.

## What it finds

Functions of tqdm, rich and Lightning's bars on the step's thread; not the iterated object.

## How it shows in the trace

Not as a slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the outermost function of this kind. Work of a DataLoader is a habit of its own.

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

At most its sampled time; in a host-bound step, at least half of that.

## References

- https://tqdm.github.io/docs/tqdm/ (`mininterval`, `miniters`)
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="progress-bar",
    area=Area.HOST,
    title="The step's thread draws a progress bar",
    why="Each update formats and writes to the terminal and launches nothing meanwhile.",
    fix=(
        "Update it rarely: tqdm(mininterval=1, miniters=50), Lightning's TQDMProgressBar(refresh_rate=50); or not at "
        "all: Trainer(enable_progress_bar=False), transformers' disable_tqdm=True."
    ),
    when_fine="When the device is busy meanwhile.",
)


def find(context: Context) -> Iterable[Habit]:
    """Return the habit for functions of tqdm, rich and Lightning's bars, without what they iterate over, by samples."""
    return sampled_habit(context, ADVICE, WorkKind.PROGRESS)
