"""Words are looked for in all names of a trace's device work at once, and found as in each by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.device_names import DeviceNames
from syncscan.model import slice_names
from tests.builder import TraceBuilder

WORDS = ("ab", "bca")
texts = st.lists(st.text("abcAB\nİß", max_size=6), min_size=1, max_size=8)


@given(texts)
def test_a_word_is_found_in_every_name_that_holds_it(drawn: list[str]) -> None:
    """In upper case too, beside characters whose lower case is longer, and in none that two names make together."""
    t = TraceBuilder()
    for at, name in enumerate(drawn):
        t.launch(name, at=100 * at, lasts=10)
    trace = t.trace()
    result = DeviceNames(trace).matching(lambda name: "c" not in name, WORDS)
    kernels = set(map(trace.name, trace.device_rows.tolist()))
    holding = {name for name in kernels if any(word in name.lower() for word in WORDS)}
    assert {trace.strings[number] for number in np.flatnonzero(result).tolist()} == {n for n in holding if "c" not in n}


def test_only_names_of_device_work_are_looked_at() -> None:
    """An op of that name is none."""
    t = TraceBuilder()
    with t.op("ab", 0, 50):
        t.launch("other", at=10, lasts=10)
    assert not DeviceNames(t.trace()).matching(lambda name: True, WORDS).any()


def test_every_collectives_kernel_holds_one_of_the_words() -> None:
    """It holds for each library's kernels: those without any of the words are never checked."""
    kernels = [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void rcclKernel_Broadcast",
        "msccl_kernel",
        "mscclppKernel",
        "oneccl_allreduce_kernel",
        "nvshmem_put_kernel",
        "CCL::allreduce",
        "void wrapped<ncclKernel_Sum>",
        "vllm::cross_device_reduce_1stage<half>",
        "one_shot_all_reduce_kernel",
        "void two_shot_all_reduce",
        "sglang::AllReduce_TwoShot",
        "multimem_all_reduce_kernel",
    ]
    assert list(filter(slice_names.is_collective_kernel, kernels)) == kernels
    assert [k for k in kernels if not any(word in k.lower() for word in slice_names.COLLECTIVE_WORDS)] == []
