"""Logging that the step's thread does itself.

## What it finds

Functions of `logging` and of loggers of experiments on the step's thread.

## How it shows in the trace

In no slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the
outermost function of this kind. What a DataLoader does is its own habit.

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

Its time as samples show it is the most that can be saved; at least half of it is, where the host bounds the step.

## References

- https://docs.python.org/3/howto/logging-cookbook.html#dealing-with-handlers-that-block
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import Kind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="logging-on-step",
    area=Area.HOST,
    title="The step's thread logs",
    why="While it formats and writes, it launches nothing.",
    fix=(
        "Log every some ten steps, all values at once; hand records to another thread "
        "(logging.handlers.QueueHandler); keep debug messages behind logger.isEnabledFor."
    ),
    when_fine="When the device has work for as long.",
)


def find(context: Context) -> Iterable[Habit]:
    """Functions of `logging` and of loggers of experiments, by samples."""
    return sampled_habit(context, ADVICE, Kind.LOGGING)
