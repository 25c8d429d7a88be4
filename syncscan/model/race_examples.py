"""Show each race that a copy without a wait can bring in, and its right form, as code."""

from __future__ import annotations

from syncscan.model.race import TEXTS, RaceKind

HEADING = "What the sync protected"

EXAMPLES = {
    RaceKind.READ_BEFORE_COPY: (
        "host = values.to('cpu', non_blocking=True)\nprint(host.sum())  # numbers that aren't there yet",
        "host = values.to('cpu', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # behind the copy, on its stream\n"
        "...  # the host goes on, up to where it needs the numbers\n"
        "copied.synchronize()  # before each first read, of views and arrays too\n"
        "print(host.sum())",
    ),
    RaceKind.WRITE_BEFORE_COPY: (
        "batch = pinned.to('cuda', non_blocking=True)\npinned.copy_(following)  # reaches the device instead",
        "batch = pinned.to('cuda', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # behind the copy, on its stream\n"
        "...  # the host goes on, up to where it fills the memory again\n"
        "copied.synchronize()  # before the write; new memory each time, as of a loader that pins, needs none\n"
        "pinned.copy_(following)",
    ),
}
"""Kind → a program that races, and its right form."""


def section(kind: RaceKind) -> str:
    """Return the section of a rule's documentation on the race that its fix brings in where the wait is forgotten."""
    wrong, right = EXAMPLES[kind]
    text = TEXTS[kind]
    return (
        f"{text.why} That is a race (`{kind.value}`), and goes wrong by timing only:\n\n```python\n{wrong}\n```\n\n"
        f"The right form waits for the copy alone:\n\n```python\n{right}\n```\n\n"
        "`syncscan dryrun --fail-on race` finds it without a GPU."
    )
