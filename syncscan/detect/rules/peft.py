"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_PLACES = (
    # 0.21.2, peft_model.py, get_prompt: `self.prompt_tokens[…].unsqueeze(0).expand(batch_size, -1).to(…)`
    LibraryPlace(
        file="peft/peft_model.py",
        functions=("get_prompt",),
        direction="HtoD",
        title="prompt learning copies its virtual tokens to the device in each forward pass",
        fix="Keep them there: model.prompt_tokens[name] = model.prompt_tokens[name].to(device), once, for name = "
        "model.active_adapter.",
        cause=Cause.PAGEABLE,
    ),
    # 0.21.2, peft_model.py, forward: `torch.ones(batch_size, …).to(attention_mask.device)`, `torch.full(…).to(…)`
    LibraryPlace(
        file="peft/peft_model.py",
        direction="HtoD",
        title="prompt learning copies its part of mask and labels to the device in each forward pass",
        fix="Call the model in torch's device context, which creates them on the device: with torch.device(device): "
        "model(…). Without attention_mask and labels there is nothing to copy.",
        cause=Cause.PAGEABLE,
    ),
    # 0.21.2, tuners/adalora/layer.py, mask_to_budget: `torch.kthvalue(…)[0].item()`, `….view(-1).tolist()`
    LibraryPlace(
        file="peft/tuners/adalora/layer.py",
        functions=("mask_to_budget",),
        title="AdaLoRA reads its threshold and the allocated ranks",
        fix="AdaLoraConfig(deltaT=100): update_and_allocate() reads only every deltaT steps between tinit and tfinal.",
        cause=Cause.CTRL,
    ),
    # 0.21.2, tuners/vblora/layer.py, _get_lora_matrices: `if self.training and vblora_logits_A[0, 0].isinf().any()`
    LibraryPlace(
        file="peft/tuners/vblora/layer.py",
        functions=("_get_lora_matrices",),
        title="VB-LoRA checks in each layer whether its logits are infinite",
        fix="It checks only layers that are in training mode; dropout can stay in it: after model.train(), for m in "
        "model.modules(): m.training &= not isinstance(m, peft.tuners.vblora.layer.VBLoRALayer).",
    ),
    # 0.21.2, tuners/poly/router.py, forward: `if task_ids.max().item() >= self.n_tasks`
    LibraryPlace(
        file="peft/tuners/poly/router.py",
        title="Poly reads the largest task id in each layer",
        fix="No option avoids this: one read per layer. Leave it if the step gains nothing from a fix.",
    ),
    # 0.21.2, tuners/lora/variants.py, calculate_alora_offsets: `.nonzero(…)`, `start_idx_tensor.item()`, torch.equal;
    # lora/model.py passes a given alora_offsets on
    LibraryPlace(
        file="peft/tuners/lora/variants.py",
        functions=("calculate_alora_offsets",),
        title="activated LoRA looks for its invocation tokens in each sequence",
        fix="Look for them in the collator and pass model(…, alora_offsets=offsets), a list of Python numbers.",
        cause=Cause.SHAPE,
    ),
    # 0.21.2, tuners/lora/variants.py, ALoraLinearVariant.forward: `torch.tensor([…], device=device)`,
    # `x_flat[mask_flat]`
    LibraryPlace(
        file="peft/tuners/lora/variants.py",
        title="activated LoRA selects the tokens after its invocation in each layer",
        fix="No option avoids this: the number of tokens decides a shape. Leave it if the step is device-bound.",
        cause=Cause.SHAPE,
        removal=Removal.KERNELS,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
