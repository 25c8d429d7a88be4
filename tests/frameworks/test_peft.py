"""peft: prompt learning, AdaLoRA and VB-LoRA, and LoRA, which waits for nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.frameworks.conftest import Seen, Spares

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROMPT = """
import torch
from peft import PromptTuningConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

sizes = dict(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
model = get_peft_model(
    LlamaForCausalLM(LlamaConfig(**sizes)), PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
).to("cuda")
tokens = torch.randint(1, 64, (2, 32), device="cuda")
def step():
    model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens).loss.backward()  # here
"""

LAYERS = """
import torch
import peft

base = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
model = peft.get_peft_model(base, CONFIG).to("cuda")
model.train()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
x, number = torch.randn(16, 64, device="cuda"), 1
def step():
    global number
    loss = model(x).square().mean()  # forward
    loss.backward()
    optimizer.step()
    number += 1
"""

ADALORA = LAYERS.replace(
    "CONFIG", 'peft.AdaLoraConfig(target_modules=["0", "1"], total_step=1000, tinit=1, tfinal=1, deltaT=1)'
).replace("    number += 1", "    model.base_model.update_and_allocate(number)  # here\n    number += 1")

VBLORA = LAYERS.replace(
    "CONFIG", 'peft.VBLoRAConfig(target_modules=["0", "1"], num_vectors=16, vector_length=16, topk=2)'
).replace("# forward", "# here")


def test_the_device_s_context_makes_mask_and_labels_there(spares: Spares) -> None:
    """Else both are made on the host and copied in each forward pass."""
    switch = ("    model(input_ids", "    with torch.device('cuda'): model(input_ids")
    spares(PROMPT, switch, rule="peft", title="mask and labels", fix="with torch.device(device): model(…)")


def test_virtual_tokens_that_are_moved_once_are_not_copied_again(spares: Spares) -> None:
    """They are no buffer: the model's `to` leaves them on the host."""
    name = "model.prompt_tokens[model.active_adapter]"
    switch = ("def step():", f"{name} = {name}.to('cuda')\ndef step():")
    spares(PROMPT, switch, rule="peft", title="virtual tokens", fix="model.prompt_tokens[name].to(device)")


def test_adalora_reads_in_steps_that_allot_ranks(spares: Spares) -> None:
    """Every `deltaT`."""
    spares(ADALORA, ("deltaT=1)", "deltaT=100)"), rule="peft", title="AdaLoRA reads", fix="AdaLoraConfig(deltaT=100)")


def test_vblora_asks_only_of_layers_in_training(spares: Spares) -> None:
    """The layer's own flag, not its dropout's."""
    layer = "peft.tuners.vblora.layer.VBLoRALayer"
    switch = ("model.train()", f"for m in model.train().modules(): m.training &= not isinstance(m, {layer})")
    spares(VBLORA, switch, rule="peft", title="logits are infinite", fix=f"isinstance(m, {layer})")


def test_lora_waits_for_nothing(run: Callable[[str], Seen]) -> None:
    """Neither do its variants with other scales and with directions apart."""
    for options in ("", ", use_rslora=True", ", use_dora=True"):
        seen = run(LAYERS.replace("CONFIG", f'peft.LoraConfig(target_modules=["0", "1"]{options})'))
        assert not seen.findings, str(seen)
