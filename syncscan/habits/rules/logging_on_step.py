"""Logging on the step's own thread.

## What it finds

Functions of `logging` and of experiment loggers on the step's thread.

## How it shows in the trace

Not as a slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the outermost function of this kind. Work of a DataLoader is a habit of its own.

## Example

```python
import logging

for step in range(3):
    train(x, labels)
    logging.getLogger("train").warning("step %d", step)
```

## Use instead

```python
import logging, logging.handlers, queue

records = queue.SimpleQueue()
logging.getLogger("train").addHandler(logging.handlers.QueueHandler(records))
logging.getLogger("train").propagate = False
for step in range(3):
    train(x, labels)
    if step % 10 == 0:
        logging.getLogger("train").warning("step %d", step)
```

## What it would save

At most its sampled time; in a host-bound step, at least half of that.

## References

- https://docs.python.org/3/howto/logging-cookbook.html#dealing-with-handlers-that-block
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="logging-on-step",
    area=Area.HOST,
    title="The step's thread logs",
    why="It launches nothing while it formats and writes.",
    fix=(
        "Log every ten steps or so, all values at once; pass records to another thread "
        "(logging.handlers.QueueHandler); keep debug messages behind logger.isEnabledFor."
    ),
    when_fine="When the device is busy meanwhile.",
)


def find(context: Context) -> Iterable[Habit]:
    """Return the habit for functions of `logging` and of experiment loggers, by samples."""
    return sampled_habit(context, ADVICE, WorkKind.LOGGING)
