"""Make `torch.cuda` and related modules answer as on a machine with one GPU, until the patches are restored.

Of another kind of device `torch.xpu` or `torch.mps` does, with what it has of the same functions.

Whatever waits there is reported to the session: synchronizes of the device, of streams and events, `empty_cache`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from syncscan.dryrun import stand_ins, tensor_memory
from syncscan.dryrun.device_kinds import simulated
from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.recording import DryWait
from syncscan.dryrun.tensor_memory import DEVICE
from syncscan.dryrun.wait_table import synchronize
from syncscan.dryrun.work_order import DEFAULT

torch: Any = importlib.import_module("torch")
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


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Set everything that answers for the device."""
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
        """Replace all functions of the device's module."""
        self._answers()
        self._accelerator()
        if simulated().name == "cuda":
            self._cuda()
        else:
            self._on(torch.cuda, is_available=lambda: False)
            self._on(torch.backends.mps, is_available=lambda: simulated().name == "mps")
        self._streams()
        self._memory()
        self._random()
        self._distributed()
        self._parallel()

    def _on(self, owner: Any, **values: Any) -> None:
        for name, value in values.items():
            self.patches.replace(owner, name, value)

    def _answers(self) -> None:
        self._on(
            self.module,
            is_available=_available,
            device_count=_devices,
            _device_count_nvml=lambda: 1,
            current_device=lambda: 0,
            set_device=lambda device: None,
            _exchange_device=lambda device: 0,
            _maybe_exchange_device=lambda device: 0,
            init=lambda: None,
            _lazy_init=lambda: None,
            is_initialized=lambda: True,
            _initialized=True,
            _is_in_bad_fork=lambda: False,
            get_device_name=lambda device=None: PROPERTIES.name,
            get_device_capability=lambda device=None: (PROPERTIES.major, PROPERTIES.minor),
            get_device_properties=lambda device=None: PROPERTIES,
            get_arch_list=lambda: ["sm_90"],
            can_device_access_peer=lambda a, b: False,
            is_bf16_supported=lambda including_emulation=True: True,
            is_tf32_supported=lambda: True,
            synchronize=self._synchronize,
            device=stand_ins.device_context(),
            ipc_collect=lambda: None,
            set_sync_debug_mode=lambda mode: None,
            get_sync_debug_mode=lambda: 0,
            _sleep=lambda cycles: None,
            temperature=lambda device=None: 0,
            power_draw=lambda device=None: 0,
            clock_rate=lambda device=None: 0,
            utilization=lambda device=None: 0,
            is_current_stream_capturing=lambda: False,
        )

    def _accelerator(self) -> None:
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            self._on(
                accelerator,
                is_available=lambda: True,
                device_count=_devices,
                current_accelerator=lambda check_available=False: self.device,
                current_device_index=lambda: 0,
                current_device_idx=lambda: 0,
                set_device_index=lambda device: None,
                set_device_idx=lambda device: None,
                synchronize=self._synchronize,
                current_stream=lambda device=None: self.current,
                set_stream=self._set_stream,
                empty_cache=self._empty_cache,
            )
        self._on(torch._C, _get_accelerator=lambda check=None: self.device)
        self._on(
            torch._C,
            _accelerator_getDeviceIndex=lambda: 0,
            _accelerator_setDeviceIndex=lambda index: None,
            _accelerator_exchangeDevice=lambda index: 0,
            _accelerator_maybeExchangeDevice=lambda index: 0,
            _accelerator_synchronizeDevice=self._synchronize,
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
        marks = SimpleNamespace(
            rangePushA=lambda text: 0,
            rangePop=lambda: 0,
            rangeStartA=lambda text: 0,
            rangeEnd=lambda number: None,
            markA=lambda text: None,
        )
        self._on(torch.cuda.nvtx, _nvtx=marks)

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

    def _streams(self) -> None:
        @contextlib.contextmanager
        def on_stream(stream: Any) -> Iterator[None]:
            before = self.current
            self._set_stream(stream or before)
            try:
                yield
            finally:
                self._set_stream(before)

        for owner in (self.module, getattr(self.module, "streams", None)):
            self._on(owner, Stream=self.stream, Event=self.event, ExternalStream=self.stream)
        self._on(torch, Stream=self.stream, Event=self.event)
        self._on(
            self.module,
            stream=on_stream,
            StreamContext=on_stream,
            current_stream=lambda device=None: self.current,
            default_stream=lambda device=None: self.default,
            set_stream=self._set_stream,
        )

    def _memory(self) -> None:
        def numbers(device: Any = None) -> dict[str, int]:
            return _Zeros()

        for owner in (self.module, getattr(self.module, "memory", None)):
            self._on(
                owner,
                empty_cache=self._empty_cache,
                memory_stats=numbers,
                host_memory_stats=numbers,
                host_memory_stats_as_nested_dict=numbers,
                reset_accumulated_host_memory_stats=lambda: None,
                reset_peak_host_memory_stats=lambda: None,
                memory_stats_as_nested_dict=numbers,
                memory_allocated=lambda device=None: 0,
                max_memory_allocated=lambda device=None: 0,
                memory_reserved=lambda device=None: 0,
                max_memory_reserved=lambda device=None: 0,
                current_allocated_memory=lambda: 0,
                driver_allocated_memory=lambda: 0,
                recommended_max_memory=lambda: MEMORY,
                memory_cached=lambda device=None: 0,
                max_memory_cached=lambda device=None: 0,
                _record_memory_history=lambda *args, **kwargs: None,
                _dump_snapshot=lambda *args, **kwargs: None,
                _snapshot=lambda *args, **kwargs: {"segments": [], "device_traces": []},
                get_allocator_backend=lambda: "native",
                memory_usage=lambda device=None: 0,
                list_gpu_processes=lambda device=None: "a simulated GPU has no processes",
                memory_snapshot=lambda *args, **kwargs: [],
                memory_summary=lambda device=None, abbreviated=False: "a simulated GPU has no memory of its own",
                mem_get_info=lambda device=None: (MEMORY, MEMORY),
                reset_peak_memory_stats=lambda device=None: None,
                reset_accumulated_memory_stats=lambda device=None: None,
                reset_max_memory_allocated=lambda device=None: None,
                reset_max_memory_cached=lambda device=None: None,
                set_per_process_memory_fraction=lambda fraction, device=None: None,
            )

    def _random(self) -> None:
        for owner in (self.module, getattr(self.module, "random", None)):
            self._on(
                owner,
                manual_seed=lambda seed: None,
                manual_seed_all=lambda seed: None,
                seed=lambda: None,
                seed_all=lambda: None,
                initial_seed=torch.initial_seed,
                get_rng_state=lambda device=None: torch.random.default_generator.get_state(),
                get_rng_state_all=lambda: [torch.random.default_generator.get_state()],
                set_rng_state=lambda state, device=None: torch.random.default_generator.set_state(state),
                set_rng_state_all=lambda states: torch.random.default_generator.set_state(states[0]),
            )
        self.patches.set(torch, "Generator", stand_ins.generator())

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


class _Zeros(dict[str, int]):
    """Statistics of an allocator that never allocated."""

    def __missing__(self, key: str) -> int:
        return 0


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
