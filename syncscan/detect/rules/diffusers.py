"""A diffusers scheduler looks its step up on the device.

## What it finds

Schedulers that search for the timestep they are given, because nobody told them where they begin.

## How it shows in the trace

Frames of `diffusers/schedulers/`, `index_for_timestep`, around `aten::nonzero` and `aten::item`.

## Example

```python
timesteps = torch.linspace(999, 0, 20, device=device)
result = (timesteps == timesteps[3]).nonzero()[0].item()
```

## Use instead

Not run: the schedulers are diffusers'.

```python
timesteps = torch.linspace(999, 0, 20, device=device)
result = 3  # scheduler.set_begin_index(0), and it counts by itself
```

## Versions

`set_begin_index` since diffusers 0.27.

## References

- https://huggingface.co/docs/diffusers/api/schedulers/overview
- diffusers/schedulers/scheduling_flow_match_euler_discrete.py (index_for_timestep, set_begin_index)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "diffusers"
NAME = "A scheduler looks its step up"
CAUSE = Cause.CTRL
WHY = """\
The scheduler compares all its timesteps with the one it got, on the device, and reads where they agree.
"""
WHEN_FINE = """\
Once a picture.

Pipelines of diffusers call `set_begin_index` themselves.
"""

_PLACES = (
    # _init_step_index: `if self.begin_index is None: … self.index_for_timestep(timestep)`, else it counts on the host
    LibraryPlace(
        file="diffusers/schedulers",
        functions=("index_for_timestep",),
        title="the scheduler searches for its timestep on the device",
        fix="scheduler.set_begin_index(0) before the loop: it then counts its steps on the host. In training use "
        "indices that you drew yourself, not timesteps to be found again.",
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
