"""Lightning reads logged values back.

## What it finds

`self.log(…, prog_bar=True)`, which is read after every batch, metrics that a logger writes, and numbers that
`self.log` makes tensors of.

## How it shows in the trace

Frames of Lightning's logger connector around `aten::item`, or of `LightningModule` around a copy to the device.

## Example

```python
loss = x.square().mean()
result = loss  # self.log("loss", loss, prog_bar=True)
```

## Use instead

Not run: it takes Lightning.

```python
loss = x.square().mean()
result = loss  # self.log("loss", loss)
```

## Versions

Read in Lightning 2.5.

## References

- https://lightning.ai/docs/pytorch/stable/extensions/logging.html
- lightning/pytorch/trainer/connectors/logger_connector/result.py (metrics), logger_connector.py (log_metrics)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "lightning"
NAME = "Lightning reads logged values back"
CAUSE = Cause.LOG
WHY = """\
What goes to the progress bar becomes a Python number after every batch, whether or not a bar is drawn; what goes to a
logger does in the steps that are logged.
"""
WHEN_FINE = """\
Every some ten steps.

`enable_progress_bar=False` spares the bar's own reads and its drawing, not the number that `prog_bar=True` asks for.
"""

_PACKAGES = ("lightning/pytorch", "pytorch_lightning")
"""The same files under the two names that the library is installed as."""

_PLACES = (
    # logger_connector.py, log_metrics: `scalar_metrics = convert_tensors_to_scalars(metrics)`
    *(
        LibraryPlace(
            file=f"{package}/trainer/connectors/logger_connector/logger_connector.py",
            functions=("log_metrics",),
            title="Lightning reads what it logs",
            fix="Trainer(log_every_n_steps=50): it reads only in steps that it logs; or log fewer values with "
            "on_step=False.",
        )
        for package in _PACKAGES
    ),
    # result.py, metrics: `if result_metric.meta.prog_bar: … convert_tensors_to_scalars(value)`
    *(
        LibraryPlace(
            file=f"{package}/trainer/connectors/logger_connector/result.py",
            functions=("metrics",),
            title="Lightning reads what goes to the progress bar after every batch",
            fix="self.log(…, prog_bar=False). Trainer(enable_progress_bar=False) alone spares only the bar's own "
            "reads: the value is read all the same where prog_bar is True.",
        )
        for package in _PACKAGES
    ),
    # core/module.py, __to_tensor: `torch.tensor(value, device=self.device)` of what isn't a tensor yet
    *(
        LibraryPlace(
            file=f"{package}/core/module.py",
            functions=("__to_tensor", "_LightningModule__to_tensor"),
            direction="HtoD",
            title="self.log makes a device tensor of a Python number",
            fix="self.log(name, torch.full((), value, device=self.device)), which needs no copy, or write it with "
            "self.logger.log_metrics({name: value}), which needs no tensor.",
            cause=Cause.PAGEABLE,
            removal=Removal.PINNED_COPY,
        )
        for package in _PACKAGES
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
