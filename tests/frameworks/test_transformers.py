"""transformers: the Trainer's reads, the tests of masks, and generation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.frameworks.conftest import Seen, Spares

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

MODEL = """
import torch
from transformers import (
    LlamaConfig, LlamaForCausalLM, MegatronBertConfig, MegatronBertModel, Trainer, TrainingArguments,
)

sizes = dict(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(LlamaConfig(**sizes, pad_token_id=0, eos_token_id=None))
"""

TRAINER = (
    MODEL
    + """
tokens = [torch.randint(1, 64, (32,)) for _ in range(64)]
arguments = TrainingArguments(
    "trained", max_steps=20, per_device_train_batch_size=2, report_to=[], save_strategy="no", disable_tqdm=True,
    logging_nan_inf_filter=True, logging_steps=1, include_num_input_tokens_seen="all", use_cache=False,
)
trainer = Trainer(model, arguments, train_dataset=[{"input_ids": t, "labels": t} for t in tokens])
trainer.train()  # here
"""
)

STEP = (
    MODEL
    + """
model.cuda()
tokens = torch.randint(1, 64, (2, 32), device="cuda")
square = torch.ones(2, 1, 32, 32, dtype=torch.bool, device="cuda").tril()
def step():
    loss = model(tokens, labels=tokens, attention_mask=torch.ones_like(tokens), use_cache=False).loss  # here
    loss.backward()
"""
)
MASK = "attention_mask=torch.ones_like(tokens), use_cache=False"

GENERATE = (
    MODEL
    + """
model.cuda().eval()
tokens = torch.randint(1, 64, (2, 8), device="cuda")
def decode(model, input_ids, **_):
    for _ in range(16):
        input_ids = torch.cat([input_ids, model(input_ids).logits[:, -1:].argmax(-1)], 1)
    return input_ids
def step():
    model.generate(tokens, max_new_tokens=16, do_sample=False)  # here
"""
)

ENCODER = (
    MODEL
    + """
model = MegatronBertModel(MegatronBertConfig(**sizes)).cuda()
tokens = torch.randint(1, 64, (2, 32), device="cuda")
def step():
    model(tokens)  # here
"""
)


def test_the_filter_of_nan_losses_is_an_argument(spares: Spares) -> None:
    """Without it the Trainer asks nothing about the loss of a step."""
    switch = ("logging_nan_inf_filter=True", "logging_nan_inf_filter=False")
    spares(TRAINER, switch, rule="transformers", title="whether the loss is NaN", fix="logging_nan_inf_filter=False")


def test_the_log_is_read_in_steps_that_are_logged(spares: Spares) -> None:
    """With `logging_steps=50`, none of the captured steps is logged."""
    spares(
        TRAINER,
        ("logging_steps=1,", "logging_steps=50,"),
        rule="transformers",
        title="to log them",
        fix="logging_steps=50",
    )


def test_counted_tokens_are_read_unless_counting_is_off(spares: Spares) -> None:
    """By `include_num_input_tokens_seen`."""
    switch = ('include_num_input_tokens_seen="all"', 'include_num_input_tokens_seen="no"')
    spares(TRAINER, switch, rule="transformers", title="counts the tokens", fix="include_num_input_tokens_seen='no'")


def test_a_trainer_s_batches_are_copied_without_a_wait(spares: Spares) -> None:
    """With accelerate's `non_blocking`, which the Trainer passes on."""
    switch = ("use_cache=False,", "use_cache=False, accelerator_config={'non_blocking': True},")
    spares(
        TRAINER, switch, rule="accelerate", title="copies the batch", fix="accelerator_config={'non_blocking': True}"
    )


def test_a_mask_that_is_not_given_is_not_looked_at(spares: Spares) -> None:
    """And with a cache neither are positions."""
    spares(
        STEP, (MASK, "use_cache=True"), rule="transformers", title="anything is padded", fix="pass no attention_mask"
    )


def test_a_mask_of_four_dimensions_is_taken_as_it_is(spares: Spares) -> None:
    """Nothing is asked about it."""
    switch = (MASK, "attention_mask=square, use_cache=False")
    spares(STEP, switch, rule="transformers", title="anything is padded", fix="a mask of four dimensions")


def test_without_mask_and_cache_a_model_looks_for_packed_sequences(spares: Spares) -> None:
    """A cache spares it."""
    program = STEP.replace(MASK, "use_cache=False")
    spares(
        program, ("use_cache=False", "use_cache=True"), rule="transformers", title="are packed", fix="use_cache=True"
    )


def test_a_model_without_a_padding_token_does_not_look_for_it(spares: Spares) -> None:
    """MegatronBert without a mask warns of padding, once it has looked; Bert's own model doesn't look any more."""
    switch = (
        "MegatronBertModel(MegatronBertConfig(**sizes)).cuda()",
        "MegatronBertModel(MegatronBertConfig(**sizes)).cuda(); model.config.pad_token_id = None",
    )
    spares(ENCODER, switch, rule="transformers", title="looks for padding", fix="pad_token_id = None")


def test_generation_tests_each_token_unless_its_loop_is_your_own(spares: Spares) -> None:
    """On CUDA transformers 5 doesn't defer the test either."""
    switch = ("do_sample=False)", "do_sample=False, custom_generate=decode)")
    spares(GENERATE, switch, rule="generation-stop", title="for each token", fix="custom_generate=f")


def test_with_a_static_cache_only_the_prompt_s_mask_is_looked_at(run: Callable[[str], Seen]) -> None:
    """Else the mask of each token is."""
    as_it_is = run(GENERATE)
    static = run(
        GENERATE.replace("do_sample=False", "do_sample=False, cache_implementation='static', disable_compile=True")
    )
    requested, left = as_it_is.of("transformers", "asks at each token"), static.of("transformers", "asks at each token")
    assert requested[0].source is not None
    assert "cache_implementation='static'" in requested[0].fix
    assert sum(f.per_step for f in requested) >= 16
    assert sum(f.per_step for f in left) <= 2
