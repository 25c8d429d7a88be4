"""Files of two unchanged runs are compared with those of a changed one, by what is in them."""

from __future__ import annotations

import gzip
import json
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from syncscan.fixing.written_files import SteadyFiles, SteadyValues, Written, paired, same_value
from tests.each import each

Write = Callable[[Path, float], None]


def archive(path: Path, loss: float) -> None:
    """Write a zip file whose members have the time of each run."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(
            zipfile.ZipInfo("scores.csv", (2000 + len(path.parent.name), 1, 1, 0, 0, 0)), f"step,loss\n1,{loss}\n"
        )


WRITERS: dict[str, Write] = {
    "scores.json": lambda path, loss: path.write_text(json.dumps({"losses": [loss], "epochs": 3})) and None,
    "scores.jsonl": lambda path, loss: path.write_text(f'{{"step": 1, "loss": {loss}}}\n') and None,
    "scores.csv": lambda path, loss: path.write_text(f"step,loss\n1,{loss}\n") and None,
    "train.log": lambda path, loss: path.write_text(f"epoch 1: loss {loss}\n") and None,
    "scores.npy": lambda path, loss: np.save(path, np.array([loss, 1.0])),
    "scores.npz": lambda path, loss: np.savez(path, losses=np.array([loss, 1.0])),
    "scores.json.gz": lambda path, loss: path.write_bytes(gzip.compress(json.dumps([loss]).encode())) and None,
    "scores.zip": archive,
}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Written]:
    """A run's files: each written by a function of the path and the loss."""
    count = 0

    def run(name: str, write: Write, loss: float, **others: str) -> Written:
        nonlocal count
        count += 1
        folder = tmp_path / ("run" * count)
        folder.mkdir()
        write(folder / name, loss)
        for other, text in others.items():
            (folder / other).write_text(text)
        return {f"/project/{file.name}": str(file) for file in folder.iterdir()}

    return run


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_compared_by_its_numbers(name: str, written: Callable[..., Written]) -> None:
    """Rounding is no difference, another number is one, and the sentence names the file."""
    runs = [written(name, WRITERS[name], loss) for loss in (0.123456789, 0.123456789, 0.12345679, 0.2)]
    files = SteadyFiles(runs[0], runs[1])
    assert (files.noise, files.has_results(), files.differs(runs[2])) == ([], True, "")
    assert files.differs(runs[3]).startswith("the patched program writes ")
    assert files.differs(runs[3]).endswith(f"in /project/{name}")


def test_what_torch_saves_is_compared_by_its_tensors(written: Callable[..., Written]) -> None:
    """Parameters, and an optimizer's state."""
    torch = pytest.importorskip("torch")

    def save(path: Path, loss: float) -> None:
        net = torch.nn.Linear(2, 2)
        torch.nn.init.constant_(net.weight, loss)
        torch.nn.init.zeros_(net.bias)
        torch.save({"net": net.state_dict(), "half": torch.full((2,), loss).bfloat16(), "step": 3}, path)

    runs = [written("last.pt", save, loss) for loss in (0.5, 0.5, 0.5000001, 0.6)]
    files = SteadyFiles(runs[0], runs[1])
    assert (files.noise, files.differs(runs[2])) == ([], "")
    assert files.differs(runs[3]) == "the patched program writes other numbers as ['net']['weight'] in /project/last.pt"


def test_a_tensor_that_is_no_array_is_compared_by_its_bytes(written: Callable[..., Written]) -> None:
    """Such as one that is conjugated when it is read."""
    torch = pytest.importorskip("torch")

    def save(path: Path, loss: float) -> None:
        torch.save({"spectrum": torch.tensor([loss + 1j]).conj()}, path)

    runs = [written("last.pt", save, loss) for loss in (0.5, 0.5, 0.6)]
    files = SteadyFiles(runs[0], runs[1])
    assert files.noise == []
    assert "/project/last.pt" in files.differs(runs[2])


def test_a_socket_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader's workers talk through some, each with a random name."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("listener")
        files = SteadyFiles({"/tmp/listener-1": "listener"}, {})
        assert (files.noise, files.differs({"/tmp/listener-2": "listener"})) == ([], "")


def test_a_tensor_in_the_place_of_a_number_is_a_difference(written: Callable[..., Written]) -> None:
    """It would fail where the file is read."""
    torch = pytest.importorskip("torch")
    values: list[Any] = [0.5, 0.5, torch.tensor(0.5)]
    runs = [written("last.pt", lambda path, loss, v=v: torch.save({"best": v}, path), 0.0) for v in values]
    assert "instead of 'float 0.5' as ['best']" in SteadyFiles(runs[0], runs[1]).differs(runs[2])


def test_nothing_in_a_pickle_is_run(tmp_path: Path, written: Callable[..., Written]) -> None:
    """Not in what torch saved, either: a file of other classes is compared by its bytes."""
    torch = pytest.importorskip("torch")

    class Touch:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "touched",)

    runs = [written("a.pt", lambda path, loss: torch.save([Touch(), loss], path), loss) for loss in (1.0, 1.0, 2.0)]
    assert SteadyFiles(runs[0], runs[1]).differs(runs[2]) == "the patched program writes other bytes in /project/a.pt"
    assert not (tmp_path / "touched").exists()


def test_a_file_that_differs_between_two_runs_is_named(written: Callable[..., Written]) -> None:
    """The other one is compared."""
    write = WRITERS["scores.csv"]
    runs = [written("scores.csv", write, loss, log=f"took {k} s") for k, loss in enumerate((0.5, 0.5, 0.5, 0.7))]
    files = SteadyFiles(runs[0], runs[1])
    assert files.noise == ["/project/log (1 line, such as 'took 0 s')"]
    assert files.differs(runs[2]) == ""
    assert "'1,0.7' instead of '1,0.5'" in files.differs(runs[3])


def test_a_file_that_is_missing_or_new_is_a_difference(written: Callable[..., Written]) -> None:
    write = WRITERS["scores.csv"]
    both, fewer = (written("scores.csv", write, 0.5, **more) for more in ({"log": "end"}, {}))
    assert SteadyFiles(both, both).differs(fewer) == "the patched program doesn't write /project/log"
    assert SteadyFiles(fewer, fewer).differs(both) == "the patched program writes /project/log"
    assert SteadyFiles(both, fewer).noise == ["/project/log, which one of them doesn't write"]


def test_a_removed_file_is_compared_too(written: Callable[..., Written]) -> None:
    """None stands for it."""
    left = written("scores.csv", WRITERS["scores.csv"], 0.5)
    removed: Written = {"/project/scores.csv": None}
    assert SteadyFiles(removed, removed).differs(removed) == ""
    assert SteadyFiles(removed, removed).differs(left) == "the patched program doesn't remove /project/scores.csv"
    assert SteadyFiles(left, left).differs(removed) == "the patched program removes /project/scores.csv"


def test_files_are_paired_by_name_but_for_times_and_random_words() -> None:
    """Those of one name first."""
    first = ["runs/a.1/log", "runs/a.2/log", "deadbeef12.txt", "same"]
    assert paired(first, ["runs/a.7/log", "runs/a.2/log", "0123abcdef.txt", "same", "other"]) == {
        "runs/a.2/log": "runs/a.2/log",
        "same": "same",
        "deadbeef12.txt": "0123abcdef.txt",
        "runs/a.1/log": "runs/a.7/log",
    }


@each(
    ("a", "b", "same"),
    [
        (1, 1.0, False),
        (0.123456789, 0.12345679, True),
        (1e-07, 1.0000001e-07, True),
        (0.5, 0.51, False),
        (float("nan"), float("nan"), True),
        ("loss 0.12345678", "loss 0.12345679", True),
        ("loss 0.5", "gain 0.5", False),
        (True, 1, False),
        (b"\0", b"\1", False),
        (np.ones(3), np.ones(3) + 1e-7, True),
        (np.ones(3), np.ones(3, "f4"), False),
        (np.ones(3), np.ones(4), False),
        (np.array([1.0, 1e-9]), np.array([1.0, 2e-9]), True),
        (np.array([1.0, 0.0]), np.array([1.0, 0.1]), False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([np.inf, 1.0]), np.array([1.0, 1.0]), False),
        (np.arange(3), np.array([0, 1, 3]), False),
    ],
)
def test_which_values_are_the_same(a: Any, b: Any, same: bool) -> None:
    """An element may differ by a rounding error of the array's largest ones; an integer may not differ."""
    assert same_value(a, b) is same


def test_what_differs_between_two_runs_is_not_compared() -> None:
    """It is named; the other values are compared."""
    values = SteadyValues({"['loss']": 0.5, "['time']": 1.5}, {"['loss']": 0.5, "['time']": 2.5})
    assert values.noise == ["['time']"]
    assert values.differs({"['loss']": 0.5, "['time']": 9.0}, "it writes") == ""
    assert (
        values.differs({"['loss']": 0.0, "['time']": 1.5}, "it writes")
        == "it writes '0.0' instead of '0.5' as ['loss']"
    )
    assert values.differs({"['time']": 1.5}, "it writes") == "it writes no value ['loss']"


def test_a_number_of_another_type_is_a_difference() -> None:
    """A tensor in the place of a number, say."""
    values = SteadyValues({"[0]": 0.5}, {"[0]": 0.5})
    assert (
        values.differs({"[0]": np.float32(0.5)}, "it writes") == "it writes 'float32 0.5' instead of 'float 0.5' as [0]"
    )


def test_text_alone_is_no_result() -> None:
    assert not SteadyValues({"[0]": "done", "[1]": True}, {"[0]": "done", "[1]": True}).has_results()
    assert SteadyValues({"[0]": 3}, {"[0]": 3}).has_results()
