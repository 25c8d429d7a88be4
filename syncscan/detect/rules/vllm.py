"""vLLM waits for the tokens that it sampled.

## What it finds

The read of sampled tokens at the end of each step of the engine.

## How it shows in the trace

Frames of `vllm/v1/worker/` around a copy to the host or an event's synchronize.

## Example

```python
tokens = x.argmax(-1)
result = tokens.tolist()
```

## Use instead

Not run: this needs vLLM.

```python
tokens = x.argmax(-1)
result = tokens.tolist()  # read while the next step runs: --async-scheduling
```

## Versions

Checked in the source of vLLM's V1 engine, not measured. `SchedulerConfig.async_scheduling` was False by default and is
None in later versions, which `VllmConfig` changes to True unless something forbids it.

## References

- https://docs.vllm.ai/en/latest/configuration/engine_args.html
- vllm/v1/worker/gpu_model_runner.py (_to_list), vllm/v1/worker/gpu/async_utils.py (get_output)
- vllm/config/scheduler.py, vllm/config/vllm.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "vllm"
NAME = "vLLM waits for sampled tokens"
CAUSE = Cause.CTRL
WHY = """\
The scheduler needs the tokens on the host to end requests and to send text, before it can plan the next step.
"""
WHEN_FINE = """\
Always, if the host has already planned the next step: then the host waits for the device, not the device for the host.
"""

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
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
