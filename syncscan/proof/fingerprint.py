"""Record what a program computes in its first steps: losses, and parameters before and after.

Nothing here is timed: tensors are read back where they are made. A tensor of up to `NUMBERS` elements is stored whole.
Of a larger one each element is added, with a random sign, to one of as many sums: a count sketch (Charikar, Chen,
Farach-Colton 2002), linear, so that the difference of two sketches is the sketch of the difference, and its length
within 2 / sqrt(2 * NUMBERS) = 18 % of the true one (twice the standard error). It is summed in float64 where the tensor
lies: facebookresearch/DiT has 458 million parameters, and each million took a CPU 30 ms.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

from syncscan.capture.optimizer_hook import OptimizerHook
from syncscan.capture.torch_hooks import Function, ModuleCalls, replaced
from syncscan.patches import when_imported

ROUNDING_LOT, SKETCH_LOT, PIECES_LOT = 19, 20, 21
"""Seeds of random signs; those of a sketch mustn't be those of the differences in it."""


class Fingerprinting:
    """Records what a program computes, from its creation on.

    With `rounded`, each parameter is moved by one rounding error when its optimizer is made.
    """

    def __init__(self, *, rounded: bool) -> None:
        self._rounded = rounded
        self._undo: list[Callable[[], None]] = []
        self._optimizers: list[Any] = []
        self._begin: dict[str, Any] = {"shapes": [], "numbers": [], "epsilons": []}
        self._losses: list[Any] = []
        self._outputs: list[Any] = []
        self._depth = 0
        self._trained = False
        self._steps: dict[str, list[dict[str, Any]]] = {"losses": [], "outputs": []}
        self._undo.append(when_imported("torch", self._watch))

    def leave(self) -> None:
        while self._undo:
            self._undo.pop()()

    def step(self, returned: Any = None) -> None:
        self._steps["losses"].append(sketch([*self._losses, *tensors_in(returned)]))
        self._steps["outputs"].append(sketch(self._outputs))
        self._losses, self._outputs = [], []

    def forget(self) -> None:
        """Restart counting: the next step is the first."""
        self._steps = {"losses": [], "outputs": []}

    def result(self) -> dict[str, Any]:
        seen = any(step["shapes"] for step in self._steps["losses"])
        source = "losses" if seen else "outputs"
        return {"losses": self._steps[source], "begin": self._begin, "end": self._end(), "source": source}

    def _watch(self, torch: Any) -> None:
        places = [("torch.autograd", "backward", self._backward), ("torch.nn.Module", "__init__", self._made_module)]
        if self._rounded:
            places.append(("torch.optim.Optimizer", "__init__", self._make_hook))
        self._undo += [replaced(places), OptimizerHook(self._stepping, before=True).remove]

    def _backward(self, original: Function) -> Function:
        def backward(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
            self._trained = True
            self._losses += [t.detach().clone() for t in tensors_in(tensors)]
            return original(tensors, *arguments, **keywords)

        return backward

    def _made_module(self, original: Function) -> Function:
        def initialize(module: Any, *arguments: Any, **keywords: Any) -> None:
            original(module, *arguments, **keywords)
            calls = ModuleCalls(module, self._enter, self._returned)
            if calls.start():
                self._undo.append(calls.close)

        return initialize

    def _make_hook(self, original: Function) -> Function:
        def initialize(optimizer: Any, *arguments: Any, **keywords: Any) -> None:
            original(optimizer, *arguments, **keywords)
            round_off(_parameters([optimizer]))

        return initialize

    def _stepping(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        """Handle an optimizer's step; before its first one, its parameters are as the program created them."""
        if not any(optimizer is known for known in self._optimizers):
            self._optimizers.append(optimizer)
            new = sketch(_parameters([optimizer]))
            self._begin = {key: [*self._begin[key], *new[key]] for key in new}

    def _end(self) -> dict[str, Any]:
        return sketch(_parameters(self._optimizers))

    def _enter(self) -> None:
        self._depth += 1

    def _returned(self, output: Any) -> None:
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and not self._trained:  # what is trained has losses, and its outputs may be large
            self._outputs += [t.detach().clone() for t in tensors_in(output)]


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors in a value, with numbers as tensors: itself, or the contents of a list, tuple or dict."""
    torch = importlib.import_module("torch")
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, int | float | complex):
        return [torch.tensor(value, dtype=torch.float64 if not isinstance(value, complex) else torch.complex128)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in tensors_in(item)]
    if isinstance(value, list | tuple):
        return [t for item in value for t in tensors_in(item)]
    return []


def round_off(parameters: Iterable[Any]) -> None:
    """Change each element by one rounding error, randomly up or down, without using the program's random generators."""
    torch = importlib.import_module("torch")
    lots = torch.Generator().manual_seed(ROUNDING_LOT)
    with torch.no_grad():
        for p in parameters:
            if p.dtype.is_floating_point:
                signs = torch.randint(0, 2, p.shape, generator=lots, dtype=torch.int8).to(p.device, p.dtype) * 2 - 1
                p.mul_(1 + signs * torch.finfo(p.dtype).eps)


def _parameters(optimizers: Iterable[Any]) -> list[Any]:
    """Return the parameters of these optimizers, each once, in order."""
    seen = {id(p): p for o in optimizers for group in o.param_groups for p in group["params"]}
    return list(seen.values())


NUMBERS = 64
PIECE = 1 << 20
"""Elements that are sketched at a time; a multiple of `NUMBERS`."""


def sketch(tensors: Iterable[Any]) -> dict[str, Any]:
    """Return the sketches of tensors as plain lists: `shapes`, `numbers`, `epsilons`."""
    listed = list(tensors)
    return {
        "shapes": [list(t.shape) for t in listed],
        "numbers": [_numbers(t) for t in listed],
        "epsilons": [_epsilon(t) for t in listed],
    }


def _numbers(tensor: Any) -> list[float]:
    torch = importlib.import_module("torch")
    flat = _whole(tensor.detach()).reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.numel() <= NUMBERS:
        return [float(x) for x in flat.to("cpu", torch.float64).tolist()]
    place = flat.device if flat.device.type == "cuda" else torch.device("cpu")  # others may have no float64
    lots, signs = torch.Generator().manual_seed(PIECES_LOT), _signs(place)
    sums = torch.zeros(NUMBERS, dtype=torch.float64, device=place)
    for piece in flat.split(PIECE):
        flip = int(torch.randint(0, 2, (), generator=lots)) * 2 - 1
        values = piece.to(place, torch.float64) * signs[: len(piece)]
        if rest := -len(values) % NUMBERS:
            values = torch.nn.functional.pad(values, (0, rest))
        sums += flip * values.reshape(-1, NUMBERS).sum(0)
    return [float(x) for x in sums.tolist()]


@functools.cache
def _signs(place: Any) -> Any:
    """Return the random signs of a piece's elements, on a device; each piece has a sign of its own besides."""
    torch = importlib.import_module("torch")
    lots = torch.Generator().manual_seed(SKETCH_LOT)
    return (torch.randint(0, 2, (PIECE,), generator=lots, dtype=torch.int8) * 2 - 1).to(place, torch.float64)


def _whole(tensor: Any) -> Any:
    """Return a sharded tensor's local part, a sparse one's dense form, a plain one as it is."""
    if hasattr(tensor, "to_local"):
        return tensor.to_local()
    return tensor.to_dense() if tensor.layout is not importlib.import_module("torch").strided else tensor


def _epsilon(tensor: Any) -> float:
    torch = importlib.import_module("torch")
    return float(torch.finfo(tensor.dtype).eps) if tensor.dtype.is_floating_point else 0.0
