"""Match a read-back inside a logger, or in the way that `Tensor.__format__` reads."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal

_LOGGERS = (
    *("tqdm", "wandb", "tensorboard", "tensorboardX", "torch/utils/tensorboard", "logging", "mlflow", "clearml"),
    *("trackio", "lightning/pytorch/loggers", "lightning/pytorch/callbacks/progress", "lightning/fabric/loggers"),
    *("pytorch_lightning/loggers", "pytorch_lightning/callbacks/progress", "lightning_fabric/loggers"),
)


def match(call: Call) -> Match | None:
    formats = not call.has_frames and call.top == "aten::item" and call.before[-1:] == ("aten::detach",)
    if not (
        formats
        or (reads_back(call) and (call.in_library(*_LOGGERS) or call.in_library_function("__format__", "__repr__")))
    ):
        return None
    return Match(
        values={"likely": ", most likely" if formats else ""},
        confidence=Confidence.MEDIUM if formats else Confidence.HIGH,
        for_caller=True,
        removal=Removal.NOTHING,
    )
