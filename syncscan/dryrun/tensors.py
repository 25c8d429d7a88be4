"""Make tensors and storages report, pin, copy, save and load as on a GPU."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import torch

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.device_kinds import simulated
from syncscan.dryrun.recorder import DryRunSession, TorchCall
from syncscan.dryrun.tensor_memory import DEVICE, HOST, PINNED
from syncscan.dryrun.wait_table import to_device, to_host
from syncscan.patches import Patches


def pretend(session: DryRunSession, patches: Patches) -> None:
    _tensors(session, patches)
    _storages(session, patches)


def _tensors(session: DryRunSession, patches: Patches) -> None:
    """Replace methods in a way that works in every thread, as in the loader's that pins."""
    tensor = torch.Tensor
    deep_copied, pickled, taken = tensor.__deepcopy__, tensor._reduce_ex_internal, tensor.__array__

    def pin_memory(tensor: Any, device: Any = None) -> Any:
        with tensor_memory.without_modes():
            place = tensor_memory.place_of(tensor)
            if place == PINNED:  # torch returns the tensor itself
                return tensor
            if place == DEVICE:
                kind = tensor.type().replace("torch.", f"torch.{simulated().name}.", 1)
                raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
            pinned = tensor.detach().clone()
            tensor_memory.put(pinned, PINNED)
        return pinned

    def record_stream(this: Any, stream: Any) -> None:
        with torch._C.DisableTorchFunction():
            session.order.record_stream(this, stream.number)

    def is_pinned(this: Any, device: Any = None) -> bool:
        with torch._C.DisableTorchFunction():
            return tensor_memory.place_of(this) == PINNED

    def deepcopy(tensor: Any, memo: Any) -> Any:
        with torch._C.DisableTorchFunction():
            place = tensor_memory.place_of(tensor)
        if place != DEVICE:
            read(tensor)
            return deep_copied(tensor, memo)
        with session.calling(TorchCall("deepcopy", moving=True)):  # it stays on the device
            copied = deep_copied(tensor, memo)
        with torch._C.DisableTorchFunction():
            tensor_memory.put(copied, DEVICE)
        return copied

    def read(this: Any) -> None:
        """Note that the host reads a tensor of its own, which dispatches nothing on a CPU."""
        with torch._C.DisableTorchFunction():
            if session.order.open_copies and this.layout == torch.strided and tensor_memory.place_of(this) != DEVICE:
                session.order.host_reads(this)

    def shallow(this: Any) -> Any:
        """Return a tensor of the same memory, as `copy.copy` does by what is pickled, which would be a read."""
        if type(this) is not tensor:
            return copy._reconstruct(this, None, *this.__reduce_ex__(4))  # type: ignore[attr-defined]
        shared = this.detach().requires_grad_(this.requires_grad)
        shared.__dict__.update(this.__dict__)
        return shared

    def reduced(this: Any, protocol: int) -> Any:
        read(this)
        return pickled(this, protocol)

    def as_array(this: Any, dtype: Any = None, *, copy: bool | None = None) -> Any:
        read(this)  # by C, which makes a plain array of it; `numpy.asarray` takes `Tensor.numpy` (shared_arrays)
        return taken(this, dtype).copy() if copy else taken(this, dtype)

    def shown(tensor: Any, *, tensor_contents: Any = None) -> str:
        modes = torch.utils._python_dispatch
        turning_off, modes._disable_current_modes = modes._disable_current_modes, contextlib.nullcontext
        try:
            return str(torch._tensor_str._str(tensor, tensor_contents=tensor_contents))
        finally:
            modes._disable_current_modes = turning_off

    patches.set(tensor, "pin_memory", pin_memory)
    patches.set(tensor, "is_pinned", is_pinned)
    patches.set(tensor, "record_stream", record_stream)
    patches.set(tensor, "__copy__", shallow)
    patches.set(tensor, "__deepcopy__", deepcopy)
    patches.set(tensor, "_reduce_ex_internal", reduced)
    patches.set(tensor, "__array__", as_array)
    patches.set(tensor, "__repr__", shown)


def _storages(session: DryRunSession, patches: Patches) -> None:
    """Set the methods that saving and loading use on storages."""
    storage_kind = torch.UntypedStorage
    tag, moved = torch.serialization.location_tag, storage_kind.to

    def location_tag(storage: Any) -> Any:
        if tensor_memory.of_storage(_untyped(storage)) != DEVICE:
            return tag(storage)
        session.wait(to_host("aten::to", "aten::_to_copy", "aten::copy_", size=storage.nbytes()))
        return str(simulated().device)

    def onto(storage: Any) -> Any:
        if tensor_memory.of_storage(storage) == DEVICE:
            return storage
        copy = storage.clone()
        session.wait(to_device(size=storage.nbytes()))
        tensor_memory.note(copy, DEVICE)
        return copy

    def to(storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
        if torch.device(device).type == simulated().name:
            return onto(storage)
        return moved(storage, device=device, non_blocking=non_blocking)

    def cpu(storage: Any) -> Any:
        if tensor_memory.of_storage(storage) != DEVICE:
            return from_cuda(storage)
        session.wait(to_host(size=storage.nbytes()))
        made = storage.clone()
        tensor_memory.note(made, HOST)
        return made

    from_cuda = storage_kind.cpu
    patches.replace(torch.serialization, "location_tag", location_tag)
    patches.set(storage_kind, "to", to)
    patches.set(storage_kind, "cpu", cpu)
    patches.set(storage_kind, "cuda", lambda storage, device=None, non_blocking=False: onto(storage))


def _untyped(storage: Any) -> Any:
    return getattr(storage, "_untyped_storage", storage)
