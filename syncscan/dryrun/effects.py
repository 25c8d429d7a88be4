"""Say which of its arguments an op writes to, and whether it only returns a view, by its schema."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

torch: Any = importlib.import_module("torch")
_Tensor = torch.Tensor
_known: dict[Any, Effect] = {}


class Effect(NamedTuple):
    """The arguments that an op writes to."""

    written: tuple[int, ...]
    """Places of the arguments that it writes to."""
    named: tuple[str, ...]
    """Names of those that are given by name."""
    view: bool
    """Whether it only returns a view."""
    reads: bool = True
    """Whether it reads values; `ones_like` and the like ask for size and type alone."""

    def writes(self, args: Any, kwargs: Any) -> Sequence[Any]:
        """Return the arguments that it writes to: tensors and lists of tensors."""
        if not self.written:
            return ()
        positional = [args[at] for at in self.written if at < len(args)]
        return [*positional, *(kwargs[key] for key in self.named if key in kwargs)]

    def others(self, args: Any, kwargs: Any) -> Sequence[Any]:
        """Return the arguments that it doesn't write to."""
        if not self.written:
            return (*args, *kwargs.values())
        positional = [value for at, value in enumerate(args) if at not in self.written]
        return [*positional, *(value for key, value in kwargs.items() if key not in self.named)]


def effect_of(func: Any) -> Effect:
    """Return the effect of an op; of one without a schema that of an op that only reads."""
    effect = _known.get(func)
    if effect is None:
        effect = _known[func] = _read_off(func)
    return effect


def _read_off(func: Any) -> Effect:
    schema = getattr(func, "_schema", None)
    arguments = schema.arguments if schema is not None else ()
    written = [(at, a.name) for at, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
    returned = schema.returns if schema is not None else ()
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in returned)
    about = schema is not None and (schema.name.endswith("_like") or schema.name.startswith("aten::new_"))
    return Effect(tuple(at for at, _ in written), tuple(name for _, name in written), view, not about)


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors among some values that have a plain memory of their own."""
    if isinstance(value, _Tensor):
        if value.layout == torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_in(one)
