"""Query the machine's accelerator, if any."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any


def vendor() -> str | None:
    """Return the name of torch's module for the accelerator (`cuda`, also for ROCm, or `xpu`), or None.

    A dry run's simulated device doesn't count.
    """
    torch = importlib.import_module("torch")
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and not hasattr(module.is_available, "pretended") and module.is_available():
            return name
    return None


def backend() -> Any:
    """Return torch's module for the accelerator (`torch.cuda` or `torch.xpu`), or None."""
    name = vendor()
    return getattr(importlib.import_module("torch"), name) if name is not None else None


def used() -> bool:
    """Return whether this process has used its device; False without torch."""
    if "torch" not in sys.modules:
        return False
    module = backend()
    return module is not None and bool(module.is_initialized())


def drain() -> None:
    """Wait until the current device has finished all launched work; a no-op before its first use."""
    if used():
        backend().synchronize()


def clocks() -> dict[str, float] | None:
    """Return the device's current clock (MHz) and power draw (W) from NVML; None without `nvidia-ml-py` or a device."""
    module = backend()
    if module is None or not module.is_initialized() or not hasattr(module, "clock_rate"):
        return None
    with contextlib.suppress(Exception):
        return {"sm_mhz": float(module.clock_rate()), "power_w": module.power_draw() / 1000, **_power_limit(module)}
    return None


def _power_limit(module: Any) -> dict[str, float]:
    """Return the device's power limit (W), which sustained work runs into; empty where NVML doesn't report it."""
    with contextlib.suppress(Exception):
        nvml = importlib.import_module("pynvml")
        handle = module._get_pynvml_handler()
        return {"power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000}
    return {}
