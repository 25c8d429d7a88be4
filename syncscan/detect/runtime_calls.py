"""From the name of a runtime call, without its version suffix, to whether and how it can block the host."""

from __future__ import annotations

import re

_SYNCHRONISE = re.compile(
    r"\w*(Stream|Device|Event|Ctx|Context|Queue|List|Fence|Host)_?Synchronize\w*|synchronize"
    r"|ze(CommandList|CommandQueue|Event|Fence)Host\w*|ur(QueueFinish|EventWait)",
    re.IGNORECASE,
)
_BLOCKING_COPY = re.compile(
    r"(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol|ToArray|FromArray)?|hipMemcpy(WithStream|DtoH|HtoD)|cuMemcpy(DtoH|HtoD)"
)
_ASYNC_COPY = re.compile(r"(cuda|hip)Memcpy(2D|3D)?Async|cuMemcpy(DtoH|HtoD)Async")
_FREE = re.compile(r"(cuda|hip)Free")
_ALLOCATE = re.compile(
    r"(cuda|hip)(Malloc|HostAlloc|MallocHost|HostMalloc|HostRegister|FreeHost|HostFree|HostUnregister)"
    r"|cuMem(Create|Map|Unmap|Release)"
)
_NEVER = re.compile(
    r"\w*(Launch|Query|IsCapturing|GetCaptureInfo|GetAttributes|PeekAtLastError|Memset|StreamWaitEvent|StreamWaitValue"
    r"|EventRecord|EnqueueEventsWait|PushCallConfiguration|PopCallConfiguration|Append|Occupancy|LoadData|LinkComplete"
    r"|Instantiate|EndCapture|ExecUpdate|Module|Library|FuncGet)\w*"
)
_BETWEEN = re.compile(r"\w*(IsCapturing|GetCaptureInfo|EventQuery|StreamQuery|PointerGetAttributes|PeekAtLastError)\w*")


def is_synchronise(api: str) -> bool:
    """Whether it returns once the device, a stream or an event has been reached (CUDA, HIP, Level Zero, UR, MTIA)."""
    return bool(_SYNCHRONISE.fullmatch(api))


def is_blocking_copy(api: str) -> bool:
    """Whether it is a copy that is synchronous by definition, unless it stays on the device (CUDA Runtime API)."""
    return bool(_BLOCKING_COPY.fullmatch(api))


def is_async_copy(api: str) -> bool:
    """Whether it is a copy that may wait for pageable host memory only."""
    return bool(_ASYNC_COPY.fullmatch(api))


def is_copy(api: str) -> bool:
    """Whether it is a copy of one of the two kinds."""
    return is_blocking_copy(api) or is_async_copy(api)


def frees(api: str) -> bool:
    """Whether it gives device memory back to the driver: the device drains first (measured on an H200, torch 2.11)."""
    return bool(_FREE.fullmatch(api))


def allocates(api: str) -> bool:
    """Whether it takes or pins memory, or unpins it: that takes long, but waits for queued work only sometimes."""
    return bool(_ALLOCATE.fullmatch(api))


def may_drain(api: str) -> bool:
    """Whether nobody knows that it doesn't wait for the queue to drain, so that what was measured decides.

    A launch doesn't: one that is held has a full queue before it, which is back-pressure.
    """
    return not _NEVER.fullmatch(api)


def waits_by_nature(api: str) -> bool:
    """Whether it takes long only because it waits; others (allocators, anything unknown) take long by themselves."""
    return is_synchronise(api) or is_copy(api) or frees(api)


def comes_between(api: str) -> bool:
    """Whether torch makes this call between a copy and the synchronise behind it, to look at a stream or pointer."""
    return bool(_BETWEEN.fullmatch(api))
