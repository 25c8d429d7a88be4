"""Match a copy to the host inside torch's saving code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use

_SAVES = tuple(
    f"{head}{name}"
    for head in ("", "_")
    for name in "save_checkpoint save_model save_pretrained save_state save_state_dict save_weights save_ckpt "
    "save_adapter save_optimizer save_optimizer_and_scheduler save_file save_16bit_model".split()
)
"""Names of library functions that save a model; `save_image` and `save_figure` save drawings."""
_SAVE = ("save", "_save")
_FILES = ("checkpoint", "saver", "saving", "serializ", "safetensors", "trainer", "modeling")
"""A function that is merely called `save` saves a model if its file is for that; a result's `save` saves a picture."""


def match(call: Call) -> Match | None:
    if call.facts.direction != "DtoH":
        return None
    in_torch = call.in_library("torch/serialization.py", "torch/distributed/checkpoint")
    saves = in_torch or call.in_library_function_of(*_SAVES) or call.in_library_function_of(*_SAVE, files=_FILES)
    if not saves:
        return None
    return Match(
        for_caller=True,
        use=Use.SHOWN,
        removal=Removal.ASYNC_COPY,
    )
