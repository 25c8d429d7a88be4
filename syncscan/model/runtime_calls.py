"""Meanings of runtime and driver call names, for every vendor: what a call does, and whether it can block the host.

Sources: the runtime and driver APIs of CUDA and HIP, Level Zero, Unified Runtime, torch's MTIA.
"""

from __future__ import annotations

import re
from functools import lru_cache

_VERSION = re.compile(r"(_ptsz|_ptds|_v\d+)+\Z")
"""Suffixes that CUDA's headers append: the API version, and that the default stream is per thread."""
_LAUNCH = re.compile(r"LaunchKernel")
_RECORD = re.compile(r"(cuda|hip|cu)EventRecord(WithFlags)?")
_STREAM_WAIT = re.compile(r"(cuda|hip|cu)StreamWaitEvent")
_QUEUE_FINISH = re.compile(r"urQueueFinish")
_EVENT_SYNCHRONIZE = re.compile(r"\w*EventSynchronize")
_STREAM_SYNCHRONIZE = re.compile(r"\w*StreamSynchronize")
_OF_A_STREAM = re.compile(r"\w*(Stream|Event)\w*")
_ELAPSED_TIME = re.compile(r"(cuda|hip)EventElapsedTime")
_EVENT_QUERY = re.compile(r"(cuda|hip|cu)EventQuery")
_QUERY = re.compile(r"(cuda|hip|cu)(Event|Stream)Query")
_DEVICE_SYNCHRONIZE = re.compile(r"(cuda|hip|xpu|mtia)?DeviceSynchronize")
_SYNCHRONIZE = re.compile(
    r"\w*(Stream|Device|Event|Ctx|Context|Queue|List|Fence|Host)_?Synchronize\w*|(\w+_)?synchronize"
    r"|ze(CommandList|CommandQueue|Event|Fence)Host\w*|ur(QueueFinish|EventWait)",
    re.IGNORECASE,
)
_BLOCKING_COPY = re.compile(
    r"(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol|ToArray|FromArray)?|hipMemcpy(WithStream|DtoH|HtoD)|cuMemcpy(DtoH|HtoD)"
)
_COPY_AND_WAIT = re.compile(r"hipMemcpyWithStream")
_MEMCPY = re.compile(r"\w*Memcpy\w*")
_ASYNC_COPY = re.compile(r"(cuda|hip)Memcpy(2D|3D)?Async|cuMemcpy(DtoH|HtoD)Async")
_FREE = re.compile(r"(cuda|hip)Free")
_TAKE = re.compile(r"(cuda|hip)Malloc|cuMem(Create|Map)")
_UNMAP = re.compile(r"cuMem(Unmap|Release)")
_PIN = re.compile(r"(cuda|hip)(HostAlloc|MallocHost|HostMalloc|HostRegister|FreeHost|HostFree|HostUnregister)")
_NEVER = re.compile(
    r"\w*(Launch|Query|IsCapturing|GetCaptureInfo|GetAttributes|PeekAtLastError|Memset|StreamWaitEvent|StreamWaitValue"
    r"|EventRecord|EnqueueEventsWait|PushCallConfiguration|PopCallConfiguration|Append|Occupancy|LoadData|LinkComplete"
    r"|Instantiate|EndCapture|ExecUpdate|Module|Library|FuncGet)\w*"
)
_QUESTION = re.compile(
    r"\w*(IsCapturing|GetCaptureInfo|EventQuery|StreamQuery|PointerGetAttributes|PeekAtLastError)\w*"
)
_MEMORY = re.compile(
    r"(cuda|hip)(Malloc|Free|Host(Alloc|Malloc|Register|Unregister|Free))\w*"
    r"|cuMem(Alloc|Free|Create|Release|Map|Unmap|SetAccess|Address|Host)\w*|hipMem(Create|Release|Map|Unmap|SetAccess)\w*"
    r"|zeMem(Alloc|Free)\w*|urUSM\w*(Alloc|Free)\w*|mtia\w*(Malloc|Free)\w*"
)
_ASKS = re.compile(
    r"\w*(Query|IsCapturing|GetCaptureInfo|GetAttribute|PointerGetAttribute|Occupancy|GetDevice|GetProperties|LastError"
    r"|MemGetInfo|GetLimit|ElapsedTime|PriorityRange|GetVersion|DriverGetVersion|RuntimeGetVersion|CtxGet)\w*"
)
_LOADS = re.compile(
    r"(cuda|hip)(Func(Set|Get)\w*|Occupancy\w*|GetSymbol\w*|GetFuncBySymbol|(Module|Library|Kernel)\w*)"
    r"|cu(Module(Load|Get)\w*|Library(Load|Get)\w*|Kernel\w*|Func(Load|Set|Get)\w*|Occupancy\w*)"
)
_LONGEST = 1000
"""Longest name that is matched, in characters, far above any call's. Some patterns take time quadratic in a name's
length."""


@lru_cache(1 << 12)
def api_name(name: str) -> str:
    """Return a call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _VERSION.sub("", name) if len(name) <= _LONGEST else name


def is_launch(name: str) -> bool:
    return _LAUNCH.search(name) is not None


def is_graph_launch(name: str) -> bool:
    """Return whether a call launches a whole graph: `cudaGraphLaunch`; its kernels share its correlation."""
    return "GraphLaunch" in name


def is_event_record(name: str) -> bool:
    return _is(_RECORD, name)


def is_event_query(name: str) -> bool:
    return _is(_EVENT_QUERY, name)


def is_query(name: str) -> bool:
    """Return whether the call asks if an event is reached or a stream is done, without waiting."""
    return _is(_QUERY, name)


def is_elapsed_time(name: str) -> bool:
    return _is(_ELAPSED_TIME, name)


def is_stream_wait(name: str) -> bool:
    """Return whether a call makes a stream wait for an event, which blocks the device but not the host."""
    return _is(_STREAM_WAIT, name)


def is_device_synchronize(name: str) -> bool:
    return _is(_DEVICE_SYNCHRONIZE, name)


def is_queue_finish(name: str) -> bool:
    """Return whether a call blocks the host until a queue of an Intel device is done."""
    return _is(_QUEUE_FINISH, name)


def is_event_synchronize(name: str) -> bool:
    return _is(_EVENT_SYNCHRONIZE, name)


def is_stream_synchronize(name: str) -> bool:
    return _is(_STREAM_SYNCHRONIZE, name)


def is_of_a_stream(name: str) -> bool:
    """Return whether a call concerns one stream, or an event on one, rather than the whole device."""
    return _is(_OF_A_STREAM, name)


def is_synchronize(name: str) -> bool:
    """Return whether a call waits for the device, a stream or an event (CUDA, HIP, Level Zero, UR, MTIA)."""
    return _is(_SYNCHRONIZE, name)


_INTEL = {"D2M": "DtoH", "D2H": "DtoH", "M2D": "HtoD", "H2D": "HtoD", "D2D": "DtoD", "D2S": "DtoD", "S2D": "DtoD"}
"""Intel's spelling of a copy's direction: to and from memory, the device and shared memory."""


@lru_cache(1 << 10)
def copy_direction(copy: str) -> str:
    """Return `DtoH`, `HtoD`, … for a copy's name; empty without one. Intel's names are converted."""
    _, word, *_ = (*copy.split(), "", "")
    return _INTEL.get(word.partition("(")[0], word)


def is_blocking_copy(name: str) -> bool:
    """Return whether a call is a synchronous copy by definition, unless it stays on the device (CUDA Runtime API)."""
    return _is(_BLOCKING_COPY, name)


def is_async_copy(name: str) -> bool:
    """Return whether a call is a copy that waits at most for pageable host memory."""
    return _is(_ASYNC_COPY, name)


def is_copy(name: str) -> bool:
    return is_blocking_copy(name) or is_async_copy(name)


def is_memcpy(name: str) -> bool:
    """Return whether a call is a copy of any kind, including those between devices, which block no host."""
    return _is(_MEMCPY, name)


def copies_and_waits(name: str) -> bool:
    """Return whether a call is a copy and its synchronization in one, as HIP has it."""
    return _is(_COPY_AND_WAIT, name)


def frees(name: str) -> bool:
    """Return whether a call returns device memory to the driver, which drains the device first (H200, torch 2.11)."""
    return _is(_FREE, name)


def allocates(name: str) -> bool:
    """Return whether a call allocates, pins or unpins memory: slow, but it waits for queued work only sometimes."""
    return _is(_TAKE, name) or unmaps(name) or pins(name)


def unmaps(name: str) -> bool:
    """Return whether a call releases memory of an expandable segment."""
    return _is(_UNMAP, name)


def pins(name: str) -> bool:
    return _is(_PIN, name)


def may_drain(name: str) -> bool:
    """Return whether a call may wait for the queue to drain, so that measurements decide.

    A launch doesn't: one that blocks has a full queue before it, which is back-pressure.
    """
    return not _is(_NEVER, name)


def waits_by_nature(name: str) -> bool:
    """Return whether a call takes long only because it waits; others (such as allocators) may be slow in themselves."""
    return is_synchronize(name) or is_copy(name) or frees(name)


def manages_memory(name: str) -> bool:
    """Return whether a call allocates, frees, maps or pins device or host memory, at once or in a stream."""
    return _is(_MEMORY, name)


def asks(name: str) -> bool:
    """Return whether a call only queries: a stream, event, pointer, kernel's occupancy, device or error."""
    return _is(_ASKS, name)


def may_load_a_kernel(name: str) -> bool:
    """Return whether a call reads or sets a kernel's attributes, for which CUDA loads the kernel on first use."""
    return _is(_LOADS, name)


def only_asks(name: str) -> bool:
    """Return whether a call only queries a stream, an event or a pointer.

    Torch makes such calls between a copy and its synchronization, and before it reads the time between two events.
    """
    return _is(_QUESTION, name)


@lru_cache(1 << 12)
def _is(calls: re.Pattern[str], name: str) -> bool:
    return len(name) <= _LONGEST and calls.fullmatch(api_name(name)) is not None
