"""Make tensors of arrays whose memory is a tensor's of the program: its uses through both are known as one's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.watched_arrays import WatchedArray

torch: Any = importlib.import_module("torch")
_from_numpy = torch.from_numpy


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Have `torch.from_numpy` know pinned memory again."""

    def from_numpy(array: Any) -> Any:
        return tensor_of(array) if isinstance(array, WatchedArray) else _from_numpy(array)

    patches.set(torch, "from_numpy", from_numpy)


def tensor_of(array: WatchedArray) -> Any:
    """Return a tensor of an array's memory: of the storage that the array was made from, where it lies in there.

    `torch.from_numpy` would make a storage of its own of that memory, whose uses would be counted apart.
    """
    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        tensor = _from_numpy(array.view(np.ndarray))
        if array.tensor is None:
            return tensor
        storage = array.tensor.untyped_storage()
        offset = tensor.data_ptr() - storage.data_ptr()
        inside = offset >= 0 and offset + tensor.untyped_storage().nbytes() <= storage.nbytes()
        if not inside or offset % tensor.element_size():
            return tensor
        return tensor.new_empty(0).set_(storage, offset // tensor.element_size(), tensor.shape, tensor.stride())
