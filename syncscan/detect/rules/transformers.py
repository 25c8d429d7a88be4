"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Use

_NO_MASK = (
    "If nothing is padded, pass no attention_mask; a decoder then checks instead whether sequences are packed, unless "
    "it is called with use_cache=True (TrainingArguments(use_cache=True)). Or pass a mask of four dimensions, (batch, "
    "1, length, length), made once: it is used as is."
)

_PLACES = (
    # 5.17, trainer.py, _run_epoch (4.x: _inner_training_loop):
    # `if self.args.logging_nan_inf_filter and … (torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step))`
    LibraryPlace(
        file="transformers/trainer.py",
        functions=("train", "_inner_training_loop", "_run_epoch"),
        after=("aten::isnan", "aten::isinf"),
        title="the Trainer checks at every step whether the loss is NaN or infinite",
        fix="TrainingArguments(logging_nan_inf_filter=False): a NaN then appears in the log instead of being filtered "
        "out; nothing else changes.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
    # 5.17, trainer.py, _maybe_log_save_evaluate: `nested_gather(tr_loss, …).mean().item()`, `grad_norm.item()`
    LibraryPlace(
        file="transformers/trainer.py",
        functions=("_maybe_log_save_evaluate",),
        title="the Trainer reads the loss and the gradients' norm to log them",
        fix="TrainingArguments(logging_steps=50): it reads only in steps that it logs, not with logging_steps=1.",
        cause=Cause.LOG,
    ),
    # 5.17, trainer.py, _track_num_input_tokens: `self.accelerator.gather(input_tokens).sum().item()`, and as_tensor
    LibraryPlace(
        file="transformers/trainer.py",
        functions=("_track_num_input_tokens",),
        title="the Trainer counts the tokens of every batch on the device and reads the number",
        fix="TrainingArguments(include_num_input_tokens_seen='no'), the default; count the tokens in the collator "
        "where the number is needed.",
        cause=Cause.LOG,
    ),
    # 5.17, masking_utils.py, find_packed_sequence_indices: `(packed_sequence_mask[:, -1] == 0).all()`; it is called by
    # _preprocess_mask_arguments where there are position ids, no mask and no cache
    LibraryPlace(
        file="transformers/masking_utils.py",
        functions=("find_packed_sequence_indices",),
        direction="DtoH",
        title="the model checks whether its sequences are packed",
        fix="Call the model with use_cache=True (TrainingArguments(use_cache=True)), which holds keys and values and "
        "isn't possible with gradient checkpointing; or pass a mask of four dimensions, (batch, 1, length, length), "
        "made once: it is used as is.",
        cause=Cause.CTRL,
    ),
    # 5.17, masking_utils.py, create_causal_mask: `allow_is_causal_skip and not (is_compileable and q_length == 1)`:
    # with a static cache nothing is asked while decoding
    LibraryPlace(
        file="transformers/masking_utils.py",
        within="transformers/generation",
        direction="DtoH",
        title="generation checks at each token whether anything is padded",
        fix="generate(cache_implementation='static') doesn't check while it decodes; it compiles the forward pass too, "
        "unless disable_compile=True.",
        cause=Cause.CTRL,
    ),
    # 5.17, masking_utils.py, _ignore_causal_mask_sdpa: `padding_mask is None or fast_all(padding_mask)`,
    # _ignore_bidirectional_mask_sdpa: `padding_mask.all()`, flash_attention_mask: `attention_mask.all()`
    LibraryPlace(
        file="transformers/masking_utils.py",
        direction="DtoH",
        title="the model checks whether anything is padded, to choose its attention",
        fix=_NO_MASK,
        cause=Cause.CTRL,
    ),
    # modeling_attn_mask_utils.py, before masking_utils: AttentionMaskConverter._ignore_causal_mask_sdpa, `torch.all`
    LibraryPlace(
        file="transformers/modeling_attn_mask_utils.py",
        direction="DtoH",
        title="the model checks whether anything is padded, to choose its attention",
        fix="Pass no attention_mask if nothing is padded (packed or equally long sequences): only a given mask is "
        "checked. Otherwise one check per forward pass remains.",
        cause=Cause.CTRL,
    ),
    # 5.17, modeling_utils.py, warn_if_padding_and_no_attention_mask: `pad_token_id in input_ids[:, [-1, 0]]`; some
    # encoders call it (MegatronBert, RoFormer, Deberta), bert and roberta don't any more
    LibraryPlace(
        file="transformers/modeling_utils.py",
        functions=("warn_if_padding_and_no_attention_mask",),
        title="the model looks for padding, because it got no attention_mask",
        fix="Set model.config.pad_token_id = None if nothing is padded: then it doesn't check.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
    # 5.17, modeling_flash_attention_utils.py, _get_unpad_data, _unpad_input: `torch.nonzero(…)`, `….max().item()`
    LibraryPlace(
        file="transformers/modeling_flash_attention_utils.py",
        functions=("_get_unpad_data", "_unpad_input", "_upad_input"),
        title="flash attention counts the tokens that aren't padding",
        fix="Pass no attention_mask if nothing is padded; else flatten the batch in the collator, "
        "DataCollatorWithFlattening(return_flash_attn_kwargs=True), which provides the lengths from the host.",
        cause=Cause.SHAPE,
    ),
    # 5.17, modeling_flash_attention_utils.py, _is_packed_sequence: `… .abs().sum().bool()`, for a batch of one
    LibraryPlace(
        file="transformers/modeling_flash_attention_utils.py",
        direction="DtoH",
        title="flash attention checks whether its sequences are packed",
        fix="Provide the lengths from the host: DataCollatorWithFlattening(return_flash_attn_kwargs=True), or "
        "cu_seq_lens_q, cu_seq_lens_k, max_length_q and max_length_k to the model.",
        cause=Cause.CTRL,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
