"""Constants that a module makes or moves in every call."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import forward_constant
from syncscan.model.fix import Safety
from tests.fixing.example import Rewritten

REWRITE = forward_constant


def module(forward: str, init: str = "", more: str = "") -> str:
    """Return a program that calls a module four times; `init` and `forward` are lines of its methods."""
    begin = ["super().__init__()", "self.linear = torch.nn.Linear(6, 6)", *filter(None, init.split("\n"))]
    lines = [
        "class Net(torch.nn.Module):",
        "    def __init__(self):",
        *(f"        {line}" for line in begin),
        "    def forward(self, x):",
        *(f"        {line}" for line in forward.split("\n")),
        "net = Net().to(device)",
        *filter(None, more.split("\n")),
        "for step in range(4):",
        "    y = net(y)",
        "result = y.tolist(), sorted(net.state_dict()), net.linear.weight.dtype",
    ]
    return "\n".join(lines)


def made(forward: str, buffer: str, init: str = "") -> str:
    """Return the program after the change, with the buffer behind `super().__init__()`."""
    register = f"        self.register_buffer({buffer}, persistent=False)"
    return module(forward, init).replace("super().__init__()", f"super().__init__()\n{register}")


FIXED = {
    module("return self.linear(x) * torch.tensor([0.5], device=x.device)"): made(
        "return self.linear(x) * self.constant.to(x.device)", '"constant", torch.tensor([0.5])'
    ),
    module("rows = torch.tensor([1, 0], device=x.device)\nreturn self.linear(x)[rows]"): made(
        "rows = self.rows.to(x.device)\nreturn self.linear(x)[rows]", '"rows", torch.tensor([1, 0])'
    ),
    module("mask = torch.tril(torch.ones(6, 6)).to(x.device)\nreturn self.linear(x) @ mask"): made(
        "mask = self.mask.to(x.device)\nreturn self.linear(x) @ mask", '"mask", torch.tril(torch.ones(6, 6))'
    ),
    module("return self.linear(x) + torch.arange(self.n).to(x.device)", "self.n = 6"): module(
        "return self.linear(x) + self.constant.to(x.device)",
        'self.n = 6\nself.register_buffer("constant", torch.arange(self.n), persistent=False)',
    ),
    module("return self.linear(x) * self.scale.to(x.device)", "self.scale = torch.tensor([0.5])"): module(
        "return self.linear(x) * self.scale.to(x.device)",
        'self.register_buffer("scale", torch.tensor([0.5]), persistent=False)',
    ),
    module("return self.linear(x) - torch.tensor([[0.5] * 6]).view(1, 6).to(x.device)"): made(
        "return self.linear(x) - self.constant.to(x.device)", '"constant", torch.tensor([[0.5] * 6]).view(1, 6)'
    ),
    module(
        "return self.linear(x) * torch.tensor(self.scales, device=x.device)",
        "self.scales = [0.5, 2.0, 1.0, 0.1, 3.0, 4.0]",
    ): module(
        "return self.linear(x) * self.constant.to(x.device)",
        "self.scales = [0.5, 2.0, 1.0, 0.1, 3.0, 4.0]\n"
        'self.register_buffer("constant", torch.tensor(self.scales), persistent=False)',
    ),
    module("return self.linear(x) * self.scale[: x.shape[1]].to(x.device)", "self.scale = torch.arange(9.0)"): module(
        "return self.linear(x) * self.scale[: x.shape[1]].to(x.device)",
        'self.register_buffer("scale", torch.arange(9.0), persistent=False)',
    ),
    "SCALE = torch.tensor([0.5])\n" + module("return self.linear(x) * SCALE.to(x.device)"): (
        "SCALE = torch.tensor([0.5])\n" + made("return self.linear(x) * self.scale.to(x.device)", '"scale", SCALE')
    ),
}
KEPT = {
    "a tensor of the file that changes": "SCALE = torch.tensor([0.5])\n"
    + module("SCALE.add_(1)\nreturn self.linear(x) * SCALE.to(x.device)"),
    "a tensor of the file that is replaced": "SCALE = torch.tensor([0.5])\n"
    + module("return self.linear(x) * SCALE.to(x.device)", more="SCALE = torch.tensor([2.0])"),
    "a list that grows": module(
        "self.scales.append(1.0)\nreturn self.linear(x) * torch.tensor(self.scales, device=x.device).sum()",
        "self.scales = [0.5, 2.0]",
    ),
    "memory without values": module("return self.linear(x) * (torch.Tensor(1).to(x.device) * 0)"),
    "it depends on an argument": module("return self.linear(x) * torch.tensor([float(len(x))], device=x.device)"),
    "a number that changes": module(
        "self.n += 1\nreturn self.linear(x) * torch.tensor([self.n], device=x.device)", "self.n = 6"
    ),
    "a number that others assign": module(
        "return self.linear(x) * torch.tensor([self.n], device=x.device)", "self.n = 6", "net.n = 5"
    ),
    "random numbers": module("return self.linear(x) * torch.rand(6).to(x.device)"),
    "a cast rounds a buffer": module(
        "return self.linear(x) * torch.tensor([0.3], device=x.device)", more="net.double()\ny = y.double()"
    ),
    "a cast by to()": module(
        "return self.linear(x) * torch.tensor([0.3], device=x.device)", more="net.to(torch.float64)\ny = y.double()"
    ),
    "a dtype of the argument": module("return self.linear(x) * torch.tensor([0.3], device=x.device, dtype=x.dtype)"),
    "it is written to": module(
        "scale = torch.tensor([0.5], device=x.device)\nscale += 1\nreturn self.linear(x) * scale"
    ),
    "a view of it is written to": module(
        "scale = torch.tensor([0.5], device=x.device)\nview = scale.view(1, 1)\nview += 1\nreturn self.linear(x) * view"
    ),
    "it is stored": module("self.last = torch.tensor([0.5], device=x.device)\nreturn self.linear(x) * self.last"),
    "it is returned": module("scale = torch.tensor([[0.5] * 6] * 4, device=x.device)\nself.linear(x)\nreturn scale"),
    "another name of it is written to": module(
        "scale = torch.tensor([0.5], device=x.device).float()\nscale += 1\nreturn self.linear(x) * scale"
    ),
    "the attribute is used on the host too": module(
        "return self.linear(x) * self.scale.to(x.device) * self.scale.numpy().sum()", "self.scale = torch.tensor([0.5])"
    ),
    "a parameter is made": module("return self.linear(x) * torch.tensor([0.5], device=x.device, requires_grad=True)"),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result and state dict."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]


def test_what_other_files_do_with_the_module_makes_it_unsafe() -> None:
    """A second script may cast the module, or load one that was pickled whole."""
    assert forward_constant.SAFETY is Safety.UNSAFE
