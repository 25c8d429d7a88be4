"""Numbers that one statement, or successive ones, read one by one."""

from __future__ import annotations

from syncscan.fixing.rewrites.several_reads import statement_reads
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = statement_reads
LOOP = "result = []\nfor loss in losses:\n    other = loss.exp()\n"
TURN = "result = []\nfor loss in losses:\n"
SHOWN = "    result.append(f'{a:.4f} {b:.4f}')"
FIXED = {
    f"{LOOP}    result.append('%.4f %.4f' % (loss.item(), other.item()))": (
        f"{LOOP}    loss_value, other_value = torch.stack([loss, other]).tolist()\n"
        "    result.append('%.4f %.4f' % (loss_value, other_value))"
    ),
    f"{LOOP}    result.append('%.4f %.4f' % (loss.data.item(), other.data.cpu().item()))": (
        f"{LOOP}    loss_value, other_value = torch.stack([loss.data, other.data]).tolist()\n"
        "    result.append('%.4f %.4f' % (loss_value, other_value))"
    ),
    f"{LOOP}    result.append(f'{{loss.item():.3f}} {{other.item():.3f}} {{2 * loss.item():.3f}}')": (
        f"{LOOP}    loss_value, other_value = torch.stack([loss, other]).tolist()\n"
        "    result.append(f'{loss_value:.3f} {other_value:.3f} {2 * loss_value:.3f}')"
    ),
    f"{LOOP}    result.append({{'a': loss.item(), 'b': (x * loss).double().mean().item()}})\nresult = repr(result)": (
        f"{LOOP}    loss_value, mean_value = torch.stack([\n"
        "        loss,\n        (x * loss).double().mean(),\n    ]).tolist()\n"
        "    result.append({'a': loss_value, 'b': mean_value})\nresult = repr(result)"
    ),
    f"{LOOP}    a, b = loss.item(), float(other)\n    result.append(f'{{a}} {{b}}')": (
        f"{LOOP}    a, b = torch.stack([loss, other]).tolist()\n    result.append(f'{{a}} {{b}}')".replace(
            "{{", "{"
        ).replace("}}", "}")
    ),
    (
        "def step(loss):\n    return loss.item(), loss.sqrt().detach().item()\n"
        "result = repr([step(loss) for loss in losses])"
    ): (
        "def step(loss):\n    loss_value, loss_sqrt = torch.stack([loss, loss.sqrt().detach()]).tolist()\n"
        "    return loss_value, loss_sqrt\n"
        "result = repr([step(loss) for loss in losses])"
    ),
    f"{LOOP}    result.append('{{}} of {{}}'.format((x > loss).sum().item(), (y > loss).sum().item()))": (
        f"{LOOP}    sum_value, sum_value_2 = torch.stack([\n"
        "        (x > loss).sum(),\n        (y > loss).sum(),\n    ]).tolist()\n"
        "    result.append('{} of {}'.format(sum_value, sum_value_2))"
    ),
}
FIXED = {key.replace("{{", "{").replace("}}", "}"): value for key, value in FIXED.items()}
FIXED |= {
    f"{TURN}    a = loss.item()\n    b = loss.exp().item()\n{SHOWN}": (
        f"{TURN}    a, b = torch.stack([loss, loss.exp()]).tolist()\n{SHOWN}"
    ),
    f"{TURN}    a = float(loss + 1)\n    b = (-loss).detach().cpu().item()\n\n{SHOWN}": (
        f"{TURN}    a, b = torch.stack([loss + 1, (-loss).detach()]).tolist()\n\n{SHOWN}"
    ),
    (
        f"{TURN}    a = loss.half().item()\n    b = loss.half().square().item()\n    c = loss.half().exp().item()\n"
        "    result.append({'a': a, 'b': b, 'c': c})\nresult = repr(result)"
    ): (
        f"{TURN}    a, b, c = torch.stack([\n        loss.half(),\n"
        "        loss.half().square(),\n        loss.half().exp(),\n    ]).tolist()\n"
        "    result.append({'a': a, 'b': b, 'c': c})\nresult = repr(result)"
    ),
    (
        f"{TURN}    a = (x > loss).sum().item()\n    b = (y > loss).sum().item()\n"
        "    result.append('%d of %d' % (a, b))"
    ): (
        f"{TURN}    a, b = torch.stack([(x > loss).sum(), (y > loss).sum()]).tolist()\n"
        "    result.append('%d of %d' % (a, b))"
    ),
    (
        f"{TURN}    a = (loss + 1).sqrt().exp().item()\n"
        f"    b = (x * loss).sum(dim=1).exp().log().abs().mean().item()\n{SHOWN}"
    ): (
        f"{TURN}    a, b = torch.stack([\n        (loss + 1).sqrt().exp(),\n"
        "        (x * loss).sum(dim=1).exp().log().abs().mean(),\n    ]).tolist()\n"
        f"{SHOWN}"
    ),
    (
        "def show(loss):\n    a = loss.item()\n    b = loss.sqrt().item()\n    return f'{a} {b}'\n"
        "result = [show(loss) for loss in losses]"
    ): (
        "def show(loss):\n    a, b = torch.stack([loss, loss.sqrt()]).tolist()\n    return f'{a} {b}'\n"
        "result = [show(loss) for loss in losses]"
    ),
    f"{TURN}    a = loss.item()\n    b = loss.half().item()\n{SHOWN}": (
        f"{TURN}    a, b = torch.stack([loss, loss.half()]).tolist()\n{SHOWN}"
    ),
}
KEPT = {
    "one is a whole number": f"{LOOP}    result.append((loss.item(), (x > loss).sum().item()))",
    "one may not be read": f"{LOOP}    result.append((loss.item(), other.item() if loss.dim() else 0.0))",
    "the second is read of what the first call changed": (
        "def twice(t):\n    t += t\n    return 1\n"
        + f"{LOOP}    result.append((loss.item(), twice(other), other.item()))"
    ),
    "a clock is read between": (
        f"import time\nstart = time.time()\n{LOOP}    result.append((loss.item(), time.time() < start, other.item()))"
    ),
    "one lies on the host where the condition holds": (
        f"{LOOP}    if loss.dim():\n        other = torch.zeros(())\n    result.append((loss.item(), other.item()))"
    ),
    "it is one number twice": f"{LOOP}    result.append((loss.item(), loss.item()))",
    "they are read once": "result = f'{losses[0].item()} {losses[1].item()}'",
    "there are two devices": (
        f"first, second = 'cuda:0', 'cuda:1'\n{LOOP}    result.append((loss.item(), other.item()))"
    ),
    "their dtypes differ": f"{TURN}    a = loss.item()\n    b = (x > loss).sum().item()\n{SHOWN}",
    "one is read as another type": f"{TURN}    a = float((x > loss).sum())\n    b = (y > loss).sum().item()\n{SHOWN}",
    "one is a matrix": f"{TURN}    a = loss.item()\n    b = loss.reshape(1, 1).item()\n{SHOWN}",
    "a branch decides": f"{TURN}    a = loss.item()\n    b = loss.exp().item()\n    if a > 0:\n    {SHOWN}",
    "something stands between": f"{TURN}    a = loss.item()\n    loss = loss + 1\n    b = loss.exp().item()\n{SHOWN}",
    "the second needs the first": f"{TURN}    a = loss.item()\n    b = (loss * a).item()\n{SHOWN}",
    "the second writes to what the first reads": f"{TURN}    a = loss.item()\n    b = loss.add_(1).item()\n{SHOWN}",
    "a function computes the second": (
        f"def twice(t):\n    t += t\n    return t.exp()\n{TURN}    a = loss.item()\n    b = twice(loss).item()\n{SHOWN}"
    ),
    "one of them is in a branch": (
        f"{TURN}    b = 0.0\n    a = loss.item()\n    if len(result) % 2:\n        b = loss.exp().item()\n{SHOWN}"
    ),
    "an error is handled": (
        f"{TURN}    try:\n        a = loss.item()\n        b = loss.exp().item()\n"
        "    except RuntimeError:\n        b = 0.0\n"
        f"{SHOWN}"
    ),
    "they have the same name": f"{TURN}    b = loss.item()\n    b = loss.exp().item()\n    a = b\n{SHOWN}",
    "a comment is lost": f"{TURN}    a = loss.item()\n    b = loss.exp().item()  # perplexity\n{SHOWN}",
    "successive statements name two devices": (
        f"first, second = 'cuda:0', 'cuda:1'\n{TURN}    a = loss.item()\n    b = loss.exp().item()\n{SHOWN}"
    ),
    "successive statements are run once": "a = losses[0].item()\nb = losses[1].item()\nresult = f'{a} {b}'",
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]
