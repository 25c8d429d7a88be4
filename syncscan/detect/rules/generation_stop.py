"""Text generation asks after every token whether it is finished.

## What it finds

Hugging Face `generate`: the stopping test, streamers, some logits processors; and what it does once a call, before the
first token: special tokens copied to the device, and warnings that look at them.

## How it shows in the trace

`aten::is_nonzero > aten::item` or a copy with frames of `transformers/generation/`, the innermost of a library.

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
from syncscan.model.finding import Cause, Removal, Use
from syncscan.model.libraries import in_package

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


_LOOPS = ("_sample", "_beam_search", "_greedy", "_assisted", "_group_beam", "_constrained", "_contrastive", "_dola")
"""What the loops over tokens are called, or begin with, in transformers/generation/utils.py."""


def match(call: Call) -> Match | None:
    """A wait that transformers' generation code makes itself, not the model or a mask that it calls."""
    if call.decider is None or not in_package(call.decider.file, "transformers/generation"):
        return None
    return _each_token(call) if call.in_library_function(*_LOOPS) else _each_call(call)


def _each_token(call: Call) -> Match:
    if call.facts.direction == "HtoD":
        return _each_call(call)
    return Match(
        title="generation waits for each token to know whether it is finished",
        fix="Newer transformers test one step late; else a StoppingCriteria that answers every some tokens, or a fixed "
        "number of tokens (min_new_tokens equal to max_new_tokens doesn't spare the test). A streamer reads each "
        "token to show it.",
        for_caller=True,
        removal=Removal.NOTHING,
    )


def _each_call(call: Call) -> Match:
    """Special tokens become device tensors, and warnings ask about them: `_prepare_special_tokens`, `generate`."""
    copies = call.facts.direction == "HtoD"
    return Match(
        title=f"generate {'copies special tokens to the device' if copies else 'checks its input'}, once a call",
        fix="Once a call of generate(): more sequences, or more tokens, a call make it rarer; it doesn't grow with the "
        "tokens.",
        cause=Cause.PAGEABLE if copies else Cause.CHECK,
        use=Use.NOTHING if copies else Use.SHOWN,
        for_caller=True,
        removal=Removal.PINNED_COPY if copies else Removal.NOTHING,
    )
