"""The frames of a thread that waits, and which of them is the program's own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from syncscan.guarding.seen import frames_of, own_frame


def test_the_script_of_an_entry_point_is_no_line_of_the_program_s(tmp_path: Path) -> None:
    """Its package's line is, else every sync would stand at the same line."""
    script = tmp_path / "yolo"
    script.write_text("#!/env/bin/python\nimport sys\nfrom ultralytics.cfg import main\nsys.exit(main())\n")
    namespace: dict[str, object] = {"frame": sys._getframe}
    exec(compile("def main(): return frame(0)", "/src/ultralytics/cfg.py", "exec"), namespace)
    exec(compile("waiting = main()", str(script), "exec"), namespace)
    frame = namespace["waiting"]
    assert isinstance(frame, FrameType)
    inner = frames_of(frame)
    own = own_frame(inner)
    assert own is not None
    assert own.f_code.co_filename == "/src/ultralytics/cfg.py"
    assert str(script) not in {f.f_code.co_filename for f in inner}
