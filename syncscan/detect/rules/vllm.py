"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

_PLACES = (
    # gpu/async_utils.py, AsyncOutput.get_output: copy_event.synchronize(), beside the step that runs
    LibraryPlace(
        file="vllm/v1/worker/gpu/async_utils.py",
        functions=("get_output",),
        title="vLLM waits for the sampled tokens of the previous step",
        fix="This is intended: scheduling is asynchronous already, and the device works on the next step meanwhile. "
        "Larger batches make it rarer for each token.",
    ),
    # gpu_model_runner.py, synchronize_input_prep: prepare_inputs_event.synchronize(), before buffers are used again
    LibraryPlace(
        file="vllm/v1/worker/gpu_model_runner.py",
        functions=("synchronize_input_prep",),
        title="vLLM waits until the previous step has copied its inputs",
        fix="This is intended: under asynchronous scheduling the pinned input buffers are reused, and must not be "
        "written before their copy has run.",
        cause=Cause.EXPLICIT,
    ),
    # gpu_model_runner.py, _to_list: copy into pinned memory, transfer_event.record(), transfer_event.synchronize()
    LibraryPlace(
        file="vllm/v1/worker",
        functions=("_to_list", "_bookkeeping_sync"),
        title="vLLM waits for the sampled tokens before it plans the next step",
        fix="--async-scheduling plans the next step while this one runs. Later versions turn it on by default, "
        "except with pipeline parallelism, some speculative decoding, or an executor other than mp, uni and "
        "external_launcher: the log says which.",
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
