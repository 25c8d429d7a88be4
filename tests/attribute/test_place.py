"""Whose line it is: the innermost frame of the user's own code, whatever frameworks lie below it."""

from __future__ import annotations

from syncscan.attribute.place import modules, parse, pick
from syncscan.model.capture import Frame
from syncscan.model.finding import Source

TRAIN = Frame("train.py", 10, "step")
TENSOR = Frame("torch/_tensor.py", 1000, "unique")
CLIP = Frame("torch/nn/utils/clip_grad.py", 200, "clip_grad_norm_")


def test_the_innermost_user_frame_is_picked():
    """Of two user frames the inner one is the place."""
    helper = Frame("loss.py", 3, "loss")
    place = pick([TRAIN, helper], exact=True)
    assert place.user == Source("loss.py", 3, "loss", exact=True)
    assert (place.framework, place.owner) == (None, "user")


def test_a_wrapper_of_torch_leaves_it_the_users():
    """`Tensor.unique` only passes the call on: the sync is the user's, torch's line is kept as the second place."""
    place = pick([TRAIN, TENSOR], exact=False)
    assert place.user == Source("train.py", 10, "step", exact=False)
    assert place.framework == Source("torch/_tensor.py", 1000, "unique", exact=False)
    assert place.owner == "user"


def test_a_framework_that_decides_owns_it():
    """A sync that torch's own logic makes is the framework's, called from the user's line."""
    place = pick([TRAIN, CLIP], exact=False)
    assert place.user == Source("train.py", 10, "step", exact=False)
    assert place.owner == "framework"


def test_without_user_frames():
    """Frameworks alone have no user line; nothing at all is unknown."""
    assert pick([CLIP], exact=False).owner == "framework"
    assert pick([CLIP], exact=False).user is None
    assert pick([], exact=False).owner == "unknown"


def test_names_become_frames_and_modules():
    """The profiler's names of frames and modules are told apart, built-ins are neither."""
    names = ["train.py(10): step", "nn.Module: Net_0", "<built-in method item of Tensor object at 0x7f>"]
    assert parse(names) == (TRAIN,)
    assert modules(names) == ("Net_0",)


def test_a_line_of_more_digits_than_python_reads_is_no_frame():
    """The text is the trace's, of any length."""
    assert parse(["train.py(10): step", f"loss.py({'9' * 5000}): loss"]) == (TRAIN,)
