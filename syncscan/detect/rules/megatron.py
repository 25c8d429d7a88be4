"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

_PLACES = (
    # core 0.19, clip_grads.py, get_grad_norm_fp32: `if multi_tensor_scale_tensor_impl is not None: … else: ….item()`
    LibraryPlace(
        file="megatron/core/optimizer/clip_grads.py",
        functions=("get_grad_norm_fp32",),
        title="clipping reads the gradients' norm",
        fix="Install a Transformer Engine that has multi_tensor_scale_tensor: the norm (of order 2) then stays on the "
        "device. --clip-grad 0 turns off clipping and the norm.",
    ),
    # core 0.19, clip_grads.py, count_zeros_fp32: `total_num_zeros.item()`
    LibraryPlace(
        file="megatron/core/optimizer/clip_grads.py",
        functions=("count_zeros_fp32",),
        title="the zeros in the gradients are counted, for the log",
        fix="Leave out --log-num-zeros-in-grad.",
        cause=Cause.LOG,
    ),
    # core 0.19, optimizer.py, _unscale_main_grads_and_check_for_nan: `self.found_inf.item() > 0`
    LibraryPlace(
        file="megatron/core/optimizer",
        functions=("_unscale_main_grads_and_check_for_nan",),
        title="the optimizer checks whether a gradient overflowed",
        fix="Train with --bf16, which needs no loss scaler; fp16 needs the check to skip a step.",
        cause=Cause.CHECK,
    ),
    # core 0.19, timers.py, Timer.start and stop: `torch.cuda.synchronize()`
    LibraryPlace(
        file="megatron/core/timers.py",
        functions=("start", "stop", "elapsed"),
        title="a timer waits for the whole device",
        fix="--timing-log-level 0, the default, keeps the fewest timers; those that are left log the whole step.",
        cause=Cause.EXPLICIT,
    ),
    # core 0.19, rerun_state_machine.py, validate_result: `rejection_func(result)` of the loss, as a truth value
    LibraryPlace(
        file="megatron/core/rerun_state_machine.py",
        title="the loss is validated on the host",
        fix="--no-check-for-nan-in-loss-and-grad turns off the check; --rerun-mode disabled turns off its follow-up.",
        cause=Cause.CHECK,
    ),
    # core 0.19, p2p_communication.py: `if config.batch_p2p_comm and config.batch_p2p_sync: torch.cuda.synchronize()`
    LibraryPlace(
        file="megatron/core/pipeline_parallel/p2p_communication.py",
        title="pipeline stages wait for the whole device after an exchange",
        fix="batch_p2p_sync=False in the model's configuration: it guards against a race in old versions of PyTorch.",
        cause=Cause.EXPLICIT,
    ),
    # core 0.19, token_dispatcher.py: `self.d2h_event.synchronize()`, `….tolist()`, not where drop_and_pad is set
    LibraryPlace(
        file="megatron/core/transformer/moe/token_dispatcher.py",
        title="the dispatcher reads how many tokens each expert gets",
        fix="--moe-pad-expert-input-to-capacity with --moe-expert-capacity-factor gives each expert the same number "
        "of tokens, so nothing is read; tokens above it are dropped.",
        cause=Cause.SHAPE,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
