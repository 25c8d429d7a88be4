"""Which names of ranges mark a step of a serving framework, and what they say of it."""

from __future__ import annotations

from syncscan.model.step_marks import ServingPhase, StepMark, names_one_step, step_mark
from tests.each import each

MARKS = {
    "execute_context_2(14721)_generation_0(0)": ("vLLM", "prefill", 2),
    "execute_context_0(0)_generation_64(64)": ("vLLM", "decode", 64),
    "execute_context_2(6144)_generation_3(3)": ("vLLM", "mixed", 5),
    "execute_context_0(0)_generation_0(0)": ("vLLM", "idle", 0),
    "execute_context_1024_generation_64": ("vLLM", "mixed", 1088),
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)": ("vLLM", "decode", 32),
    "execute_new_1_cached_7": ("vLLM", "mixed", 8),
    "step[EXTEND bs=2 toks=14721]": ("SGLang", "prefill", 2),
    "step[DECODE bs=64]": ("SGLang", "decode", 64),
    "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]": ("SGLang", "decode", 64),
    "step[MIXED bs=2 c=1 g=1]": ("SGLang", "mixed", 2),
    "step[TARGET_VERIFY bs=8]": ("SGLang", "decode", 8),
    "step[IDLE bs=0]": ("SGLang", "idle", 0),
    "[Executor] _forward_step 17: 2 ctx reqs, 30 gen reqs": ("TensorRT-LLM", "mixed", 32),
    "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": ("TensorRT-LLM", "decode", 32),
    "[Executor] _forward_step: 2 ctx reqs, 0 gen reqs": ("TensorRT-LLM", "prefill", 2),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": ("ATOM", "prefill", 2),
    "decode[bs=117/128 tok=117 d=117]": ("ATOM", "decode", 117),
    "Prefill": ("Megatron", "prefill", None),
    "Decode": ("Megatron", "decode", None),
}


@each("name", MARKS)
def test_a_frameworks_mark(name: str) -> None:
    """Its framework, its phase and how many requests are in it."""
    framework, phase, batch = MARKS[name]
    assert step_mark(name) == StepMark(framework, ServingPhase(phase), batch)


@each("name", ["execute", "step[", "my step[DECODE bs=4]", "decode", "Decoder", "step[DECODE bs=4", "x" * 3000])
def test_another_name_is_no_mark(name: str) -> None:
    """Names that only resemble a mark, or contain one, mark nothing."""
    assert step_mark(name) is None


def test_a_mark_that_says_no_batch_may_be_a_part_of_a_program() -> None:
    """`Decode` is a usual name for a scope; `step[DECODE bs=4]` is one step's."""
    assert not names_one_step("Decode")
    assert names_one_step("step[DECODE bs=4]")
