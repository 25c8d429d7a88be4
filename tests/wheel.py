"""Check that a user who installs the wheel in a folder gets a working syncscan: `python -m tests.wheel dist`.

A bare virtual environment gets the wheel and what it depends on, nothing of this clone; there `syncscan demo` runs, an
analysis is written as JSON, a page as HTML, and the files that the package has to bring are looked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CHECK = """
import sys
from importlib import metadata, resources
package = resources.files("syncscan")
wanted = ("py.typed", "schemas/analysis.json", "report/templates/report.css", "proof/templates/proof.css",
          "demo/logged_loss.h200.pt.trace.json.gz")
lacking = [name for name in wanted if not (package / name).is_file()]
assert not lacking, lacking
licences = [f.name for f in metadata.files("syncscan") if "licenses" in f.parts]
assert {"LICENSE", "THIRD_PARTY.md"} <= set(licences), licences
import syncscan
assert metadata.version("syncscan") == syncscan.__version__
print(f"syncscan {syncscan.__version__} on Python {sys.version.split()[0]}, {len(metadata.files('syncscan'))} files")
"""


def main() -> None:
    """Install the folder's one wheel, and use it."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        venv.create(root / "bare", with_pip=True)
        programs = root / "bare" / "bin"
        run(root, programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        run(root, programs / "python", "-c", CHECK)
        run(root, programs / "syncscan", "--version")
        run(root, programs / "syncscan", "demo")


def run(folder: Path, *command: Path | str) -> None:
    """A command there, without what this environment would lend it; its failure is ours."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=own, check=False)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} {' '.join(map(str, command[1:]))[:200]} ended with {done.returncode}")


if __name__ == "__main__":
    main()
