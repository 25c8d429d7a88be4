"""Bytes come from where they lie: what fails there is said, and what was opened is closed."""

from __future__ import annotations

import gc
import gzip
import http.server
import io
import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest

from syncscan.errors import MissingExtra, TraceUnreadable
from syncscan.load import load, open_bytes


@pytest.mark.parametrize("sent", [0, 3, 500])
def test_an_answer_that_is_cut(sent: int) -> None:
    """A store that promises more than it gives ends with a sentence, whatever its client raises."""
    pytest.importorskip("aiohttp")

    class Cut(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(gzip.compress(random.Random(0).randbytes(9000))[:sent])

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cut) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(TraceUnreadable, match="can't be read"):
            load(f"http://127.0.0.1:{server.server_port}/t.json.gz")
        server.shutdown()


def test_too_little_memory_for_a_store_is_no_lack_of_access(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client may need some, and says so as anything does."""
    fsspec = pytest.importorskip("fsspec")

    def open_none(*args: object) -> None:
        raise MemoryError

    monkeypatch.setattr(fsspec, "open", open_none)
    with pytest.raises(MemoryError):
        open_bytes("memory://t.json")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("why", ["unreadable", "extra"])
def test_what_cannot_be_read_is_closed_again(tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose first bytes can't be had, or whose compression can't be undone here."""
    path = tmp_path / "t.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(MissingExtra if why == "extra" else TraceUnreadable) as caught:
        open_bytes(path if why == "extra" else "/proc/self/mem")
    assert len(list(Path("/proc/self/fd").iterdir())) == opened, caught


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no names here")
def test_a_pipe_that_gives_a_byte_at_a_time(tmp_path: Path) -> None:
    """The first bytes tell the compression, however few come at once."""
    read_end, write_end = os.pipe()

    def dribble() -> None:
        with os.fdopen(write_end, "wb", buffering=0) as pipe:
            for byte in gzip.compress(b"the text"):
                pipe.write(bytes([byte]))
                time.sleep(0.001)

    writer = threading.Thread(target=dribble)
    writer.start()
    with open_bytes(f"/dev/fd/{read_end}") as stream:
        assert stream.readall() == b"the text"
    writer.join()
    os.close(read_end)


@pytest.mark.parametrize("packed", [b"plain", gzip.compress(b"plain")], ids=["plain", "gzip"])
def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch, packed: bytes) -> None:
    """It is the caller's, also when everything that has read it is gone."""
    stdin = io.TextIOWrapper(io.BytesIO(packed))
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_bytes("-") as stream:
        assert stream.readall() == b"plain"
    del stream
    gc.collect()
    assert not stdin.buffer.closed
