"""Text generation checks after every token whether it is finished.

## What it finds

Hugging Face `generate`: the stopping check, streamers, some logits processors; and, once per call before the first
token, special tokens copied to the device, and warnings that read them.

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

Not recorded: this needs a language model.

```python
unfinished = labels > 0
result = unfinished.sum()  # test every some tokens, or the copy of an earlier step when its event is done
```

## Versions

Checked in the source of transformers 5.17: only on MPS is the stopping check deferred by a step
(`DeferredStopCheck.is_supported`).

## References

- https://huggingface.co/docs/transformers/main/en/llm_optims
- transformers/generation/utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "generation-stop"
NAME = "Generation checks after every token"
CAUSE = Cause.CTRL
WHY = """\
The stopping check, a mask check or a streamer needs the token on the host before the work for the next token can be
launched.
"""
WHEN_FINE = """\
When every token must be shown immediately, for the latency of one user's stream.

Otherwise decode with your own loop that checks one step late, with a compiled static cache.
"""


_LOOPS = ("_sample", "_beam_search", "_greedy", "_assisted", "_group_beam", "_constrained", "_contrastive", "_dola")
"""Names, or begins of names, of the loops over tokens in transformers/generation/utils.py.

In 5.17 `_sample` asks `StopCheck.__call__`: `bool(unfinished_sequences.max() == 0)`.
"""


def match(call: Call) -> Match | None:
    """Match a wait that transformers' generation code makes itself, not the model or a mask that it calls."""
    if not call.decided_in("transformers/generation"):
        return None
    return _each_token(call) if call.in_library_function(*_LOOPS) else _each_call(call)


def _each_token(call: Call) -> Match:
    if call.facts.direction == "HtoD":
        return _each_call(call)
    return Match(
        title="generation waits for each token to know whether it is finished",
        fix="No option avoids the check on CUDA, not even a fixed number of tokens: generate larger batches, or pass "
        "custom_generate=f, a function that decodes in its own loop and checks every N tokens. A streamer "
        "reads each token to show it.",
        for_caller=True,
        removal=Removal.NOTHING,
    )


def _each_call(call: Call) -> Match:
    """Match special tokens that become device tensors, and the warnings about them."""
    copies = call.facts.direction == "HtoD"
    return Match(
        title=f"generate {'copies special tokens to the device' if copies else 'checks its input'}, once per call",
        fix="Once per call of generate(), whatever the number of tokens: use more sequences or more tokens per call.",
        cause=Cause.PAGEABLE if copies else Cause.CHECK,
        use=Use.NOTHING if copies else Use.SHOWN,
        for_caller=True,
        removal=Removal.PINNED_COPY if copies else Removal.NOTHING,
    )
