"""What the name of a runtime or driver call says, on every vendor: what it does, and whether it can block the host.

Sources: the runtime and driver APIs of CUDA and HIP, Level Zero, Unified Runtime, torch's MTIA.
"""

from __future__ import annotations

import re
from functools import lru_cache

_VERSION = re.compile(r"(_ptsz|_ptds|_v\d+)+\Z")
"""What CUDA's headers append: the API's version, and that the default stream is each thread's own."""
_LAUNCH = re.compile(r"LaunchKernel")
_RECORD = re.compile(r"(cuda|hip|cu)EventRecord(WithFlags)?")
_STREAM_WAIT = re.compile(r"(cuda|hip|cu)StreamWaitEvent")
_QUEUE_FINISH = re.compile(r"urQueueFinish")
_EVENT_SYNCHRONISE = re.compile(r"\w*EventSynchronize")
_STREAM_SYNCHRONISE = re.compile(r"\w*StreamSynchronize")
_OF_A_STREAM = re.compile(r"\w*(Stream|Event)\w*")
_ELAPSED_TIME = re.compile(r"(cuda|hip)EventElapsedTime")
_EVENT_QUERY = re.compile(r"(cuda|hip|cu)EventQuery")
_QUERY = re.compile(r"(cuda|hip|cu)(Event|Stream)Query")
_DEVICE_SYNCHRONISE = re.compile(r"(cuda|hip|xpu|mtia)?DeviceSynchronize")
_SYNCHRONISE = re.compile(
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
_FIRST = re.compile(
    r"(cuda|hip)(Malloc|HostAlloc|MallocHost|StreamCreate\w*|ModuleLoad\w*|LibraryLoad\w*|OccupancyMax\w*)"
    r"|cu(ModuleLoad|LibraryLoad|LibraryGetKernel|KernelGetFunction)\w*"
)
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
"""Characters: far more than any call's name has. Some patterns take time that grows like the square of a name's."""


@lru_cache(1 << 12)
def api_name(name: str) -> str:
    """A call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _VERSION.sub("", name) if len(name) <= _LONGEST else name


def is_launch(name: str) -> bool:
    """Whether it launches a kernel."""
    return _LAUNCH.search(name) is not None


def is_graph_launch(name: str) -> bool:
    """Whether it launches a whole graph: `cudaGraphLaunch`; its kernels share its correlation."""
    return "GraphLaunch" in name


def is_event_record(name: str) -> bool:
    """Whether it records an event on a stream."""
    return _is(_RECORD, name)


def is_event_query(name: str) -> bool:
    """Whether it asks if an event is reached, without waiting."""
    return _is(_EVENT_QUERY, name)


def is_query(name: str) -> bool:
    """Whether it asks if an event is reached or a stream is done, without waiting."""
    return _is(_QUERY, name)


def is_elapsed_time(name: str) -> bool:
    """Whether it reads the time between two events."""
    return _is(_ELAPSED_TIME, name)


def is_stream_wait(name: str) -> bool:
    """Whether it makes a stream wait for an event, which holds the device and not the host."""
    return _is(_STREAM_WAIT, name)


def is_device_synchronise(name: str) -> bool:
    """Whether it holds the host until the whole device is done."""
    return _is(_DEVICE_SYNCHRONISE, name)


def is_queue_finish(name: str) -> bool:
    """Whether it holds the host until one of an Intel device's queues is done."""
    return _is(_QUEUE_FINISH, name)


def is_event_synchronise(name: str) -> bool:
    """Whether it holds the host until an event is reached."""
    return _is(_EVENT_SYNCHRONISE, name)


def is_stream_synchronise(name: str) -> bool:
    """Whether it holds the host until a stream is done."""
    return _is(_STREAM_SYNCHRONISE, name)


def is_of_a_stream(name: str) -> bool:
    """Whether it is about one stream, or an event on one, and not about the whole device."""
    return _is(_OF_A_STREAM, name)


def is_synchronise(name: str) -> bool:
    """Whether it returns once the device, a stream or an event has been reached (CUDA, HIP, Level Zero, UR, MTIA)."""
    return _is(_SYNCHRONISE, name)


def is_blocking_copy(name: str) -> bool:
    """Whether it is a copy that is synchronous by definition, unless it stays on the device (CUDA Runtime API)."""
    return _is(_BLOCKING_COPY, name)


def is_async_copy(name: str) -> bool:
    """Whether it is a copy that may wait for pageable host memory only."""
    return _is(_ASYNC_COPY, name)


def is_copy(name: str) -> bool:
    """Whether it is a copy of one of the two kinds."""
    return is_blocking_copy(name) or is_async_copy(name)


def is_memcpy(name: str) -> bool:
    """Whether it is a copy of any kind, those between devices too, which hold no host."""
    return _is(_MEMCPY, name)


def copies_and_waits(name: str) -> bool:
    """Whether it is a copy and the synchronise behind it in one call, as HIP has it."""
    return _is(_COPY_AND_WAIT, name)


def frees(name: str) -> bool:
    """Whether it gives device memory back to the driver: the device drains first (measured on an H200, torch 2.11)."""
    return _is(_FREE, name)


def allocates(name: str) -> bool:
    """Whether it takes or pins memory, or unpins it: that takes long, but waits for queued work only sometimes."""
    return _is(_TAKE, name) or unmaps(name) or pins(name)


def unmaps(name: str) -> bool:
    """Whether it gives memory of an expandable segment back."""
    return _is(_UNMAP, name)


def pins(name: str) -> bool:
    """Whether it pins memory of the host, or unpins it."""
    return _is(_PIN, name)


def may_drain(name: str) -> bool:
    """Whether nobody knows that it doesn't wait for the queue to drain, so that what was measured decides.

    A launch doesn't: one that is held has a full queue before it, which is back-pressure.
    """
    return not _is(_NEVER, name)


def waits_by_nature(name: str) -> bool:
    """Whether it takes long only because it waits; others (allocators, anything unknown) take long by themselves."""
    return is_synchronise(name) or is_copy(name) or frees(name)


def manages_memory(name: str) -> bool:
    """Whether it takes memory, gives it back, maps or pins it: of the device or of the host, at once or in a stream."""
    return _is(_MEMORY, name)


def asks(name: str) -> bool:
    """Whether it only asks: about a stream, an event, a pointer, a kernel's occupancy, a device, an error."""
    return _is(_ASKS, name)


def comes_first(name: str) -> bool:
    """Whether programs make it when they do something for the first time: take memory, make a stream, load kernels."""
    return _is(_FIRST, name)


def may_load_a_kernel(name: str) -> bool:
    """Whether it asks for or sets something of a kernel, which CUDA loads for it if that wasn't used before."""
    return _is(_LOADS, name)


def only_asks(name: str) -> bool:
    """Whether it only asks about a stream, an event or a pointer.

    Torch does between a copy and the synchronise behind it, and before it reads the time between two events.
    """
    return _is(_QUESTION, name)


@lru_cache(1 << 12)
def _is(calls: re.Pattern[str], name: str) -> bool:
    return len(name) <= _LONGEST and calls.fullmatch(api_name(name)) is not None
