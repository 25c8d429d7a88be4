"""Shapes in a module's forward and what it calls."""

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
        self.norm = nn.BatchNorm1d(2, momentum=None)  # GUESS batch-norm-momentum
        print(self.scale.item())

    def forward(self, x, lengths: torch.Tensor, flag: bool = False):
        x = self.inner(x)
        mask = x > 0
        y = x[mask]  # GUESS boolean-index
        z = x[x.sum(1) > 0]  # GUESS boolean-index
        x[mask] = 0.0
        x[mask] = y  # GUESS boolean-assign
        x = x.masked_fill(mask, 0.0)
        x = torch.where(mask, x, 0.0)
        i = torch.where(mask)  # GUESS nonzero
        j = mask.nonzero()  # GUESS nonzero
        k = torch.nonzero(mask, as_tuple=True)  # GUESS nonzero
        torch.nonzero_static(mask, size=4)
        u = torch.unique(lengths)  # GUESS unique
        if torch.numel(u) < 2 or len(u) > 3 or flag or u.shape[0]:
            return y
        m = x.masked_select(mask)  # GUESS masked-select
        torch.bincount(lengths)  # GUESS bincount
        F.one_hot(lengths)  # GUESS one-hot
        F.one_hot(lengths, 8), F.one_hot(lengths, num_classes=8)
        torch.repeat_interleave(x, lengths, dim=0)  # GUESS repeat-interleave
        x.repeat_interleave(lengths, 0, output_size=8), x.repeat_interleave(2, 0)
        if mask.any():  # GUESS tensor-bool
            x = x * 2
        while (x.abs() > 1).all():  # GUESS tensor-bool
            x = x / 2
        if not (lengths > 1).any() and flag:  # GUESS tensor-bool
            return z
        r = 1 if x.sum() > 0 else 2  # GUESS tensor-bool
        if x is not None and x.dim() == 2 and x.dtype == torch.float and lengths.shape[0] == 3:
            x = x + r
        c = torch.tensor([1.0, 2.0], device=x.device)  # GUESS tensor-constructor
        d = torch.full((2,), 1.0, device=x.device) + torch.zeros_like(x) + x.new_zeros(2)
        e = torch.tensor(3.0).to(x.device)  # GUESS to-device
        e = e.cuda() if flag else e
        f = x.new_tensor([1.0])  # GUESS tensor-constructor
        n = lengths.max()
        g = x[:n]  # GUESS tensor-index
        h = torch.arange(n)  # GUESS number-argument
        h = torch.arange(n.item())  # GUESS item
        h = torch.arange(lengths.shape[0], device=x.device)
        i = x[0], x[:, 1:], x[..., None], x[lengths]
        with record_function("check"):
            same = torch.equal(x, g)  # GUESS equal
            torch.allclose(x, g)  # GUESS allclose
        if 3 in lengths:  # GUESS contains
            return h
        torch.linalg.inv(x)  # GUESS linalg-check
        torch.linalg.inv_ex(x)
        Normal(x, x.exp())  # GUESS distribution-args
        Normal(x, x.exp(), validate_args=False)
        if torch.jit.is_tracing() and mask.any():  # GUESS tensor-bool
            pass
        if torch.compiler.is_compiling():
            x.sum().item()
        if x.device.type == "cpu":
            x.sum().item()
        torch.tensor([n, n])  # GUESS tensor-of-tensors
        return self._loss(c + d + e + f, i, j, k, m, same)

    def _loss(self, x, *rest):
        if x.detach().sum() > 0:  # GUESS tensor-bool
            return x
        if isinstance(x, float):
            return float(x)
        return max(x.sum(), x.mean())  # GUESS tensor-bool

    def describe(self, x):
        return x.detach().mean().item()


class Lit(lightning.LightningModule):
    def on_train_batch_end(self, outputs, batch, batch_idx):
        print(outputs["loss"].item())  # GUESS item

    def on_before_optimizer_step(self, optimizer):
        for p in self.parameters():
            if torch.isnan(p.grad).any():  # GUESS nan-guard
                raise ValueError("nan")

    def on_validation_batch_end(self, outputs, batch, batch_idx):
        self.seen.append(outputs.item())  # GUESS item low

    def on_train_epoch_end(self):
        print(self.total.item())
