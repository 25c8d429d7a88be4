"""Packed bytes come out as far as they go, from a file or a pipe, and what doesn't is said."""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from isal import isal_zlib

from syncscan.errors import TraceUnreadable
from syncscan.load import load, open_bytes
from syncscan.load.unpack import redacted
from tests.each import each

TEXT = "".join(f'{{"ph": "X", "name": "op{i % 97}", "ts": {i * 7919 % 10007}}},\n' for i in range(40_000)).encode()


def read(path: Path) -> tuple[bytes, str]:
    """The text, and what is said to be lost."""
    with open_bytes(path) as stream:
        return stream.readall() or b"", stream.lost


def piped(content: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, str]:
    """Read the file through a pipe, which can't seek."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, offset: int, whence: int = 0) -> int:
            raise io.UnsupportedOperation("a pipe")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(content)))
    with open_bytes("-") as stream:
        return stream.readall() or b"", stream.lost


def with_damage(packed: bytes, at: int) -> bytes:
    damaged = bytearray(packed)
    damaged[at] ^= 0x55
    return bytes(damaged)


def before_the_damage(unpacker: Any, packed: bytes, error: type[Exception]) -> bytes:
    """All that a decompressor gives that is fed a byte at a time."""
    parts = []
    try:
        for i in range(len(packed)):
            parts.append(unpacker.decompress(packed[i : i + 1]))
    except error:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(4))
def test_all_before_a_damaged_spot_in_gzip(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte where the stream can go back; in a pipe all but the damaged portion's text."""
    packed = gzip.compress(TEXT, 1)
    content = with_damage(packed, random.Random(seed).randrange(20, len(packed) - 8))
    path = tmp_path / "t.gz"
    path.write_bytes(content)
    expected = before_the_damage(zlib.decompressobj(31), content, zlib.error)
    assert 0 < len(expected) <= len(TEXT) + 70_000
    (text, lost), (from_pipe, lost_from_pipe) = read(path), piped(content, monkeypatch)
    assert text == expected
    assert expected.startswith(from_pipe)
    assert len(expected) - len(from_pipe) <= 1 << 18
    for sentence in (lost, lost_from_pipe):
        assert "damaged" in sentence or "checksum" in sentence or "truncated" in sentence


def test_a_small_file_of_much_text_with_a_damaged_spot(tmp_path: Path) -> None:
    """Thousands of bytes unpacked from each byte: the cost of finding the damage doesn't grow with what came before."""
    packed = gzip.compress(b'{"traceEvents": [' + b'{"ph": "X"},\n' * 2_000_000)
    path = tmp_path / "t.gz"
    path.write_bytes(with_damage(packed, len(packed) // 2))
    text, lost = read(path)
    assert len(text) > 10_000_000
    assert text.startswith(b'{"traceEvents": [{"ph": "X"},')
    assert lost


@pytest.mark.parametrize("seed", range(4))
def test_all_before_a_damaged_spot_in_zstd(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte where the stream can go back; in a pipe all but a block or two, which hold 128 kB each."""
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    content = with_damage(packed, random.Random(seed).randrange(len(packed) // 2, len(packed)))
    path = tmp_path / "t.zst"
    path.write_bytes(content)
    expected = before_the_damage(zstandard.ZstdDecompressor().decompressobj(), content, zstandard.ZstdError)
    assert len(expected) > len(TEXT) // 4
    text, lost = read(path)
    assert text == expected
    assert "damaged" in lost or "checksum" in lost
    text, lost = piped(content, monkeypatch)
    assert expected.startswith(text)
    assert len(expected) - len(text) <= 2 << 17
    assert "damaged" in lost or "checksum" in lost


def test_zstd_frames_follow_each_other(tmp_path: Path) -> None:
    """As `cat a.zst b.zst` writes them; where the last one breaks off that is said."""
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "t.zst"
    path.write_bytes(zstandard.compress(TEXT) + zstandard.compress(b"second"))
    assert read(path) == (TEXT + b"second", "")
    path.write_bytes(zstandard.compress(b"first") + zstandard.compress(TEXT)[:-100])
    text, lost = read(path)
    assert (b"first" + TEXT).startswith(text)
    assert len(text) > len(TEXT) // 2
    assert "truncated" in lost


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damage_at_the_beginning_is_no_empty_file(tmp_path: Path, suffix: str) -> None:
    """It is said that the data are damaged, and not that there are none."""
    if suffix == "gz":
        content = b"\x1f\x8b\x08\0" + bytes(6) + b"\xff" * 100
    else:
        pytest.importorskip("zstandard")
        content = b"\x28\xb5\x2f\xfd" + b"\xff" * 100
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with pytest.raises(TraceUnreadable, match="damaged"):
        load(path)


@pytest.mark.parametrize("border", [-3, -2, -1, 0, 1])
@each("padding", [0, 1, 70_000])
def test_a_member_that_ends_near_a_border(tmp_path: Path, border: int, padding: int) -> None:
    """Wherever the first one's end lies in what is read at once, and however much padding follows: the next is read."""
    first = gzip.compress(random.Random(0).randbytes(65_000), 0)
    name = b"x" * ((1 << 16) + border - len(first) - 1) + b"\0"
    first = first[:3] + b"\x08" + first[4:10] + name + first[10:]
    assert len(first) == (1 << 16) + border
    path = tmp_path / "t.gz"
    path.write_bytes(first + bytes(padding) + gzip.compress(b"second"))
    text, lost = read(path)
    assert text.endswith(b"second")
    assert lost == ""


def test_what_is_no_gzip_behind_gzip_is_reported(tmp_path: Path) -> None:
    """A trace that was appended unpacked to a packed one isn't passed over in silence."""
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"[]") + b'{"traceEvents": []}')
    assert read(path) == (b"[]", "Uncompressed bytes after the compressed data were ignored.")


def zstd(text: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(text)
    return compressed


def skippable(content: bytes) -> bytes:
    """A frame without text (RFC 8878, 3.1.2)."""
    return b"\x51\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


def test_frames_without_text_are_passed_over(tmp_path: Path) -> None:
    """Wherever they stand, at the very beginning too; nothing is lost."""
    path = tmp_path / "t.json.zst"
    path.write_bytes(
        skippable(b"sizes") + zstd(TEXT[:1000]) + skippable(b"") + zstd(TEXT[1000:]) + skippable(b"x" * 99)
    )
    assert read(path) == (TEXT, "")


def test_a_wrong_checksum_loses_nothing_before_it(tmp_path: Path) -> None:
    """The text is all there; that it may be altered is said."""
    path = tmp_path / "t.json.gz"
    path.write_bytes(with_damage(packed := gzip.compress(TEXT), len(packed) - 6))
    text, message = read(path)
    assert text == TEXT
    assert "checksum" in message


class Stored(io.BytesIO):
    """Standard input that can go back or not, and that runs out of memory when it is read so many times.

    `given` counts the bytes that were read of it, those that were read again too.
    """

    def __init__(self, content: bytes, rewinds: bool, reads: float = math.inf) -> None:
        super().__init__(content)
        self.rewinds, self.reads, self.given = rewinds, reads, 0

    def seekable(self) -> bool:
        return self.rewinds

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        self._count(len(part))
        return part

    def readinto(self, buffer: Any, /) -> int:
        size = super().readinto(buffer)
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        self.reads -= 1
        if self.reads < 0:
            raise MemoryError
        self.given += size


class Unpacker:
    """A decompressor that runs out of memory when it, or one made before it, is called so many times."""

    calls = math.inf

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def copy(self) -> Unpacker:
        return Unpacker(self.real.copy())

    def decompress(self, *args: Any) -> bytes:
        Unpacker.calls -= 1
        if Unpacker.calls < 0:
            raise MemoryError
        unpacked: bytes = self.real.decompress(*args)
        return unpacked


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every decompressor be an `Unpacker`."""
    zlibs, isals = zlib.decompressobj, isal_zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", lambda *args: Unpacker(zlibs(*args)))
    monkeypatch.setattr(isal_zlib, "decompressobj", lambda **kwargs: Unpacker(isals(**kwargs)))
    with contextlib.suppress(ImportError):
        import zstandard

        zstds = zstandard.ZstdDecompressor().decompressobj
        built = SimpleNamespace(decompressobj=lambda: Unpacker(zstds()))
        monkeypatch.setattr(zstandard, "ZstdDecompressor", lambda: built)


def broken_middle(pack: Callable[[bytes], bytes]) -> bytes:
    """Three packed parts, the second of which is damaged."""
    return pack(b"first") + with_damage(pack(TEXT[:600]), 30)[:90] + pack(b"last")


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("rewinds", [True, False], ids=["file", "pipe"])
def test_too_little_memory_for_reading_is_no_damage(
    pack: Callable[[bytes], bytes], rewinds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever read it runs out, the first or one that looks behind damage: no text is taken for all there is."""

    def text_after(reads: float) -> tuple[bytes, float]:
        stored = Stored(broken_middle(pack), rewinds, reads)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stored))
        with open_bytes("-") as stream:
            return stream.readall() or b"", stored.reads

    whole, left = text_after(1000)
    assert whole.startswith(b"first")
    for reads in range(1000 - int(left)):
        with pytest.raises(MemoryError):
            text_after(reads)


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("rewinds", [True, False], ids=["file", "pipe"])
def test_too_little_memory_for_unpacking_is_no_damage(
    pack: Callable[[bytes], bytes], rewinds: bool, counted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever call of a decompressor it runs out, of those too that look for where a damage begins and ends."""

    def text_after(calls: float) -> bytes:
        monkeypatch.setattr(Unpacker, "calls", calls)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Stored(broken_middle(pack), rewinds)))
        with open_bytes("-") as stream:
            return stream.readall() or b""

    assert text_after(1000).startswith(b"first")
    for calls in range(1000 - int(Unpacker.calls)):
        with pytest.raises(MemoryError):
            text_after(calls)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data is Linux's")
def test_zstd_says_too_little_memory_as_any_error() -> None:
    """A frame may ask for 128 MB at once; where they aren't to be had it isn't damaged."""
    frame = b"\x28\xb5\x2f\xfd" + b"\0\x88" + (1 | 4 << 3).to_bytes(3, "little") + b"text"
    assert pytest.importorskip("zstandard").ZstdDecompressor().decompressobj().decompress(frame) == b"text"
    program = """
import resource, zstandard
from syncscan.load import open_bytes
resource.setrlimit(resource.RLIMIT_DATA, (100_000_000, 100_000_000))
with open_bytes("-") as stream:
    print(stream.readall(), stream.lost)
"""
    done = subprocess.run([sys.executable, "-c", program], input=frame, capture_output=True)
    assert done.stdout == b""
    assert done.stderr.splitlines()[-1].startswith(b"MemoryError")


SECRET = "s3cr3t"
"""In what follows, what nobody may see."""


@each(
    ("text", "shown"),
    [
        (f"https://ann:{SECRET}@host:8080/a/b.json", "https://***@host:8080/a/b.json"),
        (f"https://{SECRET}@host/b.json", "https://***@host/b.json"),
        (f"https://host/b.json?X-Amz-Signature={SECRET}&a=1", "https://host/b.json?***"),
        (f"https://host?{SECRET}", "https://host?***"),
        (f"simplecache::ftp://ann:{SECRET}@host/b.json", "simplecache::ftp://***@host/b.json"),
        (
            f"403, url='https://h/b?sig={SECRET}' (try ftp://u:{SECRET}@h)",
            "403, url='https://h/b?***' (try ftp://***@h)",
        ),
        ("s3://bucket/ann@host/b.json", "s3://bucket/ann@host/b.json"),
        ("/runs/a@b/what?.json", "/runs/a@b/what?.json"),
    ],
)
def test_credentials_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    """User and password, and a query; alone, in a chain of fsspec's, in a sentence; the path is kept."""
    assert redacted(text) == shown
