"""Shown addresses contain no secrets."""

from __future__ import annotations

from syncscan.load.redaction import redacted
from tests.each import each

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
