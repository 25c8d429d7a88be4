"""A diffusers scheduler looks up its timestep on the device.

## What it finds

Schedulers that search for the given timestep because no begin index is set, and schedulers whose constants are on the
host although the timestep is on the device.

## How it shows in the trace

Frames of `diffusers/schedulers/`, `index_for_timestep` or `step`, around `aten::nonzero` and `aten::item`.

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

`set_begin_index` since diffusers 0.27. Checked in the source of 0.42. That a scheduler reads was measured on an H200;
that it doesn't search with a begin index, only on a CPU.

## References

- https://huggingface.co/docs/diffusers/api/schedulers/overview
- diffusers/schedulers/scheduling_euler_discrete.py (index_for_timestep, set_begin_index, add_noise)
- diffusers/schedulers/scheduling_ddim.py (step), scheduling_ddpm.py (previous_timestep)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "diffusers"
NAME = "A scheduler looks up its timestep"
CAUSE = Cause.CTRL
WHY = """\
The scheduler compares the given timestep with all of its timesteps on the device, and reads the matching index back.
"""
WHEN_FINE = """\
Once per image.

Many diffusers pipelines call `set_begin_index` themselves.
"""

_PLACES = (
    # 0.42, _init_step_index: `if self.begin_index is None: … self.index_for_timestep(timestep)`; add_noise, in
    # training: `[self.index_for_timestep(t, schedule_timesteps) for t in timesteps]`
    LibraryPlace(
        file="diffusers/schedulers",
        functions=("index_for_timestep",),
        title="the scheduler searches for its timestep on the device",
        fix="scheduler.set_begin_index(0) before the loop: it then counts its steps on the host. In training draw "
        "indices and add the noise with them: sigmas = scheduler.sigmas.to(device)[indices], not add_noise(x, noise, "
        "timesteps).",
    ),
    # 0.42, scheduling_ddim.py, step and _get_variance: `self.alphas_cumprod[timestep]` on the host, of a timestep on
    # the device; scheduling_ddpm.py, previous_timestep: `(self.timesteps == timestep).nonzero(as_tuple=True)[0][0]`
    LibraryPlace(
        file="diffusers/schedulers",
        functions=("step", "_get_variance", "previous_timestep", "_get_prev_sample"),
        direction="DtoH",
        title="the scheduler reads the timestep to look up its constants",
        fix="scheduler.set_timesteps(n) without a device keeps the timesteps on the host, for step(); give the model "
        "those of scheduler.timesteps.to(device): for t, on_device in zip(scheduler.timesteps, …).",
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
