"""Capture some batches of a Lightning Trainer's run: `CaptureCallback`."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the same callbacks under the older package's name
    from pytorch_lightning.callbacks import Callback

from syncscan.integrations.run_steps import StepCallback


class CaptureCallback(StepCallback, Callback):  # type: ignore[misc]
    """Capture training batches `first` to `last` of a fit: `Trainer(…, callbacks=[CaptureCallback(100, 102)])`.

    A step is a training batch, forward to optimizer, with the fetch of the next one. Lightning's own PyTorchProfiler
    counts at other places, and torch's profiler runs once at a time: use one of the two. Each rank writes its own
    trace.

    Args:
        first: the first batch that is recorded; 1 is the fit's first.
        last: the last one.
        out: folder for the traces.
        options: further ones of `syncscan.profile`: `name`, `stacks`, `shapes`, `sample`, `notify`.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.steps.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.steps.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what a fit that ended early has recorded."""
        self.steps.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.steps.end()
