"""Programs for `benchmarks.watched_programs` that are written as users write them, not drawn from its catalogue.

Each is the text of a module with `step()`, `other()` for a second thread, `over` to end that, and `spent`, to which
each marked line's clocks are added. A mark at the end of a line names it; `waits` has the marks of waits for the
device, and `works` those of lines whose share of the time counts, whatever it is spent on.
"""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """A program: its name, the marks of its waits and of its other lines, and its text."""

    name: str
    waits: tuple[str, ...]
    works: tuple[str, ...]
    text: str


HEAD = """
import queue, threading, time, torch
clock = time.monotonic_ns
spent = []
device = "cuda" if torch.cuda.is_available() else "cpu"
over = threading.Event()

def other():
    pass

def mlp(width, depth):
    layers = [part for _ in range(depth) for part in (torch.nn.Linear(width, width), torch.nn.GELU())]
    return torch.nn.Sequential(*layers)

"""

PREFETCHER = """
model = mlp(SIZE, 6).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batches = queue.Queue(2)
stream = torch.cuda.Stream() if device == "cuda" else None

def other():
    while not over.is_set():
        batch = torch.randn(1024, SIZE)
        if stream is not None:
            with torch.cuda.stream(stream):
                batch = batch.pin_memory().to(device, non_blocking=True)
            stream.synchronize()
        try:
            batches.put(batch, timeout=1.0)
        except queue.Full:
            pass

def step():
    began = clock()
    x = batches.get()  # get
    spent.append(("get", began, clock()))
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    began = clock()
    history = loss.detach().cpu().item()  # loss
    spent.append(("loss", began, clock()))
"""

BACKWARD = """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        began = clock()
        largest = grad.abs().max().item()  # largest
        spent.append(("largest", began, clock()))
        return grad * (2 if largest < 1e6 else 1)

model = mlp(SIZE, 4).to(device)
head = mlp(SIZE, 4).to(device)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()])
x = torch.randn(1024, SIZE, device=device)

def step():
    loss = head(Scaled.apply(model(x))).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    began = clock()
    if not torch.isfinite(loss):  # finite
        raise SystemExit
    spent.append(("finite", began, clock()))
"""

HOST_BOUND = """
state = torch.zeros(64, device=device)
rewards = []

def step():
    global state
    for _ in range(6):
        began = clock()
        action = sum([state * (k / 40) for k in range(40)]).sum()  # policy
        spent.append(("policy", began, clock()))
        began = clock()
        number = action.item()  # action
        spent.append(("action", began, clock()))
        began = clock()
        rewards.append(sum(number * k for k in range(2000)))  # environment
        spent.append(("environment", began, clock()))
        state = state * 0.5 + number % 1
    del rewards[:-100]
"""

TWO_OPTIMIZERS = """
generator, critic = mlp(SIZE, 4).to(device), mlp(SIZE, 4).to(device)
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
real = torch.randn(768, SIZE, device=device)
log = {}

def step():
    noise = torch.randn(768, SIZE, device=device)
    fake = generator(noise)
    loss_critic = critic(fake.detach()).mean() - critic(real).mean()
    of_critic.zero_grad()
    loss_critic.backward()
    of_critic.step()
    began = clock()
    log["critic"] = float(loss_critic.detach())  # critic
    spent.append(("critic", began, clock()))
    loss = -critic(fake).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
    began = clock()
    log["generator"] = loss.detach().cpu().numpy().tolist()  # generator
    spent.append(("generator", began, clock()))
"""

GENERATION = """
layer = torch.nn.TransformerEncoderLayer(SIZE, 8, 2 * SIZE, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device).eval()
embedding = torch.nn.Embedding(1000, SIZE).to(device)

@torch.no_grad()
def step():
    tokens = torch.randint(1, 1000, (16, 64), device=device)
    texts = []
    for _ in range(12):
        hidden = model(embedding(tokens))[:, -1]
        following = (hidden @ embedding.weight.T).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, following], 1)
        began = clock()
        if (following == 0).all():  # ended
            break
        spent.append(("ended", began, clock()))
        texts.append(following)
    began = clock()
    rows = torch.cat(texts, 1).tolist()  # rows
    spent.append(("rows", began, clock()))
    began = clock()
    words = [" ".join(f"<{token}>" for token in row) for row in rows * 20]  # words
    spent.append(("words", began, clock()))
"""

EVALUATION = """
model = mlp(SIZE, 8).to(device).eval()
data = [(torch.randn(1024, SIZE), torch.randint(0, SIZE, (1024,))) for _ in range(4)]
numbers = []

def other():
    while not over.is_set():
        numbers[:] = sorted(hash(str(k)) for k in range(3000))
        time.sleep(0.004)

@torch.inference_mode()
def step():
    correct = 0
    for x, y in data:
        began = clock()
        x = x.to(device)  # upload
        spent.append(("upload", began, clock()))
        y = y.to(device)
        guess = model(x).argmax(1)
        began = clock()
        correct += (guess == y).sum().item()  # correct
        spent.append(("correct", began, clock()))
        wrong = x[guess != y]
        began = clock()
        worst = wrong.norm(dim=1).topk(4).values.cpu()  # worst
        spent.append(("worst", began, clock()))
"""

JOBS = (
    Job("prefetcher", ("loss",), ("get",), HEAD + PREFETCHER),
    Job("backward", ("largest", "finite"), (), HEAD + BACKWARD),
    Job("host_bound", ("action",), ("policy", "environment"), HEAD + HOST_BOUND),
    Job("two_optimizers", ("critic", "generator"), (), HEAD + TWO_OPTIMIZERS),
    Job("generation", ("ended", "rows"), ("words",), HEAD + GENERATION),
    Job("evaluation", ("correct", "worst"), ("upload",), HEAD + EVALUATION),
)
"""The programs; `SIZE` in a text stands for the width of its matrices."""
