"""Where the memory of tensors lies (on the device, pinned or pageable on the host), and how the device uses it.

The notes are kept at the storage, which all views of a tensor share and torch keeps one Python object of: they are
found without a registry, and die with the values.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from syncscan.dryrun.recording import Frame

DEVICE, PINNED, HOST = "device", "pinned", None
"""Simulated memories; `HOST` is pageable memory, the default of any tensor."""

WITHOUT_STORAGE = (NotImplementedError, RuntimeError, ValueError)
"""Errors that torch raises if a tensor has no storage of its own; ValueError for the parameters of a lazy module."""
_NOTE = "_syncscan_place"


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """See tensors as they are on the CPU, and let none of torch's modes see what is done to them."""
    import torch

    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        yield


def place_of(tensor: Any) -> str | None:
    """Return the simulated memory of a tensor; call it with torch's modes off."""
    try:
        return getattr(tensor.untyped_storage(), _NOTE, HOST)
    except WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        return HOST if inner is None else place_of(inner)


def put(tensor: Any, place: str | None) -> None:
    try:
        storage = tensor.untyped_storage()
    except WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        if inner is not None:
            put(inner, place)
        return
    note(storage, place)


def of_storage(storage: Any) -> str | None:
    return getattr(storage, _NOTE, HOST)


def note(storage: Any, place: str | None) -> None:
    setattr(storage, _NOTE, place)


def same_memory(a: Any, b: Any) -> bool:
    """Return whether two tensors are the same; `torch.equal` then answers without reading the values."""
    try:
        same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return False
    return bool(same and a.storage_offset() == b.storage_offset() and a.stride() == b.stride() and a.shape == b.shape)


def _with_storage(tensor: Any) -> Any:
    """Return the inner tensor with a storage: a sparse tensor's values, one wrapped by `torch.func`, and so on."""
    import torch

    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return tensor.data
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return torch._C._functorch.get_unwrapped(tensor)
    if tensor.layout == torch.sparse_coo:
        return tensor._values()
    compressed = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    return tensor.values() if tensor.layout in compressed else None


MOST_ELEMENTS = 1 << 16
"""Elements of a part with gaps that are looked at one by one; larger ones with gaps are taken to be apart."""

MOST_REMEMBERED = 4_096
"""Regions remembered by size and strides: a program uses few."""


class Region(NamedTuple):
    """A part of a memory, in bytes; one with gaps says its elements, too."""

    begin: int
    end: float
    gaps: tuple[int, int, tuple[int, ...], tuple[int, ...]] | None = None
    """Bytes of an element, offset, sizes and strides in elements; None of a part without gaps."""


EVERYTHING = Region(0, float("inf"))


def region_of(tensor: Any) -> Region:
    """Return the part of its storage that a tensor with strides lies in."""
    if tensor.is_contiguous():  # a nested tensor has no shape
        return _region(tensor.itemsize, tensor.storage_offset(), (tensor.numel(),), (1,))
    return _region(tensor.itemsize, tensor.storage_offset(), tensor.shape, tensor.stride())


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _region(size: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Region:
    count = math.prod(sizes)
    last = offset + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True)) if count else offset - 1
    region = Region(offset * size, (last + 1) * size)
    dense = last + 1 - offset == count
    return region if dense else region._replace(gaps=(size, offset, tuple(sizes), strides))


def region_of_array(array: Any, begin: int) -> Region:
    """Return the part of a memory that a numpy array lies in."""
    size, offset = array.itemsize, array.__array_interface__["data"][0] - begin
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    first, last = offset + sum(x for x in reach if x < 0), offset + sum(x for x in reach if x > 0) + size
    region = Region(first, last)
    if last - first == array.nbytes or any(at % size for at in (offset, *array.strides)):
        return region
    return region._replace(gaps=(size, offset // size, array.shape, tuple(n // size for n in array.strides)))


def meet(a: Region, b: Region) -> bool:
    """Return whether two parts of one memory have a byte in common, as far as that is known."""
    if a.begin >= b.end or b.begin >= a.end:
        return False
    if a.gaps is None and b.gaps is None:
        return True
    ours, theirs = _bytes(a, b), _bytes(b, a)
    return ours is not None and theirs is not None and bool(np.isin(ours, theirs).any())


def within(inner: Region, outer: Region) -> bool:
    """Return whether a part lies in another one for sure."""
    return inner == outer or (outer.gaps is None and outer.begin <= inner.begin and inner.end <= outer.end)


def _bytes(region: Region, other: Region) -> Any:
    """Return where the elements of a part begin, or its bytes within the other part; None where they are too many."""
    if region.gaps is None:
        begin, end = max(region.begin, other.begin), min(region.end, other.end)
        return np.arange(begin, end, dtype=np.int64) if end - begin <= 8 * MOST_ELEMENTS else None
    size, offset, sizes, strides = region.gaps
    if np.prod(sizes) > MOST_ELEMENTS:
        return None
    at = np.full(1, offset, np.int64)
    for n, stride in zip(sizes, strides, strict=True):
        at = np.add.outer(at, np.arange(n) * stride).reshape(-1)
    return np.add.outer(at * size, np.arange(size)).reshape(-1)


MOST_ACCESSES = 256
"""Accesses of one memory remembered at the most: what came longest ago is forgotten first."""
Clock = dict[int, int]
"""Stream → up to which number its work is done."""


class Access(NamedTuple):
    """One access of a memory by the work of a stream."""

    stream: int
    number: int
    region: Region
    place: Frame | None
    """The program's line; None where none was noted."""

    def is_done(self, clock: Clock) -> bool:
        """Return whether it is done, by this clock, before what comes next."""
        return clock.get(self.stream, 0) >= self.number

    def of(self, tensor: Any) -> Access:
        """Return the same access of a tensor's part of the memory."""
        return Access(self.stream, self.number, region_of(tensor), self.place)


@dataclass(slots=True, eq=False)
class Uses:
    """How the device uses a memory: kept at its storage, and gone with it."""

    freed: Callable[[Uses], None]
    home: int | None
    """The stream that it was allocated on; None of pinned memory, which is handed out once its copies are done."""
    writes: list[Access]
    reads: list[Access] = field(default_factory=list)
    recorded: Sequence[int] = ()
    """Streams named by `record_stream`."""

    def used_on(self, stream: int) -> None:
        """Note that a stream uses it: where that isn't the one that it was allocated on, `freed` is to be called."""
        if self.home is not None and stream != self.home:
            self.__class__ = SharedUses


class SharedUses(Uses):
    """Uses by streams that the allocator doesn't know of."""

    __slots__ = ()

    def __del__(self) -> None:
        self.freed(self)


CapturedUse = tuple[Uses, bool, bool]
"""A memory that each replay of a graph uses, whether it is written, and whether it is pinned memory of the host."""
