"""A tar or zip is read as the folder that was packed, nothing in one leads out of it, and memory stays bounded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan import analyze, load
from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.load import archive
from tests.builder import TraceBuilder


def trace() -> bytes:
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::item", at=start + 10, wait=300)
    return t.json()


def tar(path: Path, files: dict[str, bytes], mode: str = "w") -> str:
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return str(path)


def zipped(path: Path, files: dict[str, bytes]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return str(path)


PACKERS: dict[str, Callable[[Path, dict[str, bytes]], str]] = {
    "zip": zipped,
    "tar": tar,
    "tar.gz": lambda path, files: tar(path, files, "w:gz"),
    "tar.xz": lambda path, files: tar(path, files, "w:xz"),
    "tar.bz2": lambda path, files: tar(path, files, "w:bz2"),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_is_a_folder(tmp_path: Path, kind: str) -> None:
    """By rank; what isn't a trace is passed over, and each trace is analyzed by its name in the archive."""
    files = {
        "run/rank1.json.gz": gzip.compress(trace()),
        "run/rank0.json": trace(),
        "run/config.json": b"[1, 2]",
        "__MACOSX/run/._rank0.pt.trace.json": b"x",
    }
    path = PACKERS[kind](tmp_path / f"ranks.{kind}", files)
    found = load.find(path)
    assert found == [f"{path}/run/rank0.json", f"{path}/run/rank1.json.gz"]
    assert [len(analyze(name).findings) for name in found] == [1, 1]
    with pytest.raises(TraceUnreadable, match="contains 2 traces"):
        analyze(path)


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_of_one_trace_is_that_trace(tmp_path: Path, kind: str) -> None:
    """As people attach it to an issue."""
    assert analyze(PACKERS[kind](tmp_path / f"one.{kind}", {"t.json": trace()})).findings


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress], ids=["xz", "bz2"])
def test_xz_and_bzip2_are_read_like_gzip(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Also in two parts; one that breaks off is read up to there, and that is said."""
    path, text = tmp_path / "t.json", trace()
    path.write_bytes(pack(text[:500]) + pack(text[500:]))
    assert analyze(path).findings
    with load.open_bytes(path) as stream:
        assert stream.read() == text
    path.write_bytes(pack(text)[:-40])
    with load.open_bytes(path) as stream:
        stream.read()
        assert "truncated" in stream.lost


@pytest.mark.parametrize("name", ["../../out.json", "/out.json"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_no_name_leads_out_of_it(tmp_path: Path, kind: str, name: str) -> None:
    """It is read where it lies, whatever it is called."""
    before = sorted(tmp_path.parent.rglob("*"))
    path = PACKERS[kind](tmp_path / "a", {name: trace()})
    assert analyze(path).findings
    assert sorted(tmp_path.parent.rglob("*")) == sorted([*before, Path(path)])


def test_links_and_devices_are_passed_over(tmp_path: Path) -> None:
    """A link would name a file of this machine."""
    secret = tmp_path / "secret.json"
    secret.write_bytes(trace())
    with tarfile.open(tmp_path / "a.tar", "w") as packed:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("t.json")
            info.type, info.linkname = kind, str(secret)
            packed.addfile(info)
    link = zipfile.ZipInfo("t.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped_link:
        zipped_link.writestr(link, str(secret))
    for name in ("a.tar", "a.zip"):
        with pytest.raises(TraceNotFound, match="no traces"):
            load.find(tmp_path / name)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_what_unpacks_to_far_more_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb of zeros, before it is unpacked."""
    monkeypatch.setattr(archive, "MOST_TIMES", 100)
    monkeypatch.setattr(archive, "_LEAST", 1 << 20)
    path = PACKERS[kind](tmp_path / "a", {"t.json": bytes(1 << 23)})
    with pytest.raises(TraceUnreadable, match="times its size"):
        load.find(path)


def test_a_header_is_not_read_whatever_its_size(tmp_path: Path) -> None:
    """An extended header of a tar is taken into memory at once."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    with pytest.raises(TraceUnreadable, match="extended header"):
        load.find(tmp_path / "a.tar")


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_a_damaged_archive_says_so(tmp_path: Path, kind: str) -> None:
    """In a sentence; of a tar what came before the damage is read."""
    path = Path(PACKERS[kind](tmp_path / "a", {f"{i}.pt.trace.json": trace() for i in range(3)}))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    if kind == "zip":
        with pytest.raises(TraceUnreadable, match="can't be read as a zip"):
            load.find(path)
    else:
        assert load.find(path)


def test_an_encrypted_zip_says_so(tmp_path: Path) -> None:
    """The flag is in both headers of a file."""
    path = Path(zipped(tmp_path / "a.zip", {"t.json": trace()}))
    content = bytearray(path.read_bytes())
    for sign, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(sign) + at] |= 1
    path.write_bytes(bytes(content))
    with pytest.raises(TraceUnreadable, match="encrypted"):
        load.find(path)
