"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match

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
    return match_at(call, _PLACES)
