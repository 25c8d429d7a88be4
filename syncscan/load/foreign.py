"""Name the tool that wrote a file without torch.profiler's slices.

Many tools write the Trace Event Format; syncscan reads one of them, Kineto, whose slices it knows by category. Only a
file that couldn't be read at all is read again here, so that the message about it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscan.errors import SyncscanError, TraceUnreadable
from syncscan.load.byte_stream import ByteStream, open_bytes
from syncscan.load.event import LEFT_OUT
from syncscan.load.fields import ARROWS, CATEGORIES, PYTHON
from syncscan.load.split import LOOKED_AT
from syncscan.load.unpack import redacted
from syncscan.model.trace import CALLS, Trace

_HINT = (
    "syncscan reads what torch.profiler writes (export_chrome_trace, tensorboard_trace_handler): record the steps with "
    "it, or with syncscan profile."
)


def _category(*names: str) -> str:
    return rf'"cat"\s*:\s*"(?:{"|".join(names)})"'


_MIXED = {
    "of an Ascend NPU (torch_npu's trace_view.json)": (
        '"AscendCL@|"Ascend Hardware"|"CANN"|' + _category("async_npu", "HostToDevice")
    ),
    "of PaddlePaddle's profiler": _category("CudaRuntime", "OperatorInner", "PythonUserDefined", "ProfileStep"),
}
"""Writers some of whose slices are in categories that Kineto has too, so that part of the file can be read."""
_WRITERS = {
    **_MIXED,
    "of VizTracer": '"viztracer_metadata"|' + _category("FEE"),
    "of torch.autograd.profiler from torch 1.x": (
        r'"pid"\s*:\s*"(?:CPU|CUDA|GPU) functions"|' + _category("cpu_to_cuda")
    ),
    "of Nsight Systems or nvprof": (
        r'"(?:TraceProcessEvent|CudaEvent|NvtxEvent)"\s*:\s*\{|'
        + _category("cuda", "cuda_api", "nvtx", "nvtx-kernel", "gpu_kernel")
    ),
    "of the profiler of JAX, TensorFlow or torch_xla (XPlane)": (
        r'"/(?:device|host):|"/job:[^"]{1,200}/(?:device|replica):|'
        r'"metadata"\s*:\s*\{\s*"highres-ticks"\s*:\s*true\s*\}'
    ),
    "of rocprof": r'"CPU HIP API"|"CPU HSA API"|"rocprofiler-sdk-tool"|"BeginNs"\s*:',
    "of an ExecutionTraceObserver (Chakra)": r'"schema"\s*:\s*"[^"]{0,20}chakra|"(?:rf_id|ctrl_deps)"\s*:',
    "in a zip, 7z or rar archive": r"\A(?:PK\x03\x04|7z\xbc\xaf|Rar!)",
    "in a pickle": r"\A\x80[\x02-\x05]",
    # A trace of Perfetto's own begins so: its packets are field 1 of a message.
    "in a binary file": r"\A\x0a[^\n]{0,2}[\x00-\x08\x0e-\x1f]",
}
"""Whose data are not torch.profiler's → what occurs in its files, but not in Kineto's; the first that occurs counts."""
_SIGNS = {writer: re.compile(signs.encode("latin-1")) for writer, signs in _WRITERS.items()}
_PHASE = re.compile(rb'"ph"\s*:\s*"[XBEbenP]"')
_CATEGORIES = re.compile(rb'"cat"\s*:\s*"([^"\\]{0,60})"')
_KINETOS = frozenset({*CATEGORIES, *ARROWS, *LEFT_OUT, PYTHON, "User", "async", "async_gpu", "async_cpu_to_gpu"})
_ASCEND = frozenset({"Ascend Hardware", "CANN"})
"""Process names in torch_npu traces, some versions of which use a category that Kineto's kernels once had."""


def refusal(path: str, text: bytes) -> TraceUnreadable | None:
    """Return why this text, a file's first, isn't a trace of torch.profiler's; None if that isn't known."""
    for writer, signs in _SIGNS.items():
        if signs.search(text):
            return TraceUnreadable(f"{path} has data {writer}, not a trace from torch.profiler.", _HINT)
    if not _PHASE.search(text):
        return None
    categories = _categories(text)
    foreign = [name for name in categories if name not in _KINETOS]
    if categories and not foreign:
        return None
    named = f"of the categories {', '.join(foreign[:4])}" if foreign else "without a category"
    return TraceUnreadable(f"{path} is a Chrome trace, but not from torch.profiler: its slices are {named}.", _HINT)


def _categories(text: bytes) -> list[str]:
    return list(dict.fromkeys(name.decode("utf-8", "replace") for name in _CATEGORIES.findall(text)))


def refused(trace: Trace, path: str) -> TraceUnreadable | None:
    """Return why a file that was read as a trace is another tool's; None if it isn't."""
    if trace.info.stored or not (_is_doubtful(trace) or any(track.process in _ASCEND for track in trace.tracks)):
        return None
    return written_by_another(path)


def written_by_another(path: str) -> TraceUnreadable | None:
    """Return why the file at a path is another tool's; None if it isn't, or can't be read again."""
    text = _begin(path)
    has_slices = any(name in CATEGORIES or name == PYTHON for name in _categories(text))
    if has_slices and not any(_SIGNS[writer].search(text) for writer in _MIXED):
        return None
    return refusal(redacted(path), text)


def _is_doubtful(trace: Trace) -> bool:
    return not len(trace.device_rows) or not trace.is_category(*CALLS).any()


def _begin(path: str) -> bytes:
    """Return the first text of a file; nothing if it can't be read again, such as standard input."""
    if path == "-":
        return b""
    try:
        with open_bytes(path) as stream:
            return b"".join(_pieces(stream))
    except (SyncscanError, OSError):
        return b""


def _pieces(stream: ByteStream) -> Iterator[bytes]:
    left = LOOKED_AT
    while left > 0 and (piece := stream.read(min(left, 1 << 16))):
        yield piece
        left -= len(piece)
