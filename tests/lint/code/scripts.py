"""Loops of a script, outside of functions: they get the same warnings as in one."""

import time

import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 1).cuda()
loader = DataLoader(torch.randn(64, 4), batch_size=8)
print(model(torch.randn(4, device="cuda")).item())

for x in loader:
    loss = model(x.cuda()).sum()  # WARNS to-device low
    print(loss.item())  # WARNS item low
    while loss.abs() > 1:  # WARNS tensor-bool low
        loss = loss / 2
for x in [1.0, 2.0]:
    print(torch.tensor(x).item())


def halved(loss):
    return loss.item() / 2  # WARNS item low


with torch.no_grad():
    for epoch in range(2):
        for x, y in loader:
            print(halved(model(x)))
        if epoch % 5 == 0:
            for x, y in loader:
                print(model(x).sum().item())  # WARNS item low

for _ in range(3):
    begin = time.perf_counter()
    model(x)
    torch.cuda.synchronize()  # WARNS timing low
    print(time.perf_counter() - begin)

if __name__ == "__main__":
    opt = torch.optim.SGD(model.parameters())
    for step, x in enumerate(loader):
        out = model(x)
        out.sum().backward()
        opt.step()
        scores = ranked(out)  # noqa: F821
        print(scores.unsqueeze(0).shape, scores.tolist())  # WARNS tolist
        print(out.mean().item())  # WARNS item
        if step % 100 == 0:
            for x in loader:
                print(model(x).sum().item())  # WARNS item low

val = DataLoader(torch.randn(64, 4), pin_memory=True)
for x in val:
    print(model(x.to("cuda", non_blocking=True)).argmax(1).cpu())  # WARNS cpu low
for x in testloader:  # noqa: F821
    print(model(x).sum().item())  # WARNS item low
hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)  # WARNS item low
batches = iter(loader)
for _ in range(10):
    print(model(next(batches).cuda()).sum().item())  # WARNS to-device item
while True:
    token = model(x)[:, -1].argmax(-1)
    if token.item() == 2:  # WARNS item
        break
while obs is not None:  # noqa: F821
    action = torch.distributions.Categorical(logits=policy(obs)).sample()  # noqa: F821  # WARNS distribution-args
    obs = env.step(action.item())  # noqa: F821  # WARNS item
for x in loader:
    print(model(x).sum().item())  # WARNS item
    for _ in range(3):
        model(x).sum().backward()
for x in range(3):
    print(model.weight.sum().item())


def evaluate(texts):
    for text in texts:
        out = model(text)
        print(out.mean().item())  # WARNS item low
