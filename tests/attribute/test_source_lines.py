"""The user's line and the framework's are picked from a stack."""

from __future__ import annotations

import pytest

from syncscan.attribute.source_lines import modules, parse, path_in_program, pick, program_root
from syncscan.model.capture import Frame
from syncscan.model.finding import Source

TRAIN = Frame("train.py", 10, "step")
TENSOR = Frame("torch/_tensor.py", 1000, "unique")
CLIP = Frame("torch/nn/utils/clip_grad.py", 200, "clip_grad_norm_")


def test_the_innermost_user_frame_is_picked():
    """With two user frames, the inner one is the place."""
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


def test_the_frameworks_line_is_the_one_that_decides():
    """Below it torch's wrappers only pass the call on, and say nothing of why."""
    metric = Frame("torchmetrics/functional/stat_scores.py", 80, "_validate")
    place = pick([TRAIN, metric, Frame("torch/functional.py", 900, "unique"), TENSOR], exact=True)
    assert place.framework == Source("torchmetrics/functional/stat_scores.py", 80, "_validate", exact=True)
    assert place.owner == "framework"


def test_the_standard_library_decides_nothing():
    """`copy.deepcopy` of a tensor waits for the program that called it."""
    assert pick([TRAIN, Frame("/usr/lib/python3.12/copy.py", 128, "deepcopy"), TENSOR], exact=True).owner == "user"


@pytest.mark.parametrize(
    ("entry", "in_loop"),
    [
        (Frame("transformers/trainer.py", 1520, "train"), True),
        (Frame("/venv/lib/python3.12/site-packages/lightning/pytorch/trainer/trainer.py", 580, "fit"), True),
        (Frame("transformers/generation/utils.py", 2658, "generate"), False),
        (Frame("torch/optim/lbfgs.py", 300, "fit"), False),
    ],
)
def test_a_line_that_starts_a_loop_is_known(entry: Frame, in_loop: bool):
    """Every sync of a trainer's has the line of `train()` as the user's; a call in the step is a place of its own."""
    assert pick([TRAIN, Frame("contextlib.py", 81, "inner"), entry, CLIP], exact=True).in_loop == in_loop


def test_a_users_code_inside_of_a_loop_is_a_place():
    """The model's own line, called by a trainer, isn't the one that starts the loop."""
    model = Frame("model.py", 7, "forward")
    assert not pick([TRAIN, Frame("transformers/trainer.py", 1520, "train"), model, CLIP], exact=True).in_loop


def test_a_library_s_line_is_the_one_that_reads_not_a_helper_of_it():
    """Two reads of Lightning's go through one function, and are two places."""
    fit = Frame("pytorch_lightning/trainer/trainer.py", 580, "fit")
    bar = Frame("pytorch_lightning/trainer/connectors/logger_connector/result.py", 490, "metrics")
    log = Frame("pytorch_lightning/trainer/connectors/logger_connector/logger_connector.py", 110, "log_metrics")
    apply = Frame("lightning_utilities/core/apply_func.py", 60, "apply_to_collection")
    item = Frame("/venv/lib/python3.12/site-packages/lightning_fabric/utilities/apply_func.py", 134, "to_item")
    for reader in (bar, log):
        place = pick([TRAIN, fit, reader, apply, item], exact=True)
        assert place.framework == Source(reader.file, reader.line, reader.function, exact=True)


def test_a_wrapper_alone_is_no_library_s_place():
    """With `torch.set_default_device` each call goes through one of torch's: without more frames nobody is known."""
    wrapper = Frame("torch/utils/_device.py", 116, "__torch_function__")
    assert pick([wrapper], exact=True).owner == "unknown"
    assert pick([CLIP, wrapper], exact=True).framework == Source(CLIP.file, CLIP.line, CLIP.function, exact=True)


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


def stack(*files: str) -> tuple[Frame, ...]:
    """A stack through these files, outermost first."""
    return tuple(Frame(file, 1, "f") for file in files)


@pytest.mark.parametrize("home", ["/home/a/project", "/mnt/jobs/17/checkout", "C:\\Users\\a\\project"])
def test_a_program_looks_the_same_in_every_folder(home: str) -> None:
    """Its entry's folder is the root; modules below and beside it get the same paths in each."""
    root = program_root([stack(f"{home}/scripts/train.py", f"{home}/nets/unet.py"), stack(f"{home}/scripts/train.py")])
    files = ("scripts/train.py", "scripts/lib/loss.py", "nets/unet.py")
    seen = [path_in_program(f"{home}/{file}", root) for file in files]
    assert seen == ["train.py", "lib/loss.py", "../nets/unet.py"]


def test_libraries_around_the_program_are_not_its_entry() -> None:
    """A runner or a trainer that calls the user's code isn't where the program lies."""
    runner = "/usr/lib/python3.11/site-packages/torch/distributed/run.py"
    assert program_root([stack(runner, "/data/job/train.py", "/data/job/lib/net.py")]) == "/data/job"


def test_the_entry_of_most_stacks_counts() -> None:
    """A thread of its own that begins elsewhere doesn't move the root."""
    stacks = [stack("/p/train.py"), stack("/p/train.py"), stack("/p/workers/log.py")]
    assert program_root(stacks) == "/p"


def test_a_relative_entry_leaves_the_folder_of_the_others() -> None:
    """`python train.py` may be recorded as `train.py`; its modules still have absolute paths."""
    root = program_root([stack("train.py", "/p/nets/unet.py"), stack("train.py", "/p/loss.py")])
    assert (root, path_in_program("/p/nets/unet.py", root)) == ("/p", "nets/unet.py")


def test_what_has_no_absolute_path_stays() -> None:
    """Notebook cells and profiler frames, whose prefixes are stripped already."""
    assert program_root([stack("<ipython-input-3-abc>"), stack("train.py")]) == ""
    assert path_in_program("train.py", "/p") == "train.py"
    assert path_in_program("/p/a.py", "") == "/p/a.py"
