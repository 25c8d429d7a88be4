"""TRL's trainers read their metrics back at every step.

## What it finds

`SFTTrainer`, `DPOTrainer`, `GRPOTrainer` and the others, which gather entropy, accuracy, rewards and lengths in
`compute_loss`.

## How it shows in the trace

Frames of `trl/trainer/` or `trl/experimental/` around `aten::item`, a few for each step, regardless of `logging_steps`.

## Example

```python
from trl import SFTConfig
result = SFTConfig("out")
```

## Use instead

Not run: this needs TRL.

```python
from trl import SFTConfig
result = SFTConfig("out")  # and a subclass of SFTTrainer whose compute_loss is transformers' own
```

## Versions

Checked in the source of TRL 1.16. Before 1.0, `use_liger_kernel=True` left out SFT's entropy.

## References

- https://huggingface.co/docs/trl
- trl/trainer/sft_trainer.py (compute_loss), dpo_trainer.py (_compute_loss), grpo_trainer.py (_compute_loss, _generate,
  _generate_and_score_completions)
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
When the step is device-bound and the reads come last in it.

`logging_steps` doesn't change how often they are read.
"""

_PLACES = (
    # 1.16, sft_trainer.py, compute_loss: `(entropy_sum / num_valid).item() if num_valid > 0`, mean_token_accuracy,
    # `gather_for_metrics(inputs["attention_mask"].sum()).sum().item()`: five reads each forward pass
    LibraryPlace(
        file="trl/trainer/sft_trainer.py",
        functions=("compute_loss",),
        title="SFTTrainer reads its metrics back at every step",
        fix="No option avoids this, not even logging_steps. In a subclass: def compute_loss(self, model, inputs, "
        "return_outputs=False, num_items_in_batch=None): return transformers.Trainer.compute_loss(self, model, inputs, "
        "return_outputs, num_items_in_batch), which logs loss and norm, not entropy and accuracy.",
    ),
    # 1.16, reward and distillation_trainer.py: compute_loss; dpo, grpo, kto and rloo_trainer.py: _compute_loss; grpo
    # and rloo: _generate, _generate_and_score_completions, _calculate_rewards. 0.2x: get_batch_loss_metrics
    LibraryPlace(
        file="trl",
        functions=(
            "compute_loss",
            "get_batch_loss_metrics",
            "_compute_loss",
            "_generate",
            "_generate_and_score_completions",
            "_calculate_rewards",
            "global_masked_mean",
            "nanmin",
            "nanmax",
        ),
        title="TRL reads its metrics back at every step",
        fix="No option avoids this, not even logging_steps: override the method in a subclass, keep the metrics as "
        "tensors and read them in log(). Leave it if the step gains nothing from a fix.",
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
