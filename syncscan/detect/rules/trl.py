"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match

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
    return match_at(call, _PLACES)
