"""`print(loss)`, `f"{loss}"`, `logger.info(…, loss)`, `set_postfix(loss=loss)`: a tensor is read to be shown."""

from __future__ import annotations

from syncscan.lint.pattern import Hit, LintSite

RULES = ("print-tensor", "log-scalar")
LOOKS_AT = ("shown",)
_FIX = (
    "Collect detached values on the device and read them every N steps with one torch.stack(values).tolist(); in "
    "the loop print shapes only."
)


def find(site: LintSite) -> Hit | None:
    """Match a tensor in code that prints, formats or logs."""
    if not site.shown_by or not site.waits_for(value := site.value(site.node)):
        return None
    if value.scalar or site.shown_by in ("add_scalar", "set_postfix", "wandb.log", "add_scalars"):
        return Hit("log-scalar", f"{site.shown_by} reads a value back", _FIX)
    return Hit("print-tensor", f"{site.shown_by} reads a tensor back to show it", _FIX)
