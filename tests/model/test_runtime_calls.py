"""The name of a runtime call tells its purpose, and how it can block the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model import runtime_calls
from tests.each import each

KINDS = {
    "synchronize": runtime_calls.is_synchronize,
    "blocking copy": runtime_calls.is_blocking_copy,
    "async copy": runtime_calls.is_async_copy,
    "frees": runtime_calls.frees,
    "allocates": runtime_calls.allocates,
}
CALLS = {
    "synchronize": """
        cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cuCtxSynchronize cuStreamSynchronize
        hipStreamSynchronize hipDeviceSynchronize hipEventSynchronize mtiaStreamSynchronize zeFenceHostSynchronize
        zeCommandQueueSynchronize zeCommandListHostSynchronize zeEventHostSynchronize urQueueFinish urEventWait
        cuContextSynchronize Stream_synchronize xpuQueueSynchronize zeCommandListSynchronize synchronize xpu_synchronize
        zeEventHostReset
    """,
    "blocking copy": """
        cudaMemcpy cudaMemcpy2D cudaMemcpy3D cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaMemcpyToArray
        cudaMemcpyFromArray hipMemcpy hipMemcpyWithStream hipMemcpyDtoH hipMemcpyHtoD cuMemcpyDtoH cuMemcpyHtoD
    """,
    "async copy": """
        cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpy3DAsync hipMemcpyAsync cuMemcpyDtoHAsync cuMemcpyHtoDAsync
    """,
    "frees": "cudaFree hipFree",
    "allocates": """
        cudaMalloc cudaHostAlloc cudaMallocHost hipHostMalloc hipHostRegister cudaHostRegister cudaFreeHost hipHostFree
        cudaHostUnregister hipMalloc cuMemCreate cuMemMap cuMemUnmap cuMemRelease
    """,
    "": """
        cudaLaunchKernel cudaMemcpyPeerAsync cuMemcpyDtoDAsync cudaFreeAsync cudaMallocAsync cudaEventRecord
        cudaFreeArray cudaStreamWaitEvent urEnqueueEventsWait zeEventQueryStatus
        notsynchronizeatall cudaMemcpyAsyncs xcudaFree
        zeCommandListCreate
    """,
}


DOES = {
    "launches a kernel": (runtime_calls.is_launch, "cudaLaunchKernel cudaLaunchKernelExC hipExtModuleLaunchKernel"),
    "launches a graph": (runtime_calls.is_graph_launch, "cudaGraphLaunch hipGraphLaunch"),
    "records an event": (runtime_calls.is_event_record, "cudaEventRecord cudaEventRecordWithFlags hipEventRecord"),
    "asks for an event": (runtime_calls.is_event_query, "cudaEventQuery hipEventQuery"),
    "makes a stream wait": (runtime_calls.is_stream_wait, "cudaStreamWaitEvent hipStreamWaitEvent"),
    "waits for the device": (
        runtime_calls.is_device_synchronize,
        "cudaDeviceSynchronize hipDeviceSynchronize mtiaDeviceSynchronize DeviceSynchronize",
    ),
    "waits for an event": (
        runtime_calls.is_event_synchronize,
        "cudaEventSynchronize hipEventSynchronize cuEventSynchronize",
    ),
    "waits for a stream": (
        runtime_calls.is_stream_synchronize,
        "cudaStreamSynchronize hipStreamSynchronize cuStreamSynchronize mtiaStreamSynchronize",
    ),
    "copies and waits": (runtime_calls.copies_and_waits, "hipMemcpyWithStream"),
    "reads a time": (runtime_calls.is_elapsed_time, "cudaEventElapsedTime hipEventElapsedTime"),
    "pins": (runtime_calls.pins, "cudaHostAlloc cudaMallocHost hipHostMalloc hipHostRegister hipHostFree"),
    "unmaps": (runtime_calls.unmaps, "cuMemUnmap cuMemRelease"),
}
WAITS_FOR_NOTHING = """
    cudaLaunchKernel cudaLaunchKernelExC cudaGraphLaunch hipExtModuleLaunchKernel cudaEventQuery cudaStreamQuery
    cudaStreamIsCapturing cudaStreamGetCaptureInfo_v2 cudaPointerGetAttributes cudaFuncGetAttributes cudaMemsetAsync
    cudaPeekAtLastError cudaStreamWaitEvent cuStreamWaitValue32 cudaEventRecordWithFlags urEnqueueEventsWaitWithBarrier
    __cudaPushCallConfiguration __cudaPopCallConfiguration zeCommandListAppendMemoryCopy cuLinkComplete
    cudaOccupancyMaxActiveBlocksPerMultiprocessor cuModuleLoadData cudaGraphInstantiate cudaStreamEndCapture
    cudaGraphExecUpdate cuModuleUnload cuLibraryUnload cuModuleFuncGetAttribute hipFuncGet
""".split()
PREDICATES: dict[str, Callable[[str], bool]] = {
    name: function
    for name, function in inspect.getmembers(runtime_calls, inspect.isfunction)
    if not name.startswith(("_", "x_"))  # x_… are a mutation tester's copies (CONTRIBUTING.md, `make mutants`)
    and inspect.signature(function).return_annotation == "bool"
}
NAMES = sorted({*WAITS_FOR_NOTHING, *" ".join([*CALLS.values(), *(names for _, names in DOES.values())]).split()})


@each(("does", "name"), [(does, name) for does in DOES for name in DOES[does][1].split()])
def test_a_call_does_one_thing(does: str, name: str) -> None:
    """On both vendors."""
    assert [known for known, (predicate, _) in DOES.items() if predicate(name)] == [does]


@each(("kind", "name"), [(kind, name) for kind, names in CALLS.items() for name in names.split()])
def test_a_call_is_of_one_kind_or_of_none(kind: str, name: str) -> None:
    """No call is two of them."""
    assert [known for known, predicate in KINDS.items() if predicate(name)] == ([kind] if kind else [])


@pytest.mark.parametrize("kind", [kind for kind in CALLS if kind])
def test_all_but_the_allocators_wait_by_nature(kind: str) -> None:
    """And nothing unknown does."""
    assert {runtime_calls.waits_by_nature(name) for name in CALLS[kind].split()} == {kind != "allocates"}
    assert not any(map(runtime_calls.waits_by_nature, CALLS[""].split()))


def test_what_pins_and_what_unmaps_allocates() -> None:
    """As taking memory does, which is neither."""
    allocators = CALLS["allocates"].split()
    neither = [name for name in allocators if not (runtime_calls.pins(name) or runtime_calls.unmaps(name))]
    assert neither == ["cudaMalloc", "hipMalloc", "cuMemCreate", "cuMemMap"]
    assert [name for name in NAMES if runtime_calls.pins(name) and name not in allocators] == []
    assert [name for name in NAMES if runtime_calls.unmaps(name) and name not in allocators] == []


def test_copies_between_devices_copy_too() -> None:
    """They are of neither kind, as they hold no host."""
    memcpys = [name for name in NAMES if runtime_calls.is_memcpy(name)]
    copies = [name for name in NAMES if runtime_calls.is_copy(name)]
    assert sorted(set(memcpys) - set(copies)) == ["cuMemcpyDtoDAsync", "cudaMemcpyAsyncs", "cudaMemcpyPeerAsync"]
    assert set(copies) <= set(memcpys)


@each(
    ("name", "one"),
    [
        ("cudaStreamSynchronize", True),
        ("cudaEventSynchronize", True),
        ("zeEventHostSynchronize", True),
        ("hipMemcpyWithStream", True),
        ("cudaDeviceSynchronize", False),
        ("cuCtxSynchronize", False),
        ("cudaFree", False),
    ],
)
def test_what_is_of_one_stream_is_distinguished_from_what_is_of_the_device(name: str, one: bool) -> None:
    """An event is of the stream that it was recorded on."""
    assert runtime_calls.is_of_a_stream(name) == one


def test_a_copy_is_of_either_kind() -> None:
    """And nothing else."""
    copies = CALLS["blocking copy"] + CALLS["async copy"]
    assert all(map(runtime_calls.is_copy, copies.split()))
    assert not any(map(runtime_calls.is_copy, (CALLS["synchronize"] + CALLS["frees"] + CALLS[""]).split()))


@each("name", WAITS_FOR_NOTHING)
def test_calls_that_take_long_for_other_reasons_are_never_taken_to_wait(name: str) -> None:
    """A full queue, a capture, loading code."""
    assert not runtime_calls.may_drain(name)


@pytest.mark.parametrize("name", ["cudaFreeArray", "cudaStreamDestroy", "cudaGetDeviceProperties", "somethingNew"])
def test_any_other_call_may_wait(name: str) -> None:
    """Nobody has a list of all that do: what was measured decides."""
    assert runtime_calls.may_drain(name)


@each(
    ("name", "between"),
    [
        ("cudaStreamIsCapturing", True),
        ("cudaStreamGetCaptureInfo", True),
        ("cudaEventQuery", True),
        ("hipStreamQuery", True),
        ("cudaPointerGetAttributes", True),
        ("cudaPeekAtLastError", True),
        ("cudaEventRecord", False),
        ("cudaLaunchKernel", False),
        ("cudaMemsetAsync", False),
    ],
)
def test_only_queries_come_between_a_copy_and_its_synchronize(name: str, between: bool) -> None:
    """A record or a launch is the program's next statement; and none of the queries waits itself."""
    assert runtime_calls.only_asks(name) == between
    assert not between or not runtime_calls.may_drain(name)


VERSIONS = st.lists(st.sampled_from(["_ptsz", "_ptds", "_v2", "_v3020", "_v11010"]), min_size=1, max_size=2)


@given(VERSIONS.map("".join))
def test_a_version_suffix_changes_nothing(version: str) -> None:
    """A call has another name where streams are each thread's own, or the API is versioned."""
    for predicate, holds in PREDICATES.items():
        changed = [name for name in NAMES if holds(name + version) != holds(name)]
        assert (predicate, changed) == (predicate, [])


@each("predicate", PREDICATES)
def test_each_predicate_is_true_of_some_names_and_false_of_others(predicate: str) -> None:
    """Else that suffixes change nothing would say nothing."""
    assert {PREDICATES[predicate](name) for name in NAMES} == {True, False}


@pytest.mark.parametrize("part", ["StreamSynchronize", "EventQuery", "_v1", "cudaEventRecord"])
@each("predicate", PREDICATES)
def test_a_name_that_no_call_has_takes_no_time(predicate: str, part: str) -> None:
    """3 MB of parts of names, which a pattern that is tried from each part on would read for hours."""
    assert PREDICATES[predicate](part * (3_000_000 // len(part)) + "!") == PREDICATES[predicate]("somethingNew")


MEMORY = """
    cudaMalloc cudaMallocAsync cudaMallocFromPoolAsync cudaFree cudaFreeAsync cudaHostAlloc cudaFreeHost
    cudaHostRegister hipMalloc hipFree hipHostMalloc hipHostFree cuMemAlloc cuMemCreate cuMemMap cuMemUnmap
    cuMemSetAccess cuMemAddressReserve zeMemAllocDevice urUSMDeviceAlloc
"""
QUESTIONS = """
    cudaEventQuery cudaStreamQuery hipEventQuery cudaStreamIsCapturing cudaStreamGetCaptureInfo_v2 cudaFuncGetAttributes
    cudaPointerGetAttributes cudaGetDevice cudaGetDeviceCount cudaGetDeviceProperties cudaDeviceGetAttribute
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cudaGetLastError cudaPeekAtLastError cudaEventElapsedTime
    cudaMemGetInfo hipGetDevice cuDeviceGetAttribute zeEventQueryStatus
"""
NEITHER = """
    cudaLaunchKernel cudaMemcpyAsync cudaMemsetAsync cudaEventRecord cudaStreamSynchronize cudaSetDevice
    cudaFuncSetAttribute cuModuleGetFunction cuLibraryGetKernel cudaGraphLaunch
"""


def test_calls_that_manage_memory_and_calls_that_ask_are_recognized_by_name() -> None:
    """No call does both; setting and loading is neither."""
    names = f"{MEMORY} {QUESTIONS} {NEITHER}".split()
    assert list(filter(runtime_calls.manages_memory, names)) == MEMORY.split()
    assert list(filter(runtime_calls.asks, names)) == QUESTIONS.split()
