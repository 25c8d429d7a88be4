"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

_PLACES = (
    # 0.19, timer.py, ThroughputTimer.start and stop: `if self.config.synchronized: get_accelerator().synchronize()`
    LibraryPlace(
        file="deepspeed/utils/timer.py",
        functions=("start", "stop"),
        title="DeepSpeed's throughput timer waits for the whole device",
        fix='In the configuration "timers": {"throughput": {"enabled": false}}, or "synchronized": false to keep a '
        "rougher one.",
    ),
    # 0.19, timer.py, CudaEventTimer.get_elapsed_msec: `self.end_event.synchronize()`, asked for by wall_clock_breakdown
    LibraryPlace(
        file="deepspeed/utils/timer.py",
        title="DeepSpeed's timers wait for their events",
        fix='In the configuration "wall_clock_breakdown": false.',
    ),
    # 0.19, stage_1_and_2.py, step: `if self.check_grad_overflow: self.check_overflow(…)`, has_overflow: `….item()`;
    # precision_config.py: "check_grad_overflow" of "bf16" is true by default; stage3.py asks in float16 alone
    LibraryPlace(
        file="deepspeed/runtime",
        functions=("has_overflow", "has_overflow_serial", "check_overflow", "_has_inf_or_nan", "has_inf_or_nan"),
        title="DeepSpeed checks whether a gradient overflowed",
        fix='Train in bfloat16 and say that it needn\'t be asked: "bf16": {"enabled": true, "check_grad_overflow": '
        "false}; fp16 needs the check to skip a step.",
        cause=Cause.CHECK,
    ),
    # 0.19, stage_1_and_2.py, allreduce_and_copy, reduce_…: `if self.overlap_comm: get_accelerator().synchronize()`
    LibraryPlace(
        file="deepspeed/runtime/zero/stage_1_and_2.py",
        functions=(
            "allreduce_and_copy",
            "_allreduce_noncontiguous_bucket_preserving_fp32",
            "independent_gradient_partition_epilogue",
        ),
        title="ZeRO waits for the whole device before it frees reduced gradients",
        fix='In the configuration "zero_optimization": {"overlap_comm": false} waits for none of them, and doesn\'t '
        "overlap the reduction with the backward pass: compare both.",
    ),
    # 0.19, partitioned_param_coordinator.py, fetch_sub_module: `self.__ongoing_fetch_events.popleft().synchronize()`
    LibraryPlace(
        file="deepspeed/runtime/zero/partitioned_param_coordinator.py",
        title="ZeRO 3 throttles the host to limit the parameters in flight",
        fix="This is intended back-pressure. Larger stage3_max_live_parameters and stage3_prefetch_bucket_size make it "
        "rarer where memory allows.",
        intended=True,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
