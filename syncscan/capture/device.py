"""Asks the machine's accelerator, if it has one, what a capture needs to know of it."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any


def vendor() -> str | None:
    """The name of torch's module for the accelerator that is there (`cuda`, ROCm's too, or `xpu`), or None.

    That of a dry run isn't there.
    """
    torch = importlib.import_module("torch")
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and not hasattr(module.is_available, "pretended") and module.is_available():
            return name
    return None


def backend() -> Any:
    """The module of torch for the accelerator that is there (`torch.cuda` or `torch.xpu`), or None."""
    name = vendor()
    return getattr(importlib.import_module("torch"), name) if name is not None else None


def used() -> bool:
    """Whether this process has used its device; one without torch hasn't."""
    if "torch" not in sys.modules:
        return False
    module = backend()
    return module is not None and bool(module.is_initialized())


def drain() -> None:
    """Wait until the current device has done all that was launched; nothing to do before its first use."""
    if used():
        backend().synchronize()


def clocks() -> dict[str, float] | None:
    """The device's clock (MHz) and power draw (W) now, by NVML; None where `nvidia-ml-py` or the device is missing."""
    module = backend()
    if module is None or not module.is_initialized() or not hasattr(module, "clock_rate"):
        return None
    with contextlib.suppress(Exception):
        return {"sm_mhz": float(module.clock_rate()), "power_w": module.power_draw() / 1000, **_power_limit(module)}
    return None


def _power_limit(module: Any) -> dict[str, float]:
    """The power (W) that the device may draw, which sustained work runs into; empty where NVML doesn't tell."""
    with contextlib.suppress(Exception):
        nvml = importlib.import_module("pynvml")
        handle = module._get_pynvml_handler()
        return {"power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000}
    return {}
