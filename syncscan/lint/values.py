"""Kinds of values that expressions have: a tensor that may lie on the device, one on the CPU, a host value, unknown."""

from __future__ import annotations

import enum

import msgspec
from msgspec.structs import replace


class ValueKind(enum.Enum):
    """The kinds of values that matter for a wait."""

    UNKNOWN = "unknown"
    HOST = "host"
    """A Python number, string or container of such, a NumPy array: nothing to wait for."""
    CPU = "cpu"
    """A tensor that was made on the CPU, or read back to it."""
    BATCH = "batch"
    """A data loader's output: tensors on the CPU, or a container of them."""
    TENSOR = "tensor"
    """A tensor, not known to be on the CPU."""
    OUTPUT = "output"
    """A module's return value: a tensor, or something that holds tensors."""
    MODULE = "module"
    """A module, which returns an `OUTPUT` if it is called."""
    LOADER = "loader"
    EVENT = "event"
    """A CUDA event or stream."""
    DISTRIBUTION = "distribution"
    """One of torch.distributions that checks its arguments."""


class Value(msgspec.Struct, frozen=True):
    """Known facts about an expression's value."""

    kind: ValueKind = ValueKind.UNKNOWN
    mask: bool = False
    """A tensor of truth values."""
    scalar: bool = False
    """A tensor without dimensions."""
    sure: bool = False
    """A tensor that the source itself puts on a device."""
    test: str = ""
    """`isnan` and the like, where it answers that question."""
    pinned: bool = False
    """Whether a loader, or the loader of a batch, has or may have `pin_memory=True`."""
    listed: bool = False
    """A Python list of numbers, or a NumPy array: as an index it becomes a tensor, which is copied to the device."""
    line: int = 0
    """Line where a loader, or the loader of a batch, is made; 0 if that isn't in the same file."""

    @property
    def tensor(self) -> bool:
        """Whether it is a tensor that may lie on the device."""
        return self.kind is ValueKind.TENSOR

    @property
    def on_host(self) -> bool:
        """Whether nothing waits for it: it is no tensor, or one on the CPU."""
        return self.kind in (ValueKind.HOST, ValueKind.CPU, ValueKind.BATCH)

    def but(self, **changes: object) -> Value:
        """Return a copy with some facts replaced."""
        return replace(self, **changes)


UNKNOWN = Value()
HOST = Value(ValueKind.HOST)
CPU = Value(ValueKind.CPU)
BATCH = Value(ValueKind.BATCH)
TENSOR = Value(ValueKind.TENSOR)
OUTPUT = Value(ValueKind.OUTPUT)
MODULE = Value(ValueKind.MODULE)


def joined(values: list[Value]) -> Value:
    """Return the value that an op makes of these operands; torch refuses to mix devices, numbers aside."""
    kinds = {value.kind for value in values}
    if kinds & {ValueKind.TENSOR, ValueKind.OUTPUT}:
        scalar = all(v.scalar or v.kind is ValueKind.HOST for v in values)
        return Value(ValueKind.TENSOR, sure=any(v.sure for v in values), scalar=scalar)
    if kinds & {ValueKind.CPU, ValueKind.BATCH}:
        return CPU
    return HOST if kinds == {ValueKind.HOST} else UNKNOWN
