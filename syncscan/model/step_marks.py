"""Tell how a trace's steps were found, and the step of a serving framework that a range marks.

Sources: vLLM's `annotate_profile` (vllm/v1/worker/gpu_worker.py; `execute_new_…_cached_…` before context and generation
were separated, token counts and lengths with `detailed_trace_annotation`); SGLang's `_build_step_span_name` and
`ForwardMode` (python/sglang/srt/model_executor/model_runner.py, forward_batch_info.py); TensorRT-LLM's `_forward_step`
(tensorrt_llm/_torch/pyexecutor/py_executor.py); Megatron's `range_push`
(megatron/core/inference/engines/dynamic_engine.py); ATOM's as AMD-AGI/TraceLens reads them
(TraceLens/TraceUtils/annotation_utils.py). Megatron's and other trainers mark their steps by `prof.step()`, so those
are `ProfilerStep`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

_LONGEST = 2000
"""Longest recognized name, in characters. ATOM lists the lengths of five requests, SGLang eight sums; a longer name
isn't theirs."""
_VLLM = re.compile(r"execute_(?:\d+_)?context_(\d{1,9})(?:\([^()]*\))?_generation_(\d{1,9})(?:\([^()]*\))?")
_VLLM_BEFORE = re.compile(r"execute_new_(\d{1,9})_cached_(\d{1,9})")
_SGLANG = re.compile(r"step\[(\w+) bs=(\d{1,9})\b[^\]]*\]")
_TENSORRT = re.compile(
    r"\[Executor\] _forward_step(?: \d+)?: (\d{1,9}) ctx reqs,(?: \d+ ctx tokens,)? (\d{1,9}) gen reqs"
)
_ATOM = re.compile(r"(prefill|decode)\[bs=(\d{1,9})\b.*\]")
_MEGATRON = re.compile(r"Prefill|Decode")


class ServingPhase(str, enum.Enum):
    """Work of a serving framework's step: processing prompts, generating tokens, or both."""

    PREFILL = "prefill"
    DECODE = "decode"
    MIXED = "mixed"
    IDLE = "idle"


_MODES = {
    "EXTEND": ServingPhase.PREFILL,
    "SPLIT_PREFILL": ServingPhase.PREFILL,
    "DLLM_EXTEND": ServingPhase.PREFILL,
    "MIXED": ServingPhase.MIXED,
    "IDLE": ServingPhase.IDLE,
}
"""SGLang's modes; all others (DECODE, TARGET_VERIFY, DRAFT_EXTEND, PREBUILT) generate tokens."""


class StepMark(msgspec.Struct, frozen=True):
    """A step as a framework marks it."""

    framework: str
    phase: ServingPhase
    batch: int | None = None
    """Number of requests, None where the name doesn't say."""


@lru_cache(1 << 12)
def step_mark(name: str) -> StepMark | None:
    """Return the step that a range of this name marks; None for any other range.

    Such names are `execute_context_0(0)_generation_32(32)` and `step[DECODE bs=32]`.
    """
    if len(name) > _LONGEST:
        return None
    for pattern, read in _FORMATS:
        if match := pattern.fullmatch(name):
            return read(match)
    return None


def names_one_step(name: str) -> bool:
    """Return whether a mark describes its step's content, so that it isn't the name of a program part."""
    mark = step_mark(name)
    return mark is not None and mark.batch is not None


def _by_requests(framework: str, match: re.Match[str]) -> StepMark:
    prompts, running = int(match[1]), int(match[2])
    phase = ServingPhase.MIXED if prompts else ServingPhase.DECODE
    if not running:
        phase = ServingPhase.PREFILL if prompts else ServingPhase.IDLE
    return StepMark(framework, phase, prompts + running)


_FORMATS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], StepMark]], ...] = (
    (_VLLM, lambda match: _by_requests("vLLM", match)),
    (_VLLM_BEFORE, lambda match: _by_requests("vLLM", match)),
    (_SGLANG, lambda match: StepMark("SGLang", _MODES.get(match[1], ServingPhase.DECODE), int(match[2]))),
    (_TENSORRT, lambda match: _by_requests("TensorRT-LLM", match)),
    (_ATOM, lambda match: StepMark("ATOM", ServingPhase(match[1]), int(match[2]))),
    (_MEGATRON, lambda match: StepMark("Megatron", ServingPhase(match[0].lower()))),
)


class FoundBy(str, enum.Enum):
    """The source of a trace's steps; NONE: nothing, so that the whole trace is one step."""

    SCOPE = "scope"
    PROFILER = "profiler"
    FRAMEWORK = "framework"
    REPETITION = "repetition"
    NONE = "none"


class StepsFound(msgspec.Struct, frozen=True):
    """How steps were found.

    `name` is the glob of the scopes or the framework's name; `calls` is how many a repeated sequence has; `asked` says
    that the caller wanted the whole as one step. Where the caller chose some of `count` steps, `chosen` is the first
    that is analyzed, and the first behind.
    """

    by: FoundBy = FoundBy.NONE
    name: str = ""
    calls: int = 0
    asked: bool = False
    chosen: tuple[int, int] | None = None
    count: int = 0


NO_STEPS = StepsFound()
