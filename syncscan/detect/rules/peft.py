"""peft's adapters copy their virtual tokens, or read values back, in each forward pass.

## What it finds

Prompt and prefix tuning, which create their part of mask and labels on the host, AdaLoRA when it allocates ranks,
VB-LoRA, Poly and activated LoRA. LoRA itself, with DoRA, rsLoRA and LoftQ, waits for nothing in training.

## How it shows in the trace

Frames of `peft/peft_model.py` around a copy to the device, of `peft/tuners/` around `aten::item` or `aten::is_nonzero`.

## Example

```python
result = torch.cat([torch.ones(64, 4).to(device), x], dim=1)  # model(input_ids=…, attention_mask=…)
```

## Use instead

Not run: this needs peft.

```python
with torch.device(device):
    result = torch.cat([torch.ones(64, 4), x], dim=1)  # with torch.device(device): model(…)
```

## Versions

Checked in the source of peft 0.21.2, and measured.

## References

- https://huggingface.co/docs/peft/index
- peft/peft_model.py (forward, get_prompt), peft/tuners/adalora/layer.py (mask_to_budget)
- peft/tuners/vblora/layer.py (_get_lora_matrices), peft/tuners/poly/router.py, peft/tuners/lora/variants.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "peft"
NAME = "An adapter copies or reads values in each forward pass"
CAUSE = Cause.CHECK
WHY = """\
Some adapters create a tensor on the host in each forward pass, or read a value there to check it or to branch on it.
"""
WHEN_FINE = """\
While the step is device-bound.

AdaLoRA reads only in steps that allocate ranks.
"""

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
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
