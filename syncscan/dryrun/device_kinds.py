"""The devices that a dry run can simulate, and what copies between them and the host do.

What isn't listed here is assumed to be as on CUDA, and the report says so. Sources, read, not measured here: the copies
of torch 2.13 (`copy_kernel_cuda` in aten/src/ATen/native/cuda/Copy.cu, aten/src/ATen/native/mps/operations/Copy.mm at
0320db10, EmptyTensor.cpp) and of intel/torch-xpu-ops (src/ATen/native/xpu/Copy.cpp at ab84f925). With
`non_blocking=True` types are converted on the device; what has other strides than its counterpart is gathered in, or
scattered from, memory of the host that isn't pinned, and so the call returns when the host's side of the copy is done.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from syncscan.dryrun.tensor_memory import PINNED
from syncscan.errors import UsageError

STAGED_BYTES = 1 << 20
"""Size up to which a pageable copy with non_blocking returns at once on CUDA: it did for 256 KB and waited for 16 MB
(H200, torch 2.11), as the driver stages small copies. The border between them isn't measured."""


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device, by torch's name of its type."""

    name: str
    pageable_is_late: bool = False
    """Whether a copy with non_blocking from or to pageable memory returns at once, whatever its size: the memory must
    be left alone until the copy is done."""
    has_float64: bool = True
    differs: tuple[str, ...] = ()
    """Sentences on what it does otherwise than CUDA."""

    def refuse(self, tensor: Any) -> None:
        """Raise torch's error for a tensor of a type that the device doesn't have."""
        import torch

        if not self.has_float64 and tensor.dtype == torch.float64:
            raise TypeError(_NO_FLOAT64)

    @property
    def device(self) -> Any:
        import torch

        return torch.device(self.name, 0)

    @property
    def module(self) -> Any:
        """The module of torch that answers for it: `torch.cuda`."""
        import torch

        return getattr(torch, self.name)

    def is_late(self, place: str | None, *, non_blocking: bool) -> bool:
        """Return whether a direct copy uses the host's side after its call, unless that waits."""
        return place == PINNED or (non_blocking and self.pageable_is_late)


_NO_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 "
    "instead."
)
_LATE = "A non_blocking copy from or to pageable memory doesn't wait: the memory must be left alone until it is done"
KINDS = {
    kind.name: kind
    for kind in (
        DeviceKind("cuda"),
        DeviceKind(
            "xpu",
            pageable_is_late=True,
            differs=(f"{_LATE} (torch-xpu-ops, Copy.cpp; wrong values on an Arc 140V: intel/torch-xpu-ops#5217).",),
        ),
        DeviceKind(
            "mps",
            pageable_is_late=True,
            has_float64=False,
            differs=(
                f"{_LATE} (torch, mps/operations/Copy.mm).",
                "A tensor of float64 raises a TypeError (torch, EmptyTensor.cpp).",
                "Each read of a number ends the command buffer and waits for all work before it (torch, "
                "mps/operations/Scalar.mm): loss.item() took 6 of the 10 ms of a step (CodefyUI/CodefyUI#435).",
            ),
        ),
    )
}
"""Name → kind."""

_simulated = [KINDS["cuda"]]


def simulated() -> DeviceKind:
    return _simulated[-1]


def simulate(kind: DeviceKind) -> None:
    """Choose the kind of the next dry run, until another one is chosen: there is one at a time."""
    _simulated[:] = [kind]


def kind_of(name: str) -> DeviceKind:
    if name not in KINDS:
        raise UsageError(f"No device '{name}' can be simulated.", f"Choose one of {', '.join(KINDS)}.")
    return KINDS[name]


def is_direct(source: Any, target: Any, *, outwards: bool) -> bool:
    """Return whether a copy with `non_blocking=True` reads, or `outwards` writes, the host tensor's own memory.

    The target has any shape that the source can be expanded to.
    """
    dense = target.is_contiguous() if outwards else source.is_contiguous() and source.numel() == target.numel()
    return dense or alike(source, target)


def alike(source: Any, target: Any) -> bool:
    """Return whether both have the same memory layout without gaps, so that bytes can be copied unchanged."""
    same = source.dtype == target.dtype and source.shape == target.shape and source.stride() == target.stride()
    order = sorted(range(source.dim()), key=lambda axis: -source.stride(axis))
    return bool(same and source.permute(order).is_contiguous())


MOST_BYTES = 1 << 16
"""Size of the largest tensor that gets a mark: what every layer reads is a number or some lengths."""


def mark_of(tensor: Any) -> str:
    """Return a mark of a tensor's values, type and shape.

    Empty where equal values say little: of flags and of zeros and ones, which many different things come to.
    """
    import torch

    try:
        return _mark(torch, tensor)
    except (RuntimeError, TypeError, NotImplementedError):  # a kind of tensor of its own, which holds no plain values
        return ""


def _mark(torch: Any, tensor: Any) -> str:
    if tensor.layout != torch.strided or tensor.dtype == torch.bool or tensor.is_quantized:
        return ""
    size = tensor.numel() * tensor.element_size()
    if not 0 < size <= MOST_BYTES:
        return ""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if bool(((plain == 0) | (plain == 1)).all()):
        return ""
    values = bytes(plain.reshape(-1).view(torch.uint8).numpy())
    return hashlib.blake2b(repr((str(plain.dtype), tuple(plain.shape))).encode() + values, digest_size=8).hexdigest()
