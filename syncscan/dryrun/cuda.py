"""A session goes in, `torch.cuda` and its like answer as on a machine with one GPU, until the patches are restored.

What waits there tells the session: synchronises of the device, of streams and events, `empty_cache`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from syncscan.dryrun import places, stand_ins
from syncscan.dryrun.patches import Patches
from syncscan.dryrun.places import DEVICE, HOST, PINNED
from syncscan.dryrun.recording import Wait
from syncscan.dryrun.session import Session
from syncscan.dryrun.waits import synchronise, to_device, to_host

torch: Any = importlib.import_module("torch")
CUDA = torch.device("cuda", 0)
MEMORY = 80 * 1024**3
"""Bytes of the pretended device."""
PROPERTIES = SimpleNamespace(
    name="pretended GPU",
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


def pretend(session: Session, patches: Patches) -> None:
    """Set everything that answers for the device."""
    _Device(session, patches).set_all()


class _Device:
    def __init__(self, session: Session, patches: Patches) -> None:
        self.session, self.patches = session, patches
        self.stream, self.event = stand_ins.stream_and_event(session)
        self.current = self.stream()
        self.default = self.current
        self.questions: list[tuple[Any, str, Any, Any]] = []

    def set_all(self) -> None:
        """All of it."""
        self._answers()
        self._streams()
        self._memory()
        self._random()
        self._autocast()
        self._tensors()
        self._storages()
        self._hooks()
        self._optimizers()
        self._compilers()
        self._overrides()
        self._distributed()

    def _on(self, owner: Any, **values: Any) -> None:
        for name, value in values.items():
            self.patches.replace(owner, name, value)

    def _answers(self) -> None:
        cuda = torch.cuda
        self._on(
            cuda,
            is_available=lambda: True,
            device_count=_devices,
            _device_count_nvml=lambda: 1,
            current_device=lambda: 0,
            set_device=lambda device: None,
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
            utilization=lambda device=None: 0,
            is_current_stream_capturing=lambda: False,
        )
        self._on(torch._C, _cuda_getDeviceCount=lambda: 1, _cuda_isInBadFork=lambda: False)
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            self._on(
                accelerator,
                is_available=lambda: True,
                device_count=_devices,
                current_accelerator=lambda check_available=False: torch.device("cuda"),
                current_device_index=lambda: 0,
                current_device_idx=lambda: 0,
                set_device_index=lambda device: None,
                set_device_idx=lambda device: None,
                synchronize=self._synchronize,
                current_stream=lambda device=None: self.current,
                set_stream=self._set_stream,
                empty_cache=self._empty_cache,
            )
        self._on(torch._C, _get_accelerator=lambda check=None: torch.device("cuda"))
        self._on(
            torch._C,
            _accelerator_getDeviceIndex=lambda: 0,
            _accelerator_setDeviceIndex=lambda index: None,
            _accelerator_exchangeDevice=lambda index: 0,
            _accelerator_maybeExchangeDevice=lambda index: 0,
            _accelerator_synchronizeDevice=self._synchronize,
        )
        parse = torch._C._nn._parse_to
        self._on(torch._C._nn, _parse_to=lambda *args, **kwargs: parse(*map(_named, args), **kwargs))

    def _synchronize(self, device: Any = None) -> None:
        self._wait(synchronise(call="cudaDeviceSynchronize"))

    def _empty_cache(self) -> None:
        self._wait(synchronise(call="cudaFree"))

    def _wait(self, wait: Wait) -> None:
        self.session.recording.call()
        self.session.wait(wait)

    def _set_stream(self, stream: Any) -> None:
        self.current = stream

    def _streams(self) -> None:
        @contextlib.contextmanager
        def on_stream(stream: Any) -> Iterator[None]:
            before, self.current = self.current, stream or self.current
            try:
                yield
            finally:
                self.current = before

        for owner in (torch.cuda, torch.cuda.streams):
            self._on(owner, Stream=self.stream, Event=self.event, ExternalStream=self.stream)
        self._on(torch, Stream=self.stream, Event=self.event)
        self._on(
            torch.cuda,
            stream=on_stream,
            StreamContext=on_stream,
            current_stream=lambda device=None: self.current,
            default_stream=lambda device=None: self.default,
            set_stream=self._set_stream,
            **stand_ins.legacy_types(),
            CUDAGraph=stand_ins.graph(self.session),
            graph=stand_ins.capture(self.session),
        )
        marks = SimpleNamespace(
            rangePushA=lambda text: 0,
            rangePop=lambda: 0,
            rangeStartA=lambda text: 0,
            rangeEnd=lambda number: None,
            markA=lambda text: None,
        )
        self._on(torch.cuda.nvtx, _nvtx=marks)
        self._on(torch.cuda.graphs, CUDAGraph=torch.cuda.CUDAGraph, graph=torch.cuda.graph)

    def _memory(self) -> None:
        def numbers(device: Any = None) -> dict[str, int]:
            return _Zeros()

        for owner in (torch.cuda, torch.cuda.memory):
            self._on(
                owner,
                empty_cache=self._empty_cache,
                memory_stats=numbers,
                memory_stats_as_nested_dict=numbers,
                memory_allocated=lambda device=None: 0,
                max_memory_allocated=lambda device=None: 0,
                memory_reserved=lambda device=None: 0,
                max_memory_reserved=lambda device=None: 0,
                memory_cached=lambda device=None: 0,
                max_memory_cached=lambda device=None: 0,
                memory_snapshot=lambda *args, **kwargs: [],
                memory_summary=lambda device=None, abbreviated=False: "a pretended GPU has no memory of its own",
                mem_get_info=lambda device=None: (MEMORY, MEMORY),
                reset_peak_memory_stats=lambda device=None: None,
                reset_accumulated_memory_stats=lambda device=None: None,
                reset_max_memory_allocated=lambda device=None: None,
                reset_max_memory_cached=lambda device=None: None,
                set_per_process_memory_fraction=lambda fraction, device=None: None,
            )

    def _random(self) -> None:
        for owner in (torch.cuda, torch.cuda.random):
            self._on(
                owner,
                manual_seed=lambda seed: None,
                manual_seed_all=lambda seed: None,
                seed=lambda: None,
                seed_all=lambda: None,
                initial_seed=torch.initial_seed,
                get_rng_state=lambda device="cuda": torch.random.default_generator.get_state(),
                get_rng_state_all=lambda: [torch.random.default_generator.get_state()],
                set_rng_state=lambda state, device="cuda": torch.random.default_generator.set_state(state),
                set_rng_state_all=lambda states: torch.random.default_generator.set_state(states[0]),
            )
        self.patches.set(torch, "Generator", stand_ins.generator())

    def _autocast(self) -> None:
        autocast = torch.amp.autocast_mode.autocast
        init = autocast.__init__

        @functools.wraps(init)
        def on_cpu(this: Any, device_type: str, dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
            if device_type == "cuda":
                device_type, dtype = "cpu", dtype or torch.float16
                if enabled and dtype == torch.float16:
                    dtype = torch.bfloat16
                    self.session.say("Autocast to float16 ran in bfloat16, which a CPU computes far faster.")
            init(this, device_type, dtype, enabled, **kwargs)

        self.patches.set(autocast, "__init__", on_cpu)
        for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype"):
            self._on(torch, **{name: _for_cpu(getattr(torch, name))})

    def _tensors(self) -> None:
        """Methods that work in every thread, as the loader's that pins does."""
        tensor = torch.Tensor
        deep_copied = tensor.__deepcopy__

        def pin_memory(this: Any, device: Any = None) -> Any:
            with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
                pinned = this.detach().clone()
                places.put(pinned, PINNED)
            return pinned

        def is_pinned(this: Any, device: Any = None) -> bool:
            with torch._C.DisableTorchFunction():
                return places.place_of(this) == PINNED

        def deepcopy(this: Any, memo: Any) -> Any:
            made = deep_copied(this, memo)
            with torch._C.DisableTorchFunction():
                if places.place_of(this) == DEVICE:
                    places.put(made, DEVICE)
            return made

        def shown(this: Any, *, tensor_contents: Any = None) -> str:
            modes = torch.utils._python_dispatch
            turning_off, modes._disable_current_modes = modes._disable_current_modes, contextlib.nullcontext
            try:
                return str(torch._tensor_str._str(this, tensor_contents=tensor_contents))
            finally:
                modes._disable_current_modes = turning_off

        self.patches.set(tensor, "pin_memory", pin_memory)
        self.patches.set(tensor, "is_pinned", is_pinned)
        self.patches.set(tensor, "record_stream", lambda this, stream: None)
        self.patches.set(tensor, "__deepcopy__", deepcopy)
        self.patches.set(tensor, "__repr__", shown)

    def _storages(self) -> None:
        """What saving and loading ask of storages."""
        session, storage_kind = self.session, torch.UntypedStorage
        tag, moved, to_cuda = torch.serialization.location_tag, storage_kind.to, storage_kind.cuda

        def location_tag(storage: Any) -> Any:
            if places.of_storage(_untyped(storage)) != DEVICE:
                return tag(storage)
            session.wait(to_host("aten::to", "aten::_to_copy", "aten::copy_", size=storage.nbytes()))
            return "cuda:0"

        def onto(storage: Any) -> Any:
            if places.of_storage(storage) == DEVICE:
                return storage
            made = storage.clone()
            session.wait(to_device(size=storage.nbytes()))
            places.note(made, DEVICE)
            return made

        def to(storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
            if torch.device(device).type == "cuda":
                return onto(storage)
            return moved(storage, device=device, non_blocking=non_blocking)

        def cpu(storage: Any) -> Any:
            if places.of_storage(storage) != DEVICE:
                return from_cuda(storage)
            session.wait(to_host(size=storage.nbytes()))
            made = storage.clone()
            places.note(made, HOST)
            return made

        from_cuda = storage_kind.cpu
        self._on(torch.serialization, location_tag=location_tag)
        self.patches.set(storage_kind, "to", to)
        self.patches.set(storage_kind, "cpu", cpu)
        self.patches.set(storage_kind, "cuda", lambda storage, device=None, non_blocking=False: onto(storage))
        del to_cuda

    def _hooks(self) -> None:
        """What C++ calls back in the middle of a function is the program's code again."""
        hooks = torch.autograd.graph.saved_tensors_hooks
        init = hooks.__init__

        @functools.wraps(init)
        def with_modes(this: Any, pack_hook: Any, unpack_hook: Any) -> None:
            init(this, self._in_program(pack_hook), self._in_program(unpack_hook))

        self.patches.set(hooks, "__init__", with_modes)
        self._custom_functions()

    def _custom_functions(self) -> None:
        """A function of the program's own has a node of its own, whose backward leads to where it was applied."""
        session, function = self.session, torch.autograd.function.Function
        apply, number = vars(function)["apply"].__func__, torch._C._autograd._get_sequence_nr

        @functools.wraps(apply)
        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            session.recording.call()
            begin, first = session.recording.now, number()
            result = apply(cls, *args, **kwargs)
            if number() != first:
                session.followed(cls.__name__, begin, first, first + 1)
            return result

        self.patches.set(function, "apply", classmethod(applied))

    def _in_program(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        functions = importlib.import_module("syncscan.dryrun.functions").Functions

        @functools.wraps(hook)
        def called(*args: Any) -> Any:
            on = any(isinstance(mode, functions) for mode in torch.overrides._get_current_function_mode_stack())
            with contextlib.nullcontext() if on else functions(self.session):
                return hook(*args)

        return called

    def _optimizers(self) -> None:
        grouped = torch._C._group_tensors_by_device_and_dtype

        def group(lists: Any, with_indices: bool = False) -> Any:
            made = grouped(lists, with_indices)
            return {(_device_of(tensors), dtype): (tensors, at) for (_, dtype), (tensors, at) in made.items()}

        self._on(torch._C, _group_tensors_by_device_and_dtype=group)

    def _compilers(self) -> None:
        session = self.session

        def eager(model: Any = None, **options: Any) -> Any:
            session.say("torch.compile was asked for and left out: what it would compile ran eagerly.")
            return model if model is not None else lambda function: function

        self._on(torch, compile=eager)

        scripted = torch.jit.script

        @functools.wraps(scripted)
        def script(*args: Any, **kwargs: Any) -> Any:
            with self._own_overrides():  # the compiler knows torch's own questions by identity
                return scripted(*args, **kwargs)

        self._on(torch.jit, script=script)

    @contextlib.contextmanager
    def _own_overrides(self) -> Iterator[None]:
        """Torch's own questions whether its functions are overridden, for as long as something is compiled."""
        for module, name, theirs, _ in self.questions:
            setattr(module, name, theirs)
        try:
            yield
        finally:
            for module, name, _, ours in self.questions:
                setattr(module, name, ours)

    def _overrides(self) -> None:
        """Torch's own Python functions run as they are, so that the mode sees what they call, and not them."""
        kinds = {
            name: _only_for_subclasses(getattr(torch.overrides, name), several)
            for name, several in (
                ("has_torch_function", True),
                ("has_torch_function_unary", False),
                ("has_torch_function_variadic", False),
            )
        }
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").split(".")[0] == "torch" and module is not torch._C:
                for name, value in kinds.items():
                    if name in getattr(module, "__dict__", {}):
                        self.questions.append((module, name, getattr(module, name), value))
                        self.patches.set(module, name, value)

    def _distributed(self) -> None:
        distributed = torch.distributed
        if not distributed.is_available():
            return
        init, barrier = distributed.init_process_group, distributed.barrier

        def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            if backend is None or "nccl" in str(backend):
                self.session.say("torch.distributed ran on gloo in the place of NCCL.")
                backend = "gloo"
            kwargs.pop("device_id", None)
            return init(backend, *args, **kwargs)

        def waiting_barrier(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("device_ids", None)
            result = barrier(*args, **kwargs)
            self._wait(synchronise())
            return result

        for owner in (distributed, sys.modules.get("torch.distributed.distributed_c10d")):
            if owner is not None:
                self._on(owner, init_process_group=init_process_group, barrier=waiting_barrier)


class _Zeros(dict[str, int]):
    """Statistics of an allocator that never allocated."""

    def __missing__(self, key: str) -> int:
        return 0


def _devices() -> int:
    """One; under torch.distributed one a rank, as each takes the device of its own number."""
    distributed = torch.distributed
    ranks = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    return int(max(1, ranks))


def _named(value: Any) -> Any:
    """A device's number as a device."""
    return torch.device("cuda", value) if isinstance(value, int) and not isinstance(value, bool) else value


def _untyped(storage: Any) -> Any:
    return getattr(storage, "_untyped_storage", storage)


def _device_of(lists: Any) -> Any:
    first = next((tensor for tensor in lists[0] if tensor is not None), None)
    with torch._C.DisableTorchFunction():
        on_device = first is not None and places.place_of(first) == DEVICE
    return CUDA if on_device else torch.device("cpu")


def _for_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs and function.__name__ == "is_autocast_enabled":
            return function("cpu")
        return function(*("cpu" if arg == "cuda" else arg for arg in args), **kwargs)

    return asked


def _only_for_subclasses(original: Callable[..., bool], several: bool) -> Callable[..., bool]:
    """The question whether torch's functions are overridden, for the arguments alone and not for modes."""
    plain = (torch.Tensor, torch.nn.Parameter, type(None), bool, int, float)

    def overridden(*args: Any) -> bool:
        if several and args:
            args = tuple(args[0])
        others = [arg for arg in args if type(arg) not in plain and hasattr(type(arg), "__torch_function__")]
        return bool(others) and bool(original(others) if several else original(*others[:1]))

    return overridden
