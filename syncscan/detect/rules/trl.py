"""TRL's trainers read their metrics back at every step.

## What it finds

`SFTTrainer`, `DPOTrainer`, `GRPOTrainer` and the others, which gather entropy, accuracy, rewards and lengths in
`compute_loss`.

## How it shows in the trace

Frames of `trl/trainer/` around `aten::item`, a few for each step, whatever `logging_steps` says.

## Example

```python
from trl import SFTConfig
result = SFTConfig("out")
```

## Use instead

Not run: it takes TRL.

```python
from trl import SFTConfig
result = SFTConfig("out", use_liger_kernel=True)
```

## Versions

Read in TRL 0.2x.

## References

- https://huggingface.co/docs/trl
- trl/trainer/sft_trainer.py (compute_loss)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "trl"
NAME = "TRL reads its metrics back"
CAUSE = Cause.LOG
WHY = """\
Each metric is gathered and read in the step that computes it, and kept as a Python number until it is logged.
"""
WHEN_FINE = """\
Where the step is bound by its device and the reads come last in it.

`logging_steps` doesn't change how often they are read.
"""

_PLACES = (
    # sft_trainer.py, compute_loss: `….gather_for_metrics(entropy).mean().item()`, not with Liger's kernel
    LibraryPlace(
        file="trl/trainer/sft_trainer.py",
        functions=("compute_loss",),
        title="SFTTrainer reads its metrics back at every step",
        fix="SFTConfig(use_liger_kernel=True) leaves the entropy out, which is one of them; for the others no "
        "argument: override compute_loss in a subclass and call Trainer.compute_loss, or keep the metrics as "
        "tensors there and read them in log().",
    ),
    LibraryPlace(
        file="trl/trainer",
        functions=("compute_loss", "get_batch_loss_metrics", "_compute_loss", "_generate_and_score_completions"),
        title="TRL reads its metrics back at every step",
        fix="No argument spares it, logging_steps neither: override the method in a subclass, keep the metrics as "
        "tensors and read them in log(). Leave it where the step doesn't gain by it.",
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
