"""Every program and its variants by name, and which names a pattern means."""

import fnmatch

import augmentation
import copies
import data_parallel
import inference
import loader
import masked_loss
import pipeline
import stalls
import tips
from setting import Build

PROGRAMS = (masked_loss, copies, loader, pipeline, augmentation, inference, tips, stalls, data_parallel)

VARIANTS: dict[str, Build] = {name: build for program in PROGRAMS for name, build in program.VARIANTS.items()}


def matching(patterns: list[str]) -> list[str]:
    """Names that fit any of these patterns, in order; all but those for several GPUs if there is none."""
    if not patterns:
        return [name for name in VARIANTS if not name.startswith("parallel.")]
    return [name for name in VARIANTS if any(fnmatch.fnmatch(name, p) for p in patterns)]
