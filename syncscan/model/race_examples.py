"""Show each race that a copy without a wait can bring in, and its right form, as code."""

from __future__ import annotations

from syncscan.model.race import TEXTS, RaceKind

HEADING = "What the sync protected"

EXAMPLES = {
    RaceKind.READ_BEFORE_COPY: (
        "host = values.to('cpu', non_blocking=True)\nprint(host.sum())  # the values may not have arrived",
        "host = values.to('cpu', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # after the copy, on its stream\n"
        "...  # the host continues until it needs the values\n"
        "copied.synchronize()  # before the first read, also through views and arrays\n"
        "print(host.sum())",
    ),
    RaceKind.WRITE_BEFORE_COPY: (
        "batch = pinned.to('cuda', non_blocking=True)\npinned.copy_(following)  # may reach the device instead",
        "batch = pinned.to('cuda', non_blocking=True)\n"
        "copied = torch.cuda.Event()\n"
        "copied.record()  # after the copy, on its stream\n"
        "...  # the host continues until it refills the memory\n"
        "copied.synchronize()  # before the write; not needed for new memory each time, as from a pinning loader\n"
        "pinned.copy_(following)",
    ),
}
"""Kind → a program that races, and its right form."""


def section(kind: RaceKind) -> str:
    """Return the section of a rule's documentation on the race that its fix brings in where the wait is forgotten."""
    wrong, right = EXAMPLES[kind]
    text = TEXTS[kind]
    return (
        f"{text.why} This is a race (`{kind.value}`), which goes wrong only with some timings:\n\n"
        f"```python\n{wrong}\n```\n\n"
        f"The correct form waits only for the copy:\n\n```python\n{right}\n```\n\n"
        "`syncscan dryrun --fail-on race` finds it without a GPU."
    )
