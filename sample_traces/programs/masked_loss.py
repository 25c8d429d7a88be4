"""The masked loss in four versions (Chaim Rand, part 3): each takes one wait for the device away."""

import sys
from pathlib import Path

from setting import Build, Setting, Step

sys.path.append(str(Path(__file__).parents[1]))
import demo_step


def build(version: int) -> Build:
    """The step of the demo, at the size that the post published."""

    def made(setting: Setting) -> Step:
        size = demo_step.HOST if setting.small else demo_step.PUBLISHED
        return demo_step.build(setting.device, size, version)

    return made


VARIANTS = {f"masked_loss.v{version}": build(version) for version in range(4)}
