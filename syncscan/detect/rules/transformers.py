"""transformers' `Trainer` and its models read values back.

## What it finds

`Trainer.train()` with `logging_nan_inf_filter` on (the default), with `logging_steps=1` or with token counts, and the
test for padding that every forward pass of a model makes of its attention mask.

## How it shows in the trace

Frames of `transformers/trainer.py` or `transformers/masking_utils.py` around `aten::item` or `aten::is_nonzero`; the
filter after `aten::isnan` and `aten::isinf`, the mask after `aten::all`.

## Example

```python
from transformers import TrainingArguments
result = TrainingArguments("out", logging_steps=1)
```

## Use instead

Not run: it takes transformers.

```python
from transformers import TrainingArguments
result = TrainingArguments("out", logging_steps=50, logging_nan_inf_filter=False)
```

## Versions

Read in transformers 4.53 and 5, seen in traces of 5.

## References

- https://huggingface.co/docs/transformers/main_classes/trainer
- transformers/trainer.py (_inner_training_loop, _run_epoch, _maybe_log_save_evaluate), transformers/masking_utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Use

ID = "transformers"
NAME = "transformers reads values back"
CAUSE = Cause.READBACK
WHY = """\
The trainer looks at the loss on the host, to leave out a NaN or to log it, and a model looks at its attention mask, to
choose the faster attention when nothing is padded.
"""
WHEN_FINE = """\
Logged every some ten steps, the loss costs nothing that matters.

Without the filter a NaN or infinite loss shows in the log. A mask of ones and no mask give the same result.
"""

_PLACES = (
    # trainer.py: `if args.logging_nan_inf_filter and (torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step))`
    LibraryPlace(
        file="transformers/trainer.py",
        functions=("train", "_inner_training_loop", "_run_epoch"),
        after=("aten::isnan", "aten::isinf"),
        title="the Trainer asks at every step whether the loss is NaN or infinite",
        fix="TrainingArguments(logging_nan_inf_filter=False): a NaN then stands in the log instead of being left out "
        "of it; nothing else changes.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
    # trainer.py: `tr_loss_scalar = self._nested_gather(tr_loss).mean().item()`, and the norm of the gradients
    LibraryPlace(
        file="transformers/trainer.py",
        functions=("_maybe_log_save_evaluate",),
        title="the Trainer reads the loss and the gradients' norm to log them",
        fix="TrainingArguments(logging_steps=50): it reads only in steps that it logs, not with logging_steps=1.",
        cause=Cause.LOG,
    ),
    # masking_utils.py, _ignore_causal_mask_sdpa and its kin: `padding_mask is None or padding_mask.all()`
    LibraryPlace(
        file="transformers/masking_utils.py",
        title="the model asks whether anything is padded, to choose its attention",
        fix="Pass no attention_mask where nothing is padded (packed or equally long sequences): the test is made only "
        "of a mask that is given. Else one test each forward pass remains.",
        cause=Cause.CTRL,
    ),
    # modeling_attn_mask_utils.py, before masking_utils: AttentionMaskConverter._ignore_causal_mask_sdpa, `torch.all`
    LibraryPlace(
        file="transformers/modeling_attn_mask_utils.py",
        title="the model asks whether anything is padded, to choose its attention",
        fix="Pass no attention_mask where nothing is padded (packed or equally long sequences): the test is made only "
        "of a mask that is given. Else one test each forward pass remains.",
        cause=Cause.CTRL,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
