"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

_PROCESSED = (
    "process_batch_result_decode",
    "process_batch_result_prefill",
    "process_batch_result_dllm",
    "process_batch_result_disagg_prefill",
)
_OVERLAP = (
    "The overlap scheduler plans the next batch while this one runs. It is on by default: leave "
    "out --disable-overlap-schedule, and check the log for what turned it off."
)
_LENGTHS = (
    "It is the same number in every block: have the encoder read it once per batch, or compute it from the image "
    "sizes on the host, and pass max_seqlen on; later versions do so for some models (sgl-project/sglang#30878)."
)
_SAMPLING = (
    "Send requests that need it in separate batches, or leave out min_p and the check: later versions decide from host "
    "data, and check for NaN only with --enable-nan-detection."
)

_PLACES = (
    # scheduler_output_processor_mixin.py: next_token_ids.tolist() of a tensor on the device, where nothing overlaps
    LibraryPlace(
        file="sglang/srt/managers",
        functions=_PROCESSED,
        direction="DtoH",
        title="SGLang waits for the sampled tokens before it plans the next batch",
        fix=_OVERLAP,
    ),
    # the same file: result.copy_done.synchronize(), beside the batch that runs
    LibraryPlace(
        file="sglang/srt/managers",
        functions=_PROCESSED,
        title="SGLang waits for the sampled tokens of the previous batch",
        fix="This is intended: the scheduler overlaps already, and the device works on the next batch meanwhile. "
        "Larger batches make it rarer for each token.",
    ),
    # layers/attention/vision.py, generate_patch_attention_mask: tuple(cu_seqlens.cpu().tolist())
    LibraryPlace(
        file="sglang/srt/layers/attention/vision.py",
        functions=("generate_patch_attention_mask",),
        title="SGLang's vision attention reads the segments' bounds in every block",
        fix="--mm-attention-backend fa3 or triton_attn takes the bounds on the device; only sdpa makes a mask of them.",
        cause=Cause.SHAPE,
    ),
    # layers/attention/vision.py: (cu_seqlens[1:] - cu_seqlens[:-1]).max().item(), in each backend's forward at first
    LibraryPlace(
        file="sglang/srt/layers/attention/vision.py",
        title="SGLang's vision attention reads the longest segment",
        fix=_LENGTHS,
        cause=Cause.SHAPE,
    ),
    # speculative/eagle_info.py, verify: accept_index.tolist(), predict.tolist(), out_cache_loc[evict_mask]
    LibraryPlace(
        file="sglang/srt/speculative",
        functions=("verify",),
        title="EAGLE's verification waits for the accepted tokens",
        fix="The second version of speculative decoding leaves it on the device and overlaps (SGLANG_ENABLE_SPEC_V2=1 "
        "where it isn't the default); more draft tokens per step make it rarer.",
    ),
    # layers/sampler.py, forward_cuda (0.4): if sampling_info.min_ps.any(), if not torch.all(success)
    LibraryPlace(
        file="sglang/srt/layers/sampler.py",
        title="SGLang's sampler branches on a value on the device",
        fix=_SAMPLING,
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
