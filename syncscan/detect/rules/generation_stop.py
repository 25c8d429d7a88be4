"""Text generation asks after every token whether it is finished.

## What it finds

Hugging Face `generate`: the stopping test, attention masks tested with `.all()`, streamers, some logits processors.

## Why it stalls

The host waits for the token before it launches the work of the next one.

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

## When it is fine

Latency of one user's stream needs the token at once. Else test one step late (newer transformers do), use a static
cache with compiled decoding, and pass no mask when nothing is padded.

## Versions

transformers ≥ 5 defers the stop test.

## References

- https://huggingface.co/docs/transformers/main/en/llm_optims
- transformers/generation/utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "generation-stop"
NAME = "Generation asks after every token"
CAUSE = Cause.CTRL


def match(call: Call) -> Diagnosis | None:
    """A wait inside the generation code of transformers."""
    if not call.in_library("transformers/generation/", "transformers/masking_utils.py"):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="generation waits for each token to know whether it is finished",
        why="The stopping test, a mask test or a streamer needs the token on the host before the next can be launched.",
        fix="Test one step late on an asynchronous copy, stream in batches of tokens, pass full masks or none.",
        when_fine="When every token must be shown at once.",
    )
