"""A sync point knows its copy, and whether it has one."""

from __future__ import annotations

from syncscan.model.finding import SyncPoint
from tests.each import each


def call(copy: str = "", *apis: str) -> SyncPoint:
    return SyncPoint((0,), "", apis, 0, 0, 0, 0, 0, 0, waited=False, awaited=None, copy=copy, bytes=0)


@each(
    ("copy", "direction"),
    [
        ("Memcpy DtoH (Device -> Pinned)", "DtoH"),
        ("Memcpy HtoD (Pageable -> Device)", "HtoD"),
        ("Memcpy DtoD (Device -> Device)", "DtoD"),
        ("Memcpy PtoP (Device -> Device)", "PtoP"),
        ("Memcpy HtoD", "HtoD"),
        ("Memcpy D2M(Device -> Memory)", "DtoH"),
        ("Memcpy D2H", "DtoH"),
        ("Memcpy M2D(Memory -> Device)", "HtoD"),
        ("Memcpy H2D", "HtoD"),
        ("Memcpy D2D(Device -> Device)", "DtoD"),
        ("Memcpy D2S(Device -> Shared)", "DtoD"),
        ("Memcpy S2D(Shared -> Device)", "DtoD"),
        ("CopyKernel", ""),
        ("", ""),
    ],
)
def test_the_direction_is_the_second_word_of_the_copys_name(copy: str, direction: str) -> None:
    """As CUDA, HIP and Intel write it."""
    assert call(copy).direction == direction


def test_the_kind_of_memory_is_in_the_name_too() -> None:
    """HIP doesn't say."""
    kinds = ["Memcpy DtoH (Device -> Pinned)", "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Host -> Device)"]
    assert [call(kind).pinned for kind in kinds] == [True, False, False]


@each(
    ("copy", "apis", "expected"),
    [
        ("", ("cudaStreamSynchronize",), True),
        ("", ("zeFenceHostSynchronize",), True),
        ("", ("xpu_synchronize",), True),
        ("", ("Stream Sync",), True),
        ("", ("cudaMemcpyAsync", "cudaStreamSynchronize"), True),
        ("Memcpy DtoH (Device -> Pinned)", ("cudaMemcpyAsync", "cudaStreamSynchronize"), False),
        ("", ("cudaFree",), False),
        ("", ("urQueueFinish",), True),
    ],
)
def test_a_synchronize_has_no_copy(copy: str, apis: tuple[str, ...], expected: bool) -> None:
    """A copy and the synchronize behind it are a read-back."""
    assert call(copy, *apis).synchronizes == expected
