"""Writes the files of a patch, each atomically, and none with uncommitted changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from syncscan import files
from syncscan.errors import UsageError
from syncscan.model.fix import Fixed


def write(fixed: Fixed, force: bool) -> list[str]:
    """Write the files of a patch, and return their names; with `force` also where git knows of uncommitted changes."""
    for file in fixed.files:
        path = Path(file.path)
        if path.read_bytes() != file.before.encode(file.encoding):
            raise UsageError(f"{file.file} was changed while its fixes were verified.", "Run syncscan fix again.")
        if not force and _is_dirty(path):
            raise UsageError(f"{file.file} has uncommitted changes.", "Commit them, or add --force.")
    for file in fixed.files:
        files.write(Path(file.path), [file.after.encode(file.encoding)], force=True)
    return [file.file for file in fixed.files]


def _is_dirty(path: Path) -> bool:
    """Return whether git tracks a file and it isn't as it was committed."""
    git = shutil.which("git")
    if git is None:
        return False
    command = [git, "-C", str(path.parent), "status", "--porcelain", "--untracked-files=no", "--", path.name]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.returncode == 0 and bool(answer.stdout.strip())
