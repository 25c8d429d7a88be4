"""Make `torch.cuda` and related modules answer as on a machine with one GPU, until the patches are restored.

Of another kind of device `torch.xpu` or `torch.mps` does, with what it has of the same functions.

Whatever waits there is reported to the session: synchronizes of the device, of streams and events, `empty_cache`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from syncscan.dryrun import stand_ins, tensor_memory
from syncscan.dryrun.device_kinds import simulated
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.recording import DryWait
from syncscan.dryrun.tensor_memory import DEVICE
from syncscan.dryrun.wait_table import synchronize
from syncscan.dryrun.work_order import DEFAULT
from syncscan.patches import Patches

MEMORY = 80 * 1024**3
"""Bytes of the simulated device."""
PROPERTIES = SimpleNamespace(
    name="simulated GPU",
    major=9,
    minor=0,
    total_memory=MEMORY,
    multi_processor_count=132,
    is_integrated=False,
    is_multi_gpu_board=False,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    warp_size=32,
    gcnArchName="",
    uuid="00000000-0000-0000-0000-000000000000",
    L2_cache_size=50 * 1024**2,
    shared_memory_per_block=49152,
    shared_memory_per_multiprocessor=233472,
    shared_memory_per_block_optin=232448,
)


class _Zeros(dict[str, int]):
    """Statistics of an allocator that never allocated."""

    def __missing__(self, key: str) -> int:
        return 0


ANSWERS: tuple[tuple[Any, str], ...] = (
    (
        None,
        "set_device set_device_index set_device_idx init _lazy_init ipc_collect set_sync_debug_mode _sleep"
        " _accelerator_setDeviceIndex manual_seed manual_seed_all seed seed_all _record_memory_history _dump_snapshot"
        " set_per_process_memory_fraction reset_accumulated_host_memory_stats reset_peak_host_memory_stats"
        " reset_peak_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached",
    ),
    (
        0,
        "current_device current_device_index current_device_idx _exchange_device _maybe_exchange_device"
        " _accelerator_getDeviceIndex _accelerator_exchangeDevice _accelerator_maybeExchangeDevice get_sync_debug_mode"
        " temperature power_draw clock_rate utilization memory_usage memory_allocated max_memory_allocated"
        " memory_reserved max_memory_reserved memory_cached max_memory_cached current_allocated_memory"
        " driver_allocated_memory",
    ),
    (1, "_device_count_nvml"),
    (True, "is_initialized is_bf16_supported is_tf32_supported"),
    (False, "_is_in_bad_fork can_device_access_peer is_current_stream_capturing"),
    (MEMORY, "recommended_max_memory"),
    ((MEMORY, MEMORY), "mem_get_info get_memory_info"),
    (PROPERTIES, "get_device_properties"),
    (PROPERTIES.name, "get_device_name"),
    (["sm_90"], "get_arch_list"),
    ("native", "get_allocator_backend"),
    ("a simulated GPU has no processes", "list_gpu_processes"),
    ("a simulated GPU has no memory of its own", "memory_summary"),
    ([], "memory_snapshot"),
    ({"segments": [], "device_traces": []}, "_snapshot"),
    (_Zeros(), "memory_stats memory_stats_as_nested_dict host_memory_stats host_memory_stats_as_nested_dict"),
)
"""Answer → the functions of the device's module, and of those below it, that give it whatever they are given."""
_PARTS = ("memory", "random", "streams")
"""Modules below the device's that have some of its functions under the same names."""


def pretend(session: DryRunSession, patches: Patches) -> None:
    _Device(session, patches).set_all()


class _Device:
    def __init__(self, session: DryRunSession, patches: Patches) -> None:
        self.session, self.patches = session, patches
        self.device, self.module = simulated().device, simulated().module
        self.stream, self.event = stand_ins.stream_and_event(session)
        self.default = self.stream()
        self.default.number = DEFAULT
        session.order.several = False
        self._current = threading.local()
        self._set_stream(self.default)

    @property
    def current(self) -> Any:
        """The running thread's current stream."""
        return getattr(self._current, "stream", self.default)

    def set_all(self) -> None:
        self._module()
        self._accelerator()
        if simulated().name == "cuda":
            self._cuda()
        else:
            self._on(torch.cuda, is_available=lambda: False)
            self._on(torch.backends.mps, is_available=lambda: simulated().name == "mps")
        self._on(torch, Stream=self.stream, Event=self.event)
        self.patches.set(torch, "Generator", stand_ins.generator())
        self._distributed()
        self._parallel()

    def _on(self, owner: Any, **values: Any) -> None:
        for name, value in values.items():
            self.patches.replace(owner, name, value)

    def _answer(self, owner: Any) -> None:
        for answer, names in ANSWERS:
            # A function of its own for each: dynamo refuses two names of torch's for one.
            self._on(owner, **{name: _answering(answer) for name in names.split()})

    def _module(self) -> None:
        @contextlib.contextmanager
        def on_stream(stream: Any) -> Iterator[None]:
            before = self.current
            self._set_stream(stream or before)
            try:
                yield
            finally:
                self._set_stream(before)

        state = torch.random.default_generator
        for owner in (self.module, *(getattr(self.module, part, None) for part in _PARTS)):
            self._answer(owner)
            self._on(
                owner,
                is_available=_available,
                device_count=_devices,
                _initialized=True,
                get_device_capability=lambda device=None: (PROPERTIES.major, PROPERTIES.minor),
                synchronize=self._synchronize,
                device=stand_ins.device_context(),
                Stream=self.stream,
                Event=self.event,
                ExternalStream=self.stream,
                stream=on_stream,
                StreamContext=on_stream,
                current_stream=lambda device=None: self.current,
                default_stream=lambda device=None: self.default,
                set_stream=self._set_stream,
                empty_cache=self._empty_cache,
                initial_seed=torch.initial_seed,
                get_rng_state=lambda device=None: state.get_state(),
                get_rng_state_all=lambda: [state.get_state()],
                set_rng_state=lambda new, device=None: state.set_state(new),
                set_rng_state_all=lambda all_new: state.set_state(all_new[0]),
            )

    def _accelerator(self) -> None:
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            self._answer(accelerator)
            self._on(
                accelerator,
                is_available=lambda: True,
                device_count=_devices,
                current_accelerator=lambda check_available=False: self.device,
                synchronize=self._synchronize,
                current_stream=lambda device=None: self.current,
                set_stream=self._set_stream,
                empty_cache=self._empty_cache,
            )
        self._answer(torch._C)
        self._on(
            torch._C, _get_accelerator=lambda check=None: self.device, _accelerator_synchronizeDevice=self._synchronize
        )
        parse = torch._C._nn._parse_to

        def _parse_to(*args: Any, **kwargs: Any) -> Any:  # torch tells modes the name of what it finds here
            device, *others = parse(*map(_device_of, args), **kwargs)
            return (_place_of_first((*args, *kwargs.values())) or device, *others)

        self._on(torch._C._nn, _parse_to=_parse_to)

    def _cuda(self) -> None:
        """Set what only `torch.cuda` has: its libraries, graphs, marks and old types."""
        self._on(torch.backends.cudnn, is_acceptable=lambda tensor: False)
        self._on(torch._C, _cuda_getDeviceCount=lambda: 1, _cuda_isInBadFork=lambda: False)
        graph = {
            "CUDAGraph": stand_ins.graph(self.session),
            "graph": stand_ins.capture(self.session),
            "graph_pool_handle": lambda: (0, 0),
        }
        self._on(torch.cuda, **stand_ins.legacy_types(), **graph)
        self._on(torch.cuda.graphs, **graph)
        marks = dict.fromkeys(("rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA"), _answering(0))
        self._on(torch.cuda.nvtx, _nvtx=SimpleNamespace(**marks))

    def _synchronize(self, device: Any = None) -> None:
        self._wait(synchronize(call="cudaDeviceSynchronize"))

    def _empty_cache(self) -> None:
        self._wait(synchronize(call="cudaFree"))

    def _wait(self, wait: DryWait) -> None:
        self.session.look(sys._getframe(2), "synchronize")
        self.session.recording.call()
        self.session.wait(wait)

    def _set_stream(self, stream: Any) -> None:
        self._current.stream = stream
        self.session.order.current = getattr(stream, "number", DEFAULT)

    def _distributed(self) -> None:
        distributed = torch.distributed
        if not distributed.is_available():
            return
        init, barrier = distributed.init_process_group, distributed.barrier

        def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            if backend is None or "nccl" in str(backend):
                self.session.say("torch.distributed ran on gloo instead of NCCL.")
                backend = "gloo"
            kwargs.pop("device_id", None)
            return init(backend, *args, **kwargs)

        def waiting_barrier(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("device_ids", None)
            result = barrier(*args, **kwargs)
            self._wait(synchronize())
            return result

        for owner in (distributed, sys.modules.get("torch.distributed.distributed_c10d")):
            if owner is not None:
                self._on(owner, init_process_group=init_process_group, barrier=waiting_barrier)

    def _parallel(self) -> None:
        """Set what `torch.nn.DataParallel` moves tensors with: on one device, each is moved as a whole."""

        def onto(tensor: Any, devices: Any = (), *rest: Any) -> list[Any]:
            return [tensor.to(self.device, non_blocking=True)]  # as torch/csrc/cuda/comm.cpp does

        def gathered(tensors: Any, dim: int, destination: Any = None) -> Any:
            return torch.cat(list(tensors), dim).to("cpu" if destination == -1 else self.device)

        self.patches.set(torch._C, "_scatter", onto)
        self.patches.set(torch._C, "_broadcast", onto)
        self.patches.set(torch._C, "_broadcast_coalesced", lambda tensors, devices, size: [list(tensors)])
        self.patches.set(torch._C, "_gather", gathered)


def _answering(answer: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer


def _devices() -> int:
    """One; under torch.distributed one a rank, as each takes the device of its own number."""
    distributed = torch.distributed
    ranks = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    return int(max(1, ranks))


def _available() -> bool:
    return True


_available.pretended = True  # type: ignore[attr-defined]
"""By this `capture.device` knows that nothing can be recorded or guarded."""


def _place_of_first(values: Any) -> Any:
    """Return the simulated device where the first tensor among some values lies there; None otherwise."""
    first = next((value for value in values if isinstance(value, torch.Tensor)), None)
    return simulated().device if first is not None and tensor_memory.place_of(first) == DEVICE else None


def _device_of(value: Any) -> Any:
    """Return a device's number as a device; anything else as it is."""
    return torch.device(simulated().name, value) if isinstance(value, int) and not isinstance(value, bool) else value
