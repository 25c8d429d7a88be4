"""Answer torch calls that name a device for the simulated one.

Every call of torch's functions and tensors' methods is intercepted; calls without a device run unchanged, known to the
session by their names.

Imported where a session begins: it needs torch to be defined.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from syncscan.dryrun import tensor_memory, wait_table
from syncscan.dryrun.device_kinds import KINDS, is_direct, mark_of, simulated
from syncscan.dryrun.dispatch_mode import in_float
from syncscan.dryrun.recorder import DryRunSession, TorchCall, Unsaid
from syncscan.dryrun.tensor_memory import DEVICE, HOST, PINNED
from syncscan.dryrun.watched_arrays import WatchedArray, plain, tensor_of, watch

_Tensor = torch.Tensor
_device_module: Any = importlib.import_module("torch.utils._device")
_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_FACTORIES = frozenset(f.__name__ for f in _device_module._device_constructors())
_WITH_DRIVER = frozenset({"linalg_svd", "linalg_svdvals"})
_NUMBERS = frozenset("__float__ __int__ __complex__ __index__".split())
"""Methods that read a number; called by `torch.Tensor([x])` for its elements, they dispatch nothing on a CPU."""
_PARSED = "_parse_to"
"""The function by which `Module.to` reads its arguments: it names a device and makes no tensor."""
_COPIES_DATA = frozenset("tensor as_tensor asarray new_tensor".split())
_DETACHED = frozenset(("tensor", "new_tensor"))
"""Those whose result is detached last (torch/csrc/utils/tensor_new.cpp), unlike that of a list as an index.
"""


def _of_half_waves(name: str, args: Any) -> bool:
    """Return whether this is an FFT in half precision, which torch asks a device for before any op (_fft.cpp)."""
    half = (torch.float16, torch.complex32)
    own = args[0] if args and name.startswith("fft_") else None
    return isinstance(own, _Tensor) and own.dtype in half and _on_device(args)


def is_device(value: Any) -> bool:
    """Return whether this names the simulated device: `"cuda"`, `torch.device("cuda:0")`, a number."""
    if isinstance(value, str):
        return value.startswith(simulated().name)
    if isinstance(value, torch.device):
        return bool(value.type == simulated().name)
    return isinstance(value, int) and not isinstance(value, bool)


class Functions(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Stands between the program and torch."""

    def __init__(self, session: DryRunSession) -> None:
        super().__init__()
        self._session = session

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            answer = _PROPERTIES.get(getattr(getattr(func, "__self__", None), "__name__", ""))
            if answer is not None and tensor_memory.place_of(args[0]) == DEVICE:
                return answer(args[0])
            return func(*args, **kwargs)
        if self._session.rounds is not None:
            self._session.look(sys._getframe(1), name)
        if (
            func is torch.device and len(args) == 1 and isinstance(args[0], int)
        ):  # torch asks the accelerator for its type
            return torch.device(simulated().name, args[0])
        special = _METHODS.get(name)
        if special is not None and args and isinstance(args[0], _Tensor):
            return special(self, func, args, kwargs)
        if name == _PARSED:
            return func(*args, **kwargs)
        if kwargs.get("device") is not None or kwargs.get("pin_memory") or name in _FACTORIES:
            return self._run_factory(func, name, args, dict(kwargs))
        if name in ("new_tensor",):
            return self._run_factory(func, name, args, dict(kwargs))
        return self.run(func, name, args, kwargs, Unsaid)

    def run(self, func: Any, name: str, args: Any, kwargs: Any, place: Any, **call: Any) -> Any:
        """Run a call that the session knows of meanwhile."""
        session = self._session
        composed = wait_table.COMPOSED.get(name)
        if composed is not None:
            call["quiet"] = True
        recording, calls = session.recording, session.calls
        if not calls:
            recording.call()
        begin, first = recording.now, _sequence()
        if composed is not None and _on_device(args):
            session.wait(*composed(args, kwargs))
        if name in _WITH_DRIVER and "driver" in kwargs:  # CUDA's choice of a library
            kwargs = {key: value for key, value in kwargs.items() if key != "driver"}
        running = TorchCall(name, args, kwargs, place, **call)
        calls.append(running)
        try:
            result = in_float(func, args, kwargs) if _of_half_waves(name, args) else func(*args, **kwargs)
            if name in _NUMBERS and not running.waited and _on_device(args):
                session.wait(wait_table.item())
            if name in wait_table.ON_HOST:
                tensor_memory.put(result[wait_table.ON_HOST[name]], HOST)
            return result
        except RuntimeError as error:
            if name == "repeat_interleave" and _OTHER_SIZE in str(error) and _on_device(args):
                raise RuntimeError(_PROMISED) from error
            raise
        finally:
            calls.pop()
            last = _sequence()
            if last != first and last - first < 10_000:
                session.followed(f"aten::{name}", begin, first, last)

    def _run_factory(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Run a call that makes a tensor, and note where that lies."""
        if args and name in _COPIES_DATA and isinstance(args[0], WatchedArray):
            shared = name in ("as_tensor", "asarray")
            args = (tensor_of(args[0]) if shared else plain(args[0]), *args[1:])
        device = kwargs.get("device")
        if device is None and name in _FACTORIES:
            device = _device_module.CURRENT_DEVICE
        pin = bool(kwargs.pop("pin_memory", False))
        like = args[0] if args and isinstance(args[0], _Tensor) else None
        if device is None and not pin:
            if name in _COPIES_DATA and like is None and self._read_elements(args):
                for op in ("aten::to", "aten::lift_fresh", *(("aten::detach_",) if name in _DETACHED else ())):
                    self._session.recording.op(op)
            if name in _COPIES_DATA and like is not None and tensor_memory.place_of(like) == DEVICE:
                return self._constructed(func, name, args, kwargs, DEVICE, like)
            return self.run(func, name, args, kwargs, Unsaid)
        if device is not None and not is_device(device) and torch.device(device).type not in ("cpu", simulated().name):
            return self.run(func, name, args, kwargs, Unsaid)
        place = PINNED if pin else DEVICE if is_device(device) else HOST
        if device is not None:
            kwargs["device"] = "cpu"
        if name in _COPIES_DATA:
            return self._constructed(func, name, args, kwargs, place, like)
        return _place_result(self.run(func, name, args, kwargs, place), place)

    def _constructed(self, func: Any, name: str, args: Any, kwargs: Any, place: str | None, like: Any) -> Any:
        """Run a constructor that copies Python's or another tensor's values."""
        if name != "new_tensor" and like is not None:
            if name == "tensor" or tensor_memory.place_of(like) != place:
                dtype = kwargs.get("dtype") or like.dtype
                source = like.detach() if name == "tensor" else like
                return self.move(source, place, dtype, copy=True)
            return self.run(func, name, args, kwargs, place)
        if isinstance(args[0], _Tensor) and name == "new_tensor":
            kwargs.setdefault("device", "cpu")
        if place == DEVICE:
            self._session.recording.call()
        if not self._read_elements(args[1:] if name == "new_tensor" else args) and place == DEVICE:
            self._session.recording.op("aten::empty")
        result = self.run(func, name, args, kwargs, HOST)
        if place != DEVICE:
            return _place_result(result, place) if place else result
        if name in ("as_tensor", "asarray"):
            with self._session.calling(TorchCall(name, place=HOST, moving=True)):
                result = result.clone()
        self._session.wait(*_if_any(result, wait_table.to_device(size=result.numel() * result.element_size())))
        self._session.recording.op("aten::lift_fresh")
        if name in _DETACHED:
            self._session.recording.op("aten::detach_")
        return _place_result(result, DEVICE)

    def _read_elements(self, data: Any) -> bool:
        """Read each device tensor in the lists that a constructor is given, which dispatches nothing on a CPU.

        Returns whether there are any: memory is made for them, and then one after the other is read.
        """
        elements = list(_device_tensors(data))
        if elements:
            self._session.recording.op("aten::empty")
        self._session.wait(*(wait_table.item() for _ in elements))
        return bool(elements)

    def move(
        self,
        tensor: Any,
        place: str | None,
        dtype: Any = None,
        *,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """Return a tensor on another side, or of another type on its own side, as `Tensor.to` gives it."""
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            tensor = tensor.data
        options = {"dtype": dtype or tensor.dtype}
        if memory_format is not None:
            options["memory_format"] = memory_format
        origin = tensor_memory.place_of(tensor)
        if (origin == DEVICE) == (place == DEVICE):
            return self.run(torch.Tensor.to, "to", (tensor,), {**options, "copy": copy}, Unsaid)
        self._session.recording.call()
        goal = PINNED if place != DEVICE and non_blocking else place  # torch pins what is read back asynchronously
        result = self.run(torch.Tensor.to, "to", (tensor,), {**options, "copy": True}, HOST, moving=True)
        direct = is_direct(tensor, result, outwards=origin == DEVICE)
        copy_waits = tuple(wait_table.copy((origin, tensor), goal, *_TO, non_blocking=non_blocking, direct=direct))
        self._note_copy(tensor, result, origin, goal, direct or not non_blocking, non_blocking)
        self._session.seen += 1
        if copy_waits:
            value = self._mark(tensor) if origin == DEVICE else ""
            self._session.wait(*(replace(wait, value=value) for wait in copy_waits))
        else:
            self._session.recording.op("aten::to")
        return _place_result(result, goal)

    def _note_copy(
        self, tensor: Any, result: Any, origin: str | None, goal: str | None, direct: bool, non_blocking: bool
    ) -> None:
        """Tell the order of work of a copy between host and device, which the host may wait for afterwards."""
        order = self._session.order
        late = direct and simulated().is_late(goal if origin == DEVICE else origin, non_blocking=non_blocking)
        with tensor_memory.without_modes():
            if late and origin == DEVICE:
                order.copy_out(tensor, result)
            elif origin == DEVICE:
                order.device_work(reads=(tensor,))
            else:
                if order.open_copies and not late:
                    order.host_reads(tensor)
                order.device_work(allocated=(result,))
                if late:
                    order.copy_in(tensor)

    def _mark(self, tensor: Any) -> str:
        """Return a mark of a tensor's values, and record nothing of the reading."""
        with tensor_memory.without_modes():
            return mark_of(tensor)

    # methods that name a device

    def to(self, func: Any, args: Any, kwargs: Any) -> Any:
        tensor, *positional = args
        given = dict(kwargs)
        place: Any = Unsaid
        dtype = given.pop("dtype", None)
        if "tensor" in given:
            positional.insert(0, given.pop("tensor"))
        if positional and isinstance(positional[0], _Tensor):
            other = positional.pop(0)
            place, dtype = tensor_memory.place_of(other), other.dtype
        elif positional and not isinstance(positional[0], torch.dtype):
            place = _place_named(positional.pop(0))
            if positional and (positional[0] is None or isinstance(positional[0], torch.dtype)):
                dtype = positional.pop(0)
        elif positional:
            dtype = positional.pop(0)
        if given.get("device") is not None:
            place = _place_named(given["device"])
        given.pop("device", None)
        for name, value in zip(("non_blocking", "copy"), positional, strict=False):
            given[name] = value
        origin = tensor_memory.place_of(tensor)
        if place is Unsaid or (place is None and origin != DEVICE):
            place = origin
        return self.move(tensor, place, dtype, **given)

    def type_as(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Stand in for `Tensor.type_as`, which also moves to the other tensor's device."""
        other = args[1] if len(args) > 1 else kwargs["other"]
        return self.to(func, (args[0], other), {})

    def cuda(self, func: Any, args: Any, kwargs: Any) -> Any:
        options = dict(zip(("device", "non_blocking"), args[1:], strict=False)) | kwargs
        options.pop("device", None)
        return self.move(args[0], DEVICE, **options)

    def cpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        if tensor_memory.place_of(args[0]) != DEVICE:
            return func(*args, **kwargs)
        return self.move(args[0], HOST, **kwargs)

    def type(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Stand in for `Tensor.type`, which reports or changes the type and the device."""
        tensor, target = args[0], (args[1] if len(args) > 1 else kwargs.get("dtype"))
        if target is None:
            of_type = str(func(tensor))
            on_device = tensor_memory.place_of(tensor) == DEVICE
            return of_type.replace("torch.", f"torch.{simulated().name}.", 1) if on_device else of_type
        if isinstance(target, torch.dtype):
            return self.run(func, "type", args, kwargs, Unsaid)
        name = target if isinstance(target, str) else f"{target.__module__}.{target.__name__}"
        dtype = _dtype_of(name)
        return self.move(tensor, DEVICE if f".{simulated().name}." in name else HOST, dtype)

    def numpy(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Stand in for `Tensor.numpy`, which only a tensor on the host has."""
        if tensor_memory.place_of(args[0]) != DEVICE:
            array = func(*args, **kwargs)
            return self._watched(array, args[0]) if tensor_memory.place_of(args[0]) == PINNED else array
        if not kwargs.get("force"):
            raise TypeError(
                f"can't convert {simulated().device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                "to host memory first."
            )
        return self.move(args[0].detach(), HOST).numpy(force=True)

    def tolist(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Stand in for `Tensor.tolist`, which copies all values, and dispatches nothing on a CPU."""
        tensor = args[0]
        if self._session.order.open_copies and tensor_memory.place_of(tensor) != DEVICE:
            self._host_reads(tensor)
        if tensor_memory.place_of(tensor) == DEVICE:
            recording = self._session.recording
            recording.call()
            recording.op("aten::resolve_conj")
            recording.op("aten::resolve_neg")
            self._session.seen += 1
            size = tensor.numel() * tensor.element_size()
            self._session.wait(*_if_any(tensor, replace(wait_table.to_host(size=size), value=self._mark(tensor))))
        with self._session.calling(TorchCall("tolist", place=HOST, moving=True)):
            return func(*args, **kwargs)

    def _watched(self, array: Any, tensor: Any) -> Any:
        """Return an array of a tensor's memory that tells the order of work of its uses."""
        return watch(array, tensor, self._array_used)

    def _array_used(self, tensor: Any, part: Any, written: bool) -> None:
        with torch._C.DisableTorchFunction():
            self._session.order.array_used(tensor, part, written)

    def _host_reads(self, tensor: Any) -> None:
        with torch._C.DisableTorchFunction():
            self._session.order.host_reads(tensor)

    def get_device(self, func: Any, args: Any, kwargs: Any) -> Any:
        return 0 if tensor_memory.place_of(args[0]) == DEVICE else func(*args, **kwargs)


_OTHER_SIZE = "allocated size does not match"
"""Text of torch's error on a CPU for an `output_size` that isn't the sum of the repeats (Repeat.cpp)."""
_PROMISED = (
    "repeat_interleave: output_size is not the sum of the repeats. On a GPU the call returns, its kernel stops with a "
    "device-side assert, and a later wait raises 'CUDA error: device-side assert triggered', often at another line."
)
"""Source: ATen/native/cuda/Repeat.cu, compute_cuda_kernel, which asserts it."""
_TO = ("aten::to", "aten::_to_copy", "aten::copy_")

_PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "device": lambda tensor: simulated().device,
    **{f"is_{name}": lambda tensor, name=name: simulated().name == name for name in KINDS},  # type: ignore[misc]
    "is_cpu": lambda tensor: False,
}
_METHODS: dict[str, Callable[[Functions, Any, Any, Any], Any]] = {
    **{name: getattr(Functions, name) for name in ("to", "type_as", "cpu", "type", "numpy", "tolist", "get_device")},
    **dict.fromkeys(("cuda", "xpu"), Functions.cuda),
}


def _device_tensors(data: Any) -> Iterator[Any]:
    for value in data:
        if isinstance(value, list | tuple):
            if value and not isinstance(value[0], int | float):
                yield from _device_tensors(value)
        elif isinstance(value, _Tensor) and tensor_memory.place_of(value) == DEVICE:
            yield value


def _place_named(value: Any) -> Any:
    """Return the place of a device by any of its names; `Unsaid` for None."""
    return Unsaid if value is None else DEVICE if is_device(value) else HOST


def _place_result(result: Any, place: str | None) -> Any:
    if isinstance(result, _Tensor):
        if place == DEVICE:
            simulated().refuse(result)
        tensor_memory.put(result, place)
    elif isinstance(result, list | tuple):
        for one in result:
            _place_result(one, place)
    return result


def _on_device(values: Any) -> bool:
    return any(isinstance(value, _Tensor) and tensor_memory.place_of(value) == DEVICE for value in values)


def _if_any(tensor: Any, wait: Any) -> Any:
    """Return a tuple of the wait for a tensor's copy, empty where the tensor has no values."""
    return (wait,) if tensor.numel() else ()


def _dtype_of(name: str) -> Any:
    """Return the type of values of an old-style tensor type: `torch.cuda.FloatTensor`."""
    short = name.rsplit(".", 1)[-1].removesuffix("Tensor")
    names = {"Byte": "uint8", "Char": "int8", "BFloat16": "bfloat16"}
    return getattr(torch, names.get(short, short.lower()), torch.get_default_dtype())
