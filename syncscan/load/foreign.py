"""Name the tool that wrote a file without torch.profiler's slices, and say what can be done.

Many tools write the Trace Event Format; syncscan reads one of them, Kineto, whose slices it knows by category. Only a
file that couldn't be read at all is read again here, so that the message about it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from syncscan.errors import SyncscanError, TraceUnreadable
from syncscan.load.byte_stream import ByteStream, open_bytes
from syncscan.load.categories import ARROWS, CATEGORIES, PYTHON
from syncscan.load.redaction import redacted
from syncscan.load.split import LOOKED_AT
from syncscan.load.typed_events import LEFT_OUT
from syncscan.model.trace import CALLS, Trace

_TORCH = "syncscan reads what torch.profiler writes (export_chrome_trace, tensorboard_trace_handler)"
_RECORD = f"{_TORCH}: record the steps with it, or with syncscan profile."


class _OtherTool(msgspec.Struct, frozen=True):
    """A tool whose files may be mistaken for torch.profiler's."""

    signs: re.Pattern[bytes]
    """Pattern that occurs in its files but not in Kineto's."""
    what: str
    """Phrase for such a file, which follows `PATH is `."""
    why: str
    """Sentence why it can't be analyzed."""
    hint: str = _RECORD
    """Sentence on what to do."""
    mixed: bool = False
    """Whether some of its slices are in categories that Kineto has too, so that part of the file can be read."""


def _signs(*patterns: str) -> re.Pattern[bytes]:
    return re.compile("|".join(patterns).encode())


def _category(*names: str) -> str:
    return rf'"cat"\s*:\s*"(?:{"|".join(names)})"'


_WRITERS = (
    _OtherTool(
        _signs('"AscendCL@', '"Ascend Hardware"', r'"CANN"', _category("async_npu", "HostToDevice")),
        "a trace of an Ascend NPU (torch_npu's trace_view.json)",
        "Its calls (AscendCL@aclrt…) and tasks belong to a device that syncscan doesn't support",
        "msprof-analyze advisor reads it and looks for calls that synchronize a stream; MindStudio Insight shows it. "
        f"{_TORCH} on CUDA, ROCm, XPU and MTIA.",
        mixed=True,
    ),  # gitee.com/ascend/msprof-analyze, prof_common/constant.py (SYNC_STREAM, ENQUEUE, TORCH_TO_NPU)
    _OtherTool(
        _signs('"viztracer_metadata"', _category("FEE")),
        "a trace of VizTracer",
        "It contains Python functions, but no torch ops or device calls",
    ),  # VizTracer 1.1
    _OtherTool(
        _signs(r'"pid"\s*:\s*"(?:CPU|CUDA|GPU) functions"', _category("cpu_to_cuda")),
        "an export of torch.autograd.profiler from torch 1.x",
        "It contains ops and kernels, but not the runtime calls in which the host waits for the device",
        f"{_TORCH} since torch 1.8.1: record the steps with that.",
    ),  # torch/autograd/profiler_util.py, EventList.export_chrome_trace
    _OtherTool(
        _signs(r'"(?:TraceProcessEvent|CudaEvent|NvtxEvent)"\s*:\s*\{'),
        "an export of Nsight Systems (nsys export --type json)",
        "It isn't a Chrome trace: it has one line per event, and no torch ops",
        f"nsys analyze --rule cuda_api_sync REPORT lists its synchronizing calls. {_RECORD}",
    ),
    _OtherTool(
        _signs(_category("cuda", "cuda_api", "nvtx", "nvtx-kernel", "gpu_kernel")),
        "a Chrome trace made from Nsight Systems' or nvprof's records",
        "It contains kernels and NVTX ranges without torch ops, and its runtime calls, if any, aren't marked as such",
        f"nsys analyze --rule cuda_api_sync REPORT lists the synchronizing calls of the report itself. {_RECORD}",
    ),  # ezyang/nvprof2json, chenyu-jiang/nsys2json
    _OtherTool(
        _signs(
            r'"/(?:device|host):',
            r'"/job:[^"]{1,200}/(?:device|replica):',
            r'"metadata"\s*:\s*\{\s*"highres-ticks"\s*:\s*true\s*\}',
        ),
        "a trace of the profiler of JAX, TensorFlow or torch_xla (XPlane)",
        "It doesn't contain ops and calls as torch.profiler records them",
        f"XProf and TensorBoard's profile plugin read it. {_RECORD}",
    ),  # openxla/xprof, convert/xplane_to_trace_events; tensorflow/python/client/timeline.py
    _OtherTool(
        _signs(_category("CudaRuntime", "OperatorInner", "PythonUserDefined", "ProfileStep")),
        "a trace of PaddlePaddle's profiler",
        "It contains Paddle's ops, and its runtime calls aren't in torch.profiler's categories",
        mixed=True,
    ),  # paddle/fluid/platform/profiler/utils.cc, StringTracerEventType
    _OtherTool(
        _signs('"CPU HIP API"', '"CPU HSA API"', '"rocprofiler-sdk-tool"', r'"BeginNs"\s*:'),
        "a record of rocprof",
        "It contains HIP calls and kernels without torch ops, in another format",
    ),  # ROCm/rocprofiler, bin/tblextr.py (labels of its processes); rocprofv3 --output-format json
    _OtherTool(
        _signs(_category("Session", "Node")),
        "a profile of ONNX Runtime",
        "It contains that runtime's nodes, but no torch ops or device calls",
    ),  # onnxruntime/core/common/profiler.cc
    _OtherTool(
        _signs("NEGOTIATE_(?:ALL|BROADCAST|REDUCE)", '"WAIT_FOR_DATA"'),
        "a timeline of Horovod",
        "It contains the phases of its collectives, but no torch ops or device calls",
    ),
    _OtherTool(
        _signs(_category('[^"]*(?:devtools|toplevel|blink)[^"]*')),
        "a trace of a browser",
        "It has no torch events",
    ),
    _OtherTool(
        _signs('"schema"\\s*:\\s*"[^"]{0,20}chakra', r'"(?:rf_id|ctrl_deps)"\s*:'),
        "an execution trace (ExecutionTraceObserver, Chakra)",
        "It contains ops and their dependencies, but not the times of device calls",
        f"{_TORCH}; both can be recorded in one run.",
    ),
    _OtherTool(
        _signs("speedscope.app/file-format-schema"),
        "a profile for speedscope",
        "It contains stacks, but no device work",
    ),
    _OtherTool(
        _signs(r"\ASQLite format 3\x00"),
        "an SQLite database",
        "Nsight Systems and rocprofv3 write such files, and syncscan doesn't read them",
        f"nsys analyze --rule cuda_api_sync REPORT lists the synchronizing calls of the former. {_RECORD}",
    ),
    _OtherTool(
        _signs(r"\A(?:PK\x03\x04|7z\xbc\xaf|Rar!)"),
        "a zip, 7z or rar archive",
        "syncscan reads JSON, also compressed, and files of a tar or zip",
        "Extract it, and give the trace in it: a file that torch.profiler wrote.",
    ),
    _OtherTool(
        _signs(r"\A\x80[\x02-\x05]"),
        "a pickle",
        "torch.cuda.memory writes such snapshots, and they contain no call times",
    ),
    _OtherTool(
        _signs(r"\A\x0a[^\n]{0,2}[\x00-\x08\x0e-\x1f]"),
        "a binary file, maybe a trace of Perfetto",
        "syncscan reads JSON",
        f"Perfetto's traceconv json converts it, if torch.profiler wrote it. {_RECORD}",
    ),  # perfetto.dev: a Trace's packets are field 1 of a message, and so begin with byte 10
)
"""Tools and their files, each with the source of its format; the first whose sign occurs in a text wrote it."""
_BEGINS_AND_ENDS = _OtherTool(
    _signs(r'"ph"\s*:\s*"[BE]"'),
    "a Chrome trace whose slices are pairs of begin and end events",
    "torch.profiler writes complete ones (phase X) in its own categories, which are missing here",
)
_PHASE = re.compile(rb'"ph"\s*:\s*"[XBEbenP]"')
_CATEGORIES = re.compile(rb'"cat"\s*:\s*"([^"\\]{0,60})"')
_KINETOS = frozenset({*CATEGORIES, *ARROWS, *LEFT_OUT, PYTHON, "User", "async", "async_gpu", "async_cpu_to_gpu"})
_ASCEND = frozenset({"Ascend Hardware", "CANN"})
"""Process names in torch_npu traces, some versions of which use a category that Kineto's kernels once had."""


def refusal(path: str, text: bytes) -> TraceUnreadable | None:
    """Return why this text isn't a trace of torch.profiler's and what to do; None if that isn't known.

    Args:
        path: path for the sentence, fit to be shown.
        text: first uncompressed bytes of a file without readable slices of torch.profiler's.
    """
    for writer in (*_WRITERS, _BEGINS_AND_ENDS):
        if writer.signs.search(text):
            return TraceUnreadable(f"{path} is {writer.what}. {writer.why}.", writer.hint)
    if not _PHASE.search(text):
        return None
    categories = _categories(text)
    foreign = [name for name in categories if name not in _KINETOS]
    if categories and not foreign:
        return None
    named = f"of the categories {', '.join(foreign[:4])}" if foreign else "without a category"
    return TraceUnreadable(f"{path} is a Chrome trace, but not from torch.profiler: its slices are {named}.", _RECORD)


def _categories(text: bytes) -> list[str]:
    return list(dict.fromkeys(name.decode("utf-8", "replace") for name in _CATEGORIES.findall(text)))


def refused(trace: Trace, path: str) -> TraceUnreadable | None:
    """Return why a file that was read as a trace is another tool's; None if it isn't.

    Args:
        trace: the trace as read.
        path: path of its file.
    """
    if trace.info.kept or not (_is_doubtful(trace) or any(track.process in _ASCEND for track in trace.tracks)):
        return None
    return written_by_another(path)


def written_by_another(path: str) -> TraceUnreadable | None:
    """Return why the file at a path is another tool's; None if it isn't, or can't be read again."""
    text = _begin(path)
    has_slices = any(name in CATEGORIES or name == PYTHON for name in _categories(text))
    if has_slices and not any(writer.mixed and writer.signs.search(text) for writer in _WRITERS):
        return None
    return refusal(redacted(path), text)


def _is_doubtful(trace: Trace) -> bool:
    """Return whether a trace has no device work or no runtime call."""
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
