"""Synchronises, allocator, settings and exceptions."""

import time

import torch
import torch.distributed as dist

import syncscan

torch.autograd.set_detect_anomaly(True)  # WARNS anomaly-mode
torch.autograd.set_detect_anomaly(False)
torch.cuda.synchronize()


def step(model, opt, batch):
    loss = model(batch).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # WARNS clip-grad
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()  # WARNS item
    opt.step()
    torch.cuda.synchronize()  # WARNS explicit-sync
    torch.cuda.empty_cache()  # WARNS empty-cache
    dist.barrier()  # WARNS barrier
    dist.all_reduce(loss)
    for p in model.parameters():
        if p.grad.norm() > 10:  # WARNS tensor-bool
            p.grad = None
        if p.grad[0].sum() != p.grad[0].sum():  # WARNS nan-guard
            p.grad = None
    with syncscan.allow("the scheduler reads it"):
        loss.item()  # ALLOWED item
    loss.item()  # syncscan: allow[item] the scheduler needs it # ALLOWED item
    # syncscan: allow[*] all of them
    loss.item()  # ALLOWED item
    loss.item()  # syncscan: allow[cpu] another rule # WARNS item
    return norm


def timed(net, x):
    done = torch.cuda.Event(enable_timing=True)
    for _ in range(10):
        begin = time.perf_counter()
        net(x)
        torch.cuda.synchronize()  # WARNS timing low
        done.synchronize()  # WARNS timing low
        print(time.perf_counter() - begin)


def main(model, opt, batches):
    for batch in batches:
        step(model, opt, batch)
    torch.cuda.synchronize()
