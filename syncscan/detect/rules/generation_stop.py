"""Text generation asks after every token whether it is finished.

## What it finds

Hugging Face `generate`: the stopping test, attention masks tested with `.all()`, streamers, some logits processors.

## How it shows in the trace

`aten::is_nonzero > aten::item` or a copy to the host with frames of `transformers/generation/` or `masking_utils.py`.

## Example

```python
unfinished = labels > 0
if unfinished.max() == 0:
    raise StopIteration
result = unfinished.sum()
```

## Use instead

Not recorded: it takes a language model.

```python
unfinished = labels > 0
result = unfinished.sum()  # test the copy of an earlier step, when its event is done
```

## Versions

transformers ≥ 5 defers the stop test.

## References

- https://huggingface.co/docs/transformers/main/en/llm_optims
- transformers/generation/utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "generation-stop"
NAME = "Generation asks after every token"
CAUSE = Cause.CTRL
WHY = """\
The stopping test, a mask test or a streamer needs the token on the host before the work of the next can be launched.
"""
WHEN_FINE = """\
When every token must be shown at once, for the latency of one user's stream.

Else test one step late (newer transformers do), use a static cache with compiled decoding, and pass no mask when
nothing is padded.
"""


def match(call: Call) -> Match | None:
    """A wait inside the generation code of transformers."""
    if not call.in_library("transformers/generation", "transformers/masking_utils.py"):
        return None
    return Match(
        title="generation waits for each token to know whether it is finished",
        fix="Test one step late on an asynchronous copy, stream in batches of tokens, pass full masks or none.",
        for_caller=True,
        removal=Removal.NOTHING,
    )
