"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

_PLACES = (
    # 1.0.31, data/mixup.py, _mix_elem and _mix_pair: `torch.tensor(lam_batch, device=x.device, dtype=x.dtype)`
    LibraryPlace(
        file="timm/data/mixup.py",
        functions=("_mix_elem", "_mix_pair"),
        direction="HtoD",
        title="Mixup copies the factor of each sample to the device",
        fix="Mixup(mode='batch') has one factor, a Python number; or mix in the loader's workers: "
        "create_loader(collate_fn=FastCollateMixup(…)).",
        removal=Removal.PINNED_COPY,
    ),
    # 1.0.31, data/loader.py, PrefetchLoader.__iter__: `next_input.to(device=…, non_blocking=True)`; create_loader:
    # `pin_memory: bool = False`. It copies on a stream of its own: no wait seen on an H200
    *(
        LibraryPlace(
            file=f"timm/data/{file}",
            functions=("__iter__",),
            direction="HtoD",
            title="timm's loader copies batches from pageable memory",
            fix="create_loader(pin_memory=True): it copies with non_blocking=True already, which doesn't wait if the "
            "batch is pinned; don't change a batch on the host until the copy has run.",
            removal=Removal.PINNED_COPY,
        )
        for file in ("loader.py", "naflex_loader.py")
    ),
    # 1.0.31, utils/model_ema.py, update, apply_update_: `model_v.to(device=self.device)`
    LibraryPlace(
        file="timm/utils/model_ema.py",
        direction="DtoH",
        title="the average of the model is kept on the CPU, and each value copied there",
        fix="Keep it on the model's device: ModelEmaV3(model, device=None); or update it every N steps: "
        "ModelEmaV3(model, device='cpu', …) and ema.update(model) where step % n == 0.",
        cause=Cause.READBACK,
        use=Use.SHOWN,
    ),
    # 1.0.31, optim/adamp.py, projection: `if cosine_sim.max() < delta / math.sqrt(param_view.size(1))`; SGDP calls it
    LibraryPlace(
        file="timm/optim/adamp.py",
        functions=("projection",),
        title="the optimizer checks for each parameter whether to project its update",
        fix="No option avoids this: one or two reads for each parameter of two or more dimensions. "
        "create_optimizer_v2(model, opt='adamw') doesn't ask.",
        cause=Cause.CTRL,
        removal=Removal.KERNELS,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
