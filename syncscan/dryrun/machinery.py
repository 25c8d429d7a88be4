"""Patch the parts of torch that would look for a device or bypass the modes.

That is autocast, hooks and custom functions that C++ calls, optimizers that group tensors by device, compilers, kernels
that only a GPU can run, and threads, as torch's modes are a thread's own. Processes that the program starts and
extensions that it builds are gaps, with their lines.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import thread as pools
from typing import Any

import torch

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.device_functions import Functions
from syncscan.dryrun.device_kinds import simulated
from syncscan.dryrun.dispatch_mode import Ops
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.recording import MAIN
from syncscan.dryrun.tensor_memory import DEVICE
from syncscan.patches import Patches

_LAUNCHERS = (
    ("triton.runtime.jit", "JITFunction"),
    ("triton.runtime.autotuner", "Autotuner"),
    ("triton.runtime.autotuner", "Heuristics"),
)
_MISSING = (
    "Triton kernels were launched and not run: what they would compute is missing, so values such as a loss may be NaN,"
    " and where the program branches on them, waits may differ from a GPU's."
)


def pretend(session: DryRunSession, patches: Patches) -> None:
    _Machinery(session, patches).set_all()


class _Machinery:
    def __init__(self, session: DryRunSession, patches: Patches) -> None:
        self.session, self.patches = session, patches
        self.questions: list[tuple[Any, str, Any, Any]] = []

    def set_all(self) -> None:
        self._autocast()
        self._hooks()
        self._custom_functions()
        self._backward()
        self._optimizers()
        self._compilers()
        self._overrides()
        self._threads()
        self._kernels()
        self._unseen()

    def _autocast(self) -> None:
        autocast = torch.amp.autocast_mode.autocast
        init = autocast.__init__

        @functools.wraps(init)
        def on_cpu(autocast: Any, device_type: str, dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
            if device_type == simulated().name:
                device_type, dtype = "cpu", dtype or torch.float16
                if enabled and dtype == torch.float16:
                    dtype = torch.bfloat16
                    self.session.say("Autocast to float16 ran in bfloat16, which is much faster on a CPU.")
            init(autocast, device_type, dtype, enabled, **kwargs)

        self.patches.set(autocast, "__init__", on_cpu)
        for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype"):
            self.patches.replace(torch, name, _for_cpu(getattr(torch, name)))

    def _hooks(self) -> None:
        """Have code that C++ calls back in the middle of a function count as the program's."""
        hooks = torch.autograd.graph.saved_tensors_hooks
        init = hooks.__init__

        @functools.wraps(init)
        def with_modes(this: Any, pack_hook: Any, unpack_hook: Any) -> None:
            init(this, self._in_program(pack_hook), self._in_program(unpack_hook))

        self.patches.set(hooks, "__init__", with_modes)

    def _custom_functions(self) -> None:
        """Give a custom function of the program its own node, whose backward leads to where it was applied."""
        session, function = self.session, torch.autograd.function.Function
        apply, number = vars(function)["apply"], torch._C._autograd._get_sequence_nr

        @functools.wraps(apply)
        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            session.recording.call()
            begin, first = session.recording.now, number()
            result = apply.__get__(None, cls)(*args, **kwargs)
            if number() != first:
                session.followed(cls.__name__, begin, first, first + 1)
            return result

        self.patches.set(function, "apply", classmethod(applied))

    def _backward(self) -> None:
        """Note where the program calls the backward pass: the step's loop holds it."""
        session, run = self.session, torch.autograd.graph._engine_run_backward

        @functools.wraps(run)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if session.thread == MAIN:
                session.paths.first_time(session.paths.backwards, session.recording.now)
            return run(*args, **kwargs)

        self.patches.replace(torch.autograd, "_engine_run_backward", backward)

    def _in_program(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(hook)
        def called(*args: Any) -> Any:
            with contextlib.nullcontext() if self._is_on() else Functions(self.session):
                return hook(*args)

        return called

    def _is_on(self) -> bool:
        return any(isinstance(mode, Functions) for mode in torch.overrides._get_current_function_mode_stack())

    def _optimizers(self) -> None:
        grouped = torch._C._group_tensors_by_device_and_dtype

        def group(lists: Any, with_indices: bool = False) -> Any:
            overridden = grouped(lists, with_indices)
            return {(_device_of(tensors), dtype): (tensors, at) for (_, dtype), (tensors, at) in overridden.items()}

        self.patches.replace(torch._C, "_group_tensors_by_device_and_dtype", group)

    def _compilers(self) -> None:
        session = self.session

        def eager(model: Any = None, **options: Any) -> Any:
            session.say("torch.compile was skipped: the code that it would compile ran eagerly.")
            return model if model is not None else lambda function: function

        self.patches.replace(torch, "compile", eager)

        scripted = torch.jit.script

        @functools.wraps(scripted)
        def script(*args: Any, **kwargs: Any) -> Any:
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1  # a class finds its names in its caller's frame
            with self._own_overrides():  # the compiler knows torch's own questions by identity
                return scripted(*args, **kwargs)

        self.patches.replace(torch.jit, "script", script)

    @contextlib.contextmanager
    def _own_overrides(self) -> Iterator[None]:
        """Answer torch's own question whether its functions are overridden, while something is compiled."""
        for module, name, theirs, _ in self.questions:
            setattr(module, name, theirs)
        try:
            yield
        finally:
            for module, name, _, ours in self.questions:
                setattr(module, name, ours)

    def _overrides(self) -> None:
        """Run torch's own Python functions unchanged, so that the mode sees the ops they call instead of them."""
        kinds = {
            name: _only_for_subclasses(getattr(torch.overrides, name), several)
            for name, several in (
                ("has_torch_function", True),
                ("has_torch_function_unary", False),
                ("has_torch_function_variadic", False),
            )
        }
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").split(".")[0] == "torch" and module is not torch._C:
                for name, value in kinds.items():
                    if name in getattr(module, "__dict__", {}):
                        self.questions.append((module, name, getattr(module, name), value))
                        self.patches.set(module, name, value)

    def _threads(self) -> None:
        """Set the modes in new threads, and in the tasks of pools with existing threads."""
        for owner in (threading.Thread, vars(pools)["_WorkItem"]):
            self.patches.set(owner, "run", self._with_modes(owner.run))

    def _with_modes(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def with_modes(*args: Any, **kwargs: Any) -> Any:
            if self._is_on() or self.session.over:
                return run(*args, **kwargs)
            with Ops(self.session), Functions(self.session):
                return run(*args, **kwargs)

        return with_modes

    def _kernels(self) -> None:
        """Skip launches of Triton's kernels, which wait for nothing, and say so: their results are missing."""

        def run(kernel: Any, *args: Any, **kwargs: Any) -> None:
            self.session.seen += 1
            self.session.say(_MISSING)

        if importlib.util.find_spec("triton") is None:
            return
        for module, kind in _LAUNCHERS:
            with contextlib.suppress(ImportError, AttributeError):
                self.patches.set(getattr(importlib.import_module(module), kind), "run", run)

    def _unseen(self) -> None:
        """Name gap runs without the simulated device: processes, and extensions that are built."""
        of_processes = "processes of torch.multiprocessing.{0}, which run without the simulated GPU"
        of_extensions = "extension {1}, built by torch.utils.cpp_extension.{0}"
        for module, name, gap in (
            ("torch.multiprocessing", "spawn", of_processes),
            ("torch.multiprocessing", "start_processes", of_processes),
            ("torch.utils.cpp_extension", "load", of_extensions),
            ("torch.utils.cpp_extension", "load_inline", of_extensions),
        ):
            owner = importlib.import_module(module)
            self.patches.set(owner, name, self._noting(getattr(owner, name), name, gap))

    def _noting(self, original: Callable[..., Any], name: str, gap: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.session.seen += 1
            self.session.not_understood(gap.format(name, *args[:1]) if args else name)
            return original(*args, **kwargs)

        return noted


def _device_of(lists: Any) -> Any:
    first = next((tensor for tensor in lists[0] if tensor is not None), None)
    with torch._C.DisableTorchFunction():
        on_device = first is not None and tensor_memory.place_of(first) == DEVICE
    return simulated().device if on_device else torch.device("cpu")


def _for_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def on_cpu(*args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs and function.__name__ == "is_autocast_enabled":
            return function("cpu")
        return function(*("cpu" if arg == simulated().name else arg for arg in args), **kwargs)

    return on_cpu


def _only_for_subclasses(original: Callable[..., bool], several: bool) -> Callable[..., bool]:
    """Return the question whether torch's functions are overridden, for the arguments alone and not for modes."""
    plain = (torch.Tensor, torch.nn.Parameter, type(None), bool, int, float)

    def overridden(*args: Any) -> bool:
        if several and args:
            args = tuple(args[0])
        overriding = [arg for arg in args if type(arg) not in plain and hasattr(type(arg), "__torch_function__")]
        return bool(overriding) and bool(original(overriding) if several else original(*overriding[:1]))

    return overridden
