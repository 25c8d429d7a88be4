"""Keep which host memory copies still use, and notice what the host does with it before they are done.

A copy opens a debt on the memory of its host tensor, and that tensor takes a class of its own until the host has waited
for the copy: torch hands every call with such a tensor over first, and calls with any other tensor cost what they did.
Which of the two sides a call reads or writes, the schemas of the ops inside of it say. Views that were made before the
copy aren't seen, except for the tensor that the copied one is a view of; neither are numpy arrays made before.

Imported where a guard is armed: it needs torch to be defined.
"""

from __future__ import annotations

import importlib
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from syncscan.dryrun.effects import effect_of, tensors_in
from syncscan.dryrun.regions import Region, meet, region_of, region_of_array
from syncscan.dryrun.watched_arrays import watch
from syncscan.guarding.copy_order import CopyOrder, Stream
from syncscan.model.libraries import is_library
from syncscan.model.race import RaceKind

torch: Any = importlib.import_module("torch")
_reference = weakref.ref
_NO_ENTRY: Any = (None, None, (), 0, None, 0)
_modes: Any = importlib.import_module("torch.utils._python_dispatch")
_Tensor = torch.Tensor
_plainly: Any = torch._C.DisableTorchFunctionSubclass
_DEBTS = "_syncscan_debts"
MOST_FRAMES = 16
"""Callers of a copy that are looked at for the program's own line."""
MANY_TENSORS = 1024
"""Tensors with debts after which those that are gone are forgotten."""
MOST_DEBTS = 256
"""Debts of one memory that are remembered: the latest."""

_READING = frozenset(
    "tolist __repr__ __format__ __reduce_ex__ __deepcopy__ share_memory_ __array__ tofile __dlpack__".split()
)
"""Methods that read all values, and dispatch no op for it that a mode sees: to print torch turns modes off."""
_ABOUT = frozenset(
    "size dim stride numel nelement ndimension element_size storage_offset is_contiguous data_ptr is_pinned get_device "
    "untyped_storage is_floating_point is_complex __len__ __hash__ requires_grad_ record_stream".split()
)
"""Methods that say something about a tensor, and read no value."""

Tell = Callable[[RaceKind, "Debt", FrameType], None]
"""Called with a race's kind, the debt, and the frame that uses the memory."""


class Debt(NamedTuple):
    """A copy between host and device that may still run."""

    kind: RaceKind
    """The race of a wrong use: `READ_BEFORE_COPY` of a copy to the host, `WRITE_BEFORE_COPY` of one from there."""
    stream: Stream
    number: int
    """Its number on its stream."""
    code: CodeType
    """With `instruction` the place of its call."""
    instruction: int
    region: Region
    """The part of the memory that is copied."""

    @property
    def place(self) -> tuple[str, int, str]:
        """Return file, line and function of the copy."""
        lines = (line for begin, end, line in self.code.co_lines() if begin <= self.instruction < end)
        return self.code.co_filename, next(lines, None) or 0, self.code.co_name


class Owed(torch.Tensor):  # type: ignore[misc]
    """A host tensor whose memory a copy may still use: torch hands its calls over first."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one call, and tell of what it does too early."""
        return _current.call(func, args, kwargs or {}) if _current is not None else _run(func, args, kwargs or {})

    def __copy__(self) -> Any:
        """Return a tensor of the same memory. `copy.copy` by itself would take what is pickled, which is a read."""
        shared = self.detach().requires_grad_(self.requires_grad)
        shared.__dict__.update(self.__dict__)
        return shared


Owed.__module__, Owed.__name__, Owed.__qualname__ = "torch", "Tensor", "Tensor"


_Entry = tuple[Any, RaceKind | None, Stream, int, CodeType | None, int]
"""A weak reference to a watched tensor, and its copy: the kind of race, stream, number, and place of the call. The kind
is None where the debt is noted at the memory. A plain tuple: to make a named one takes three times as long."""


class Debts:
    """The debts of a process, while a guard is armed.

    A copy of a whole tensor is noted by the tensor alone, in a microsecond; once the tensor is used, or where it is a
    view of another one, at its memory.

    Args:
        clocks: what the host has waited for.
        stream: returns the current stream of a device, by its index.
        tell: called with each race.
    """

    def __init__(self, clocks: CopyOrder, stream: Callable[[int], Stream], tell: Tell) -> None:
        self._clocks, self._stream, self._tell = clocks, stream, tell
        self.capturing = 0
        """How many graphs are being captured: what is captured doesn't run."""
        self._open: dict[int, _Entry] = {}
        self._prune_at = MANY_TENSORS
        self._own: dict[str, bool] = {}
        """File → whether it is the program's. To look a code object up takes 1.5 µs: it is hashed anew each time."""

    def begin(self) -> Callable[[], None]:
        """Begin to watch the tensors with debts; return a function that makes all of them what they were."""
        global _current
        _current = self

        def end() -> None:
            global _current
            _current = None
            for entry in self._open.values():
                _restore(entry[0]())
            self._open.clear()

        return end

    def copied(self, kind: RaceKind, tensor: Any, device: int, frame: FrameType) -> None:
        """Open a debt on a host tensor's memory.

        Args:
            kind: of the race that a use too early would be.
            tensor: the one on the host.
            device: index of the device that the copy is to or from.
            frame: of the call that copies.
        """
        if self.capturing:
            return
        if type(tensor) is Owed:  # by an older copy, whose place this one takes: on its stream it is done before
            tensor.__class__ = _Tensor
        elif type(tensor) is not _Tensor:
            return
        stream, clocks = self._stream(device), self._clocks
        clocks.count = count = clocks.count + 1
        code = frame.f_code
        at = (code, frame.f_lasti) if self._own.get(code.co_filename) else self._place(frame)
        base = tensor._base
        entries = self._open
        entries[id(tensor)] = (_reference(tensor), kind, stream, count, *at)
        if base is not None:
            self._note_at_memory(tensor)
            self._watch(base, stream, count)
        tensor.__class__ = Owed
        if len(entries) > self._prune_at:
            self._open = {key: entry for key, entry in self._open.items() if entry[0]() is not None}
            self._prune_at = 2 * len(self._open) + MANY_TENSORS

    def release(self, tensor: Any) -> None:
        """Let a tensor be copied once more without being looked at, if it is only the source of an earlier copy."""
        entry = self._open.get(id(tensor))
        if entry is None or entry[1] is not RaceKind.READ_BEFORE_COPY:
            _restore(tensor)

    def settle(self) -> None:
        """Make those tensors what they were whose copies the host has waited for."""
        done, entries, self._open = self._clocks.done, self._open, {}
        for key, entry in entries.items():
            if done(entry[2], entry[3]):
                _restore(entry[0]())
            else:
                self._open[key] = entry

    # uses

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a call of torch's that has a tensor with debts among its arguments."""
        name = getattr(func, "__name__", "")
        if name in _ABOUT or (name == "__get__" and getattr(func.__self__, "__name__", "") in _PROPERTIES):
            return _run(func, args, kwargs)
        owed = [tensor for tensor in tensors_in((*args, *kwargs.values())) if type(tensor) is Owed]
        for tensor in owed:  # while it runs they are what functions of torch's take them for
            _restore(tensor)
        owing = [tensor for tensor in owed if self._debts_of(tensor)]
        if not owing:
            return func(*args, **kwargs)
        try:
            return self._watched(func, name, args, kwargs, owing)
        finally:
            for tensor in owing:
                for debt in self._debts_of(tensor):
                    self._watch(tensor, debt.stream, debt.number)

    def _watched(self, func: Any, name: str, args: Any, kwargs: Any, owing: list[Any]) -> Any:
        """Run a call with tensors whose copies may still run."""
        if name in _READING:
            for tensor in owing:
                self.used(tensor, written=False)
            return func(*args, **kwargs)
        with _Uses(self):
            result = func(*args, **kwargs)
        if name == "numpy":
            return watch(result, owing[0], self._array_used)
        for tensor in tensors_in(result):
            self._mark_view(tensor)
        return result

    def used(self, tensor: Any, *, written: bool) -> None:
        """Tell of what the host does with a tensor that a copy may still use."""
        debts = self._debts_of(tensor)
        if debts:
            self._tell_of(tensor, debts, region_of(tensor), written=written)

    def _array_used(self, tensor: Any, array: Any, written: bool) -> None:
        """Tell of what the host does with an array of a tensor's memory."""
        debts = self._debts_of(tensor) if array.size else []
        if debts:
            with _plainly():
                storage = tensor.untyped_storage()
                region = region_of_array(array, storage.data_ptr())
                if region.begin >= 0 and region.end <= storage.nbytes():
                    self._tell_of(tensor, debts, region, written=written)

    def _tell_of(self, tensor: Any, debts: list[Debt], region: Region, *, written: bool) -> None:
        storage = tensor.untyped_storage()
        for debt in debts:
            if not written and debt.kind is not RaceKind.READ_BEFORE_COPY:
                continue
            if not meet(debt.region, region):
                continue
            setattr(storage, _DEBTS, [other for other in storage.__dict__[_DEBTS] if other is not debt])
            if debt.kind is RaceKind.READ_BEFORE_COPY or tensor.is_pinned():
                kind = RaceKind.WRITE_BEFORE_COPY if written else RaceKind.READ_BEFORE_COPY
                self._tell(kind, debt, sys._getframe(1))

    def _debts_of(self, tensor: Any) -> list[Debt]:
        """Return the copies that may still use a tensor's memory, or another part of it."""
        self._note_at_memory(tensor)
        debts = tensor.untyped_storage().__dict__.get(_DEBTS)
        return [*filter(self._is_open, debts)] if debts else []

    def _is_open(self, debt: Debt) -> bool:
        return not self._clocks.done(debt.stream, debt.number)

    def _note_at_memory(self, tensor: Any) -> None:
        """Note a tensor's own debt at its memory, where views of it find it."""
        reference, kind, stream, number, code, instruction = self._open.get(id(tensor)) or _NO_ENTRY
        if kind is None or code is None or reference() is not tensor:
            return
        with _plainly():
            storage, region = tensor.untyped_storage(), region_of(tensor)
            debt = Debt(kind, stream, number, code, instruction, region)
            before = storage.__dict__.get(_DEBTS, ())
            same = (kind, stream, region)
            left = [d for d in before if (d.kind, d.stream, d.region) != same and self._is_open(d)]
            setattr(storage, _DEBTS, [*left, debt][-MOST_DEBTS:])
        self._open[id(tensor)] = (reference, None, stream, number, None, 0)

    def _watch(self, tensor: Any, stream: Stream, number: int) -> None:
        """Watch another tensor of memory with a debt."""
        if type(tensor) is Owed:
            self._note_at_memory(tensor)
        if type(tensor) is _Tensor or type(tensor) is Owed:
            tensor.__class__ = Owed
            self._open[id(tensor)] = (_reference(tensor), None, stream, number, None, 0)

    def _mark_view(self, tensor: Any) -> None:
        """Watch a tensor that a call has returned, if it is of memory with debts."""
        if type(tensor) is _Tensor and not on_device(tensor):
            for debt in self._debts_of(tensor):
                self._watch(tensor, debt.stream, debt.number)

    def _place(self, frame: FrameType) -> tuple[CodeType, int]:
        """Return the innermost of the program's own places, else the one that calls."""
        at: FrameType | None = frame
        for _ in range(MOST_FRAMES):
            if at is None:
                break
            code = at.f_code
            file = code.co_filename
            is_own = self._own.get(file)
            if is_own is None:
                is_own = self._own[file] = not is_library(file)
            if is_own:
                return code, at.f_lasti
            at = at.f_back
        return frame.f_code, frame.f_lasti


_current: Debts | None = None


class _Uses(_modes.TorchDispatchMode):  # type: ignore[misc]
    """Sees the ops inside of a call."""

    def __init__(self, debts: Debts) -> None:
        super().__init__()
        self._debts = debts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Tell of the host's uses by an op, and run it."""
        kwargs = kwargs or {}
        effect = effect_of(func)
        if effect.reads and not effect.view:
            written = {id(tensor) for tensor in tensors_in(effect.writes(args, kwargs))}
            for tensor in _of_host(args, kwargs):
                self._debts.used(tensor, written=id(tensor) in written)
        return func(*args, **kwargs)


def _of_host(args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield the tensors among an op's arguments that the host itself reads or writes.

    Where others are on a device they are copied, on a stream, in its order; only numbers are read before the launch.
    """
    tensors = [*tensors_in((*args, *kwargs.values()))]
    device = kwargs.get("device")
    mixed = (device is not None and torch.device(device).type not in ("cpu", "meta")) or any(map(on_device, tensors))
    for tensor in tensors:
        if not on_device(tensor) and not (mixed and (tensor.dim() or device is not None)):
            yield tensor


def on_device(tensor: Any) -> bool:
    """Return whether a tensor isn't in the host's memory."""
    return not tensor.is_cpu


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    with _plainly():
        return func(*args, **kwargs)


def _restore(tensor: Any) -> None:
    if type(tensor) is Owed:
        tensor.__class__ = _Tensor


_PROPERTIES = frozenset(
    "shape dtype device layout is_cpu is_cuda is_sparse is_meta is_quantized requires_grad grad_fn is_leaf ndim names "
    "nbytes itemsize grad _base _version is_nested is_mkldnn is_xpu output_nr".split()
)
"""Attributes that read no value, and are no view."""
