"""Host stalls that are no syncs: garbage collections, loops over parameters, zeroed gradients, memory taken anew."""

import copy
import gc
from collections import deque
from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F
from setting import Build, Setting, Step
from torch.profiler import record_function as scope

Extra = Callable[[], None]
"""What a step does before its forward."""


def train(extra: Callable[[Setting], Extra] | None = None, *, set_to_none: bool = True, average: str = "") -> Build:
    """A step of a deep, narrow perceptron, whose host is the limit, with one habit.

    Args:
        extra: makes what each step does first.
        set_to_none: what `zero_grad` does with gradients.
        average: how a moving average of the weights is kept: in a "loop" or "foreach"; else there is none.
    """

    def made(setting: Setting) -> Step:
        torch.manual_seed(0)
        w, d, n = setting.of(256, 8), setting.of(24, 2), setting.of(256, 4)
        layers = [m for _ in range(d) for m in (nn.Linear(w, w), nn.GELU(), nn.LayerNorm(w))]
        model = nn.Sequential(*layers, nn.Linear(w, 16)).to(setting.device)
        averaged = [p.detach() for p in copy.deepcopy(model).parameters()]
        adam = torch.optim.AdamW(model.parameters(), lr=1e-4)
        x = torch.randn(n, w, device=setting.device)
        y = torch.randint(0, 16, (n,), device=setting.device)
        first = extra(setting) if extra is not None else None

        def step() -> None:
            adam.zero_grad(set_to_none=set_to_none)
            with scope("first"):
                if first is not None:
                    first()
            with scope("forward"):
                loss = F.cross_entropy(model(x), y)
            with scope("backward"):
                loss.backward()
            adam.step()
            with scope("average"), torch.no_grad():
                if average == "loop":
                    for mean, p in zip(averaged, model.parameters(), strict=True):
                        mean.mul_(0.999).add_(p, alpha=0.001)
                elif average == "foreach":
                    torch._foreach_lerp_(averaged, list(model.parameters()), 0.001)

        return step

    return made


def objects(count: int) -> list[dict[str, list[int]]]:
    """So many pairs of objects that the garbage collector has to go through, as metrics or a data set's index are."""
    return [{"value": [k]} for k in range(count)]


def with_heap(collect: bool) -> Callable[[Setting], Extra]:
    """A program of many objects, with a `gc.collect()` in each step, or without."""

    def made(setting: Setting) -> Extra:
        heap = objects(setting.of(10_000, 10))

        def extra() -> None:
            if collect and heap:
                gc.collect()

        return extra

    return made


class Threshold:
    """The garbage collector's threshold for as long as this object lasts; the oldest generation, which comes by chance
    in few steps, isn't collected.
    """

    def __init__(self, youngest: int) -> None:
        self.before = gc.get_threshold()
        gc.set_threshold(youngest, self.before[1], 1_000_000)

    def __del__(self) -> None:
        gc.set_threshold(*self.before)


def with_objects(often: bool) -> Callable[[Setting], Extra]:
    """New objects in each step, of which some steps' are kept: collected at 700 of them, or at ten millions."""

    def made(setting: Setting) -> Extra:
        threshold = Threshold(700 if often else 10_000_000)
        kept: deque[object] = deque(maxlen=4)

        def extra() -> None:
            kept.append((threshold, objects(setting.of(10_000, 10))))

        return extra

    return made


def with_buffers(padded: bool) -> Callable[[Setting], Extra]:
    """Four buffers a step, larger each time than any block that the cache holds; or padded to the largest."""

    def made(setting: Setting) -> Extra:
        size = setting.of(1 << 20, 8)
        steps = 0

        def extra() -> None:
            nonlocal steps
            steps = (steps + 1) % 1000
            parts = 64 + 4 * (1000 if padded else steps)
            buffers = [torch.empty(parts * size, dtype=torch.uint8, device=setting.device) for _ in range(4)]
            for buffer in buffers:
                buffer[:size].fill_(1)

        return extra

    return made


VARIANTS = {
    "stalls.collect": train(with_heap(collect=True)),
    "stalls.no_collect": train(with_heap(collect=False)),
    "stalls.young": train(with_objects(often=True)),
    "stalls.seldom": train(with_objects(often=False)),
    "stalls.zeroed": train(set_to_none=False),
    "stalls.none": train(set_to_none=True),
    "stalls.average_loop": train(average="loop"),
    "stalls.average_foreach": train(average="foreach"),
    "stalls.growing": train(with_buffers(padded=False)),
    "stalls.padded": train(with_buffers(padded=True)),
}
