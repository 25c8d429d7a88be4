"""Capture some steps of a Hugging Face Trainer's run: `CaptureCallback`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from syncscan.integrations.run_steps import StepCallback


class CaptureCallback(StepCallback, TrainerCallback):  # type: ignore[misc]
    """Capture optimizer steps `first` to `last` of a run: `Trainer(…, callbacks=[CaptureCallback(100, 102)])`.

    A step is what `state.global_step` counts; a resumed run goes on counting. Each rank writes its own trace.

    Args:
        first: the first step that is recorded; 1 is a run's first.
        last: the last one.
        out: folder for the traces.
        options: further ones of `syncscan.profile`: `name`, `stacks`, `shapes`, `sample`, `notify`.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.steps.begin(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Count a step: the optimizer's step and `zero_grad` are behind it, logging and saving are the next one's."""
        self.steps.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Write what a run that ended early has recorded."""
        self.steps.end()
