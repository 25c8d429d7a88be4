"""TRL: what SFTTrainer reads in each step."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("datasets")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import transformers
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import SFTConfig, SFTTrainer

words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1} | {f"w{i}": i for i in range(2, 64)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")

class Plain(SFTTrainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return transformers.Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)

sizes = dict(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, pad_token_id=0, eos_token_id=1))
arguments = SFTConfig(
    "trained", max_steps=20, per_device_train_batch_size=2, report_to=[], save_strategy="no", disable_tqdm=True,
    logging_steps=1000, bf16=False, gradient_checkpointing=False,
)
data = Dataset.from_dict({"input_ids": [[2 + (i + j) % 60 for j in range(16)] for i in range(64)]})
trainer = SFTTrainer(model, arguments, train_dataset=data, processing_class=tokenizer)
trainer.train()  # here
"""


def test_the_trainer_s_own_loss_reads_nothing(spares: Spares) -> None:
    """Whatever `logging_steps` says, SFTTrainer's does."""
    spares(
        PROGRAM,
        ("trainer = SFTTrainer(", "trainer = Plain("),
        rule="trl",
        title="SFTTrainer reads its metrics back",
        fix="return transformers.Trainer.compute_loss(self, model, inputs, return_outputs, num_items_in_batch)",
    )
