"""Patterns in a module's forward and what it calls."""

import lightning
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F
from torch.profiler import record_function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.register_buffer("scale", torch.ones(()))
        self.norm = nn.BatchNorm1d(2, momentum=None)  # WARNS batch-norm-momentum
        print(self.scale.item())

    def forward(self, x, lengths: torch.Tensor, flag: bool = False):
        x = self.inner(x)
        mask = x > 0
        y = x[mask]  # WARNS boolean-index
        z = x[x.sum(1) > 0]  # WARNS boolean-index
        x[mask] = 0.0
        x[mask] = y  # WARNS boolean-assign
        x = x.masked_fill(mask, 0.0)
        x = torch.where(mask, x, 0.0)
        i = torch.where(mask)  # WARNS nonzero
        j = mask.nonzero()  # WARNS nonzero
        k = torch.nonzero(mask, as_tuple=True)  # WARNS nonzero
        torch.nonzero_static(mask, size=4)
        u = torch.unique(lengths)  # WARNS unique
        if torch.numel(u) < 2 or len(u) > 3 or flag or u.shape[0]:
            return y
        m = x.masked_select(mask)  # WARNS masked-select
        torch.bincount(lengths)  # WARNS bincount
        F.one_hot(lengths)  # WARNS one-hot
        F.one_hot(lengths, 8), F.one_hot(lengths, num_classes=8)
        torch.repeat_interleave(x, lengths, dim=0)  # WARNS repeat-interleave
        x.repeat_interleave(lengths, 0, output_size=8), x.repeat_interleave(2, 0)
        if mask.any():  # WARNS tensor-bool
            x = x * 2
        while (x.abs() > 1).all():  # WARNS tensor-bool
            x = x / 2
        if not (lengths > 1).any() and flag:  # WARNS tensor-bool
            return z
        r = 1 if x.sum() > 0 else 2  # WARNS tensor-bool
        if x is not None and x.dim() == 2 and x.dtype == torch.float and lengths.shape[0] == 3:
            x = x + r
        c = torch.tensor([1.0, 2.0], device=x.device)  # WARNS tensor-constructor
        d = torch.full((2,), 1.0, device=x.device) + torch.zeros_like(x) + x.new_zeros(2)
        e = torch.tensor(3.0).to(x.device)  # WARNS to-device
        e = e.cuda() if flag else e
        f = x.new_tensor([1.0])  # WARNS tensor-constructor
        n = lengths.max()
        g = x[:n]  # WARNS tensor-index
        h = torch.arange(n)  # WARNS number-argument
        h = torch.arange(n.item())  # WARNS item
        h = torch.arange(lengths.shape[0], device=x.device)
        i = x[0], x[:, 1:], x[..., None], x[lengths]
        with record_function("check"):
            same = torch.equal(x, g)  # WARNS equal
            torch.allclose(x, g)  # WARNS allclose
        if 3 in lengths:  # WARNS contains
            return h
        torch.linalg.inv(x)  # WARNS linalg-check
        torch.linalg.inv_ex(x)
        Normal(x, x.exp())  # WARNS distribution-args
        Normal(x, x.exp(), validate_args=False)
        if torch.jit.is_tracing() and mask.any():  # WARNS tensor-bool
            pass
        if torch.compiler.is_compiling():
            x.sum().item()
        if x.device.type == "cpu":
            x.sum().item()
        torch.tensor([n, n])  # WARNS tensor-of-tensors
        return self._loss(c + d + e + f, i, j, k, m, same)

    def _loss(self, x, *rest):
        if x.detach().sum() > 0:  # WARNS tensor-bool
            return x
        return max(x.sum(), x.mean())  # WARNS tensor-bool

    def describe(self, x):
        return x.detach().mean().item()


class Lit(lightning.LightningModule):
    def on_train_batch_end(self, outputs, batch, batch_idx):
        print(outputs["loss"].item())  # WARNS item

    def on_before_optimizer_step(self, optimizer):
        for p in self.parameters():
            if torch.isnan(p.grad).any():  # WARNS nan-guard
                raise ValueError("nan")

    def on_validation_batch_end(self, outputs, batch, batch_idx):
        self.seen.append(outputs.item())  # WARNS item low

    def on_train_epoch_end(self):
        print(self.total.item())
