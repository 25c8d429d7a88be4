"""Make what a program would download: data sets of its format with random content, and weights as they begin.

`programs.toml` calls these functions; each writes below the folder where the program runs.
"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import numpy as np

RANDOM = np.random.default_rng(0)


def mnist(root: str, train: int = 60_000, test: int = 2_000) -> None:
    """Write MNIST's four files for torchvision."""
    raw = Path(root, "MNIST/raw")
    raw.mkdir(parents=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = np.arange(count, dtype="u1") % 10
        images = RANDOM.integers(0, 255, (count, 28, 28), dtype="u1")
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels.tobytes())


def images(folder: str, count: int, wide: int, high: int) -> list[str]:
    """Write pictures, of which 50 differ, and return their names."""
    from PIL import Image

    Path(folder).mkdir(parents=True)
    names = [f"{k}.jpg" for k in range(count)]
    for k, name in enumerate(names):
        if k < 50:
            Image.fromarray(RANDOM.integers(0, 255, (high, wide, 3), dtype="u1")).save(Path(folder, name))
        else:
            Path(folder, name).write_bytes(Path(folder, names[k % 50]).read_bytes())
    return names


def celeba(root: str, count: int = 4_000) -> None:
    """Write pictures of CelebA's size, and their attributes."""
    words = ("Black_Hair", "Blond_Hair", "Brown_Hair", "Male", "Young")
    rows = [
        f"{name}  {' '.join(random.choice(('1', '-1')) for _ in words)}"
        for name in images(f"{root}/images", count, 178, 218)
    ]
    Path(root, "list_attr_celeba.txt").write_text("\n".join([str(count), " ".join(words), *rows]) + "\n")


def graphs(root: str, name: str = "MUTAG", count: int = 1_000) -> None:
    """Write a TUDataset: graphs of 10 to 28 nodes in a ring, with labels."""
    raw = Path(root, name, "raw")
    raw.mkdir(parents=True)
    sizes = RANDOM.integers(10, 29, count)
    of_node = np.repeat(np.arange(1, count + 1), sizes)
    nodes = np.arange(1, len(of_node) + 1)
    following = np.where(np.append(of_node[1:] != of_node[:-1], True), nodes - sizes[of_node - 1] + 1, nodes + 1)
    edges = np.concatenate([np.stack([nodes, following], 1), np.stack([following, nodes], 1)])
    files = {
        "A": edges,
        "graph_indicator": of_node,
        "graph_labels": RANDOM.integers(0, 2, count) * 2 - 1,
        "node_labels": RANDOM.integers(0, 7, len(nodes)),
        "edge_labels": RANDOM.integers(0, 4, len(edges)),
    }
    for kind, numbers in files.items():
        np.savetxt(raw / f"{name}_{kind}.txt", numbers, fmt="%d", delimiter=", ")


def cora(folder: str, papers: int = 2_708, words: int = 1_433, links: int = 5_429) -> None:
    """Write a citation network in the format of Cora, of its size."""
    Path(folder).mkdir(parents=True)
    names = [str(31_336 + k) for k in range(papers)]
    bag = RANDOM.random((papers, words)) < 0.02
    rows = ["\t".join([names[k], *map(str, row.astype(int)), f"c{k % 7}"]) for k, row in enumerate(bag)]
    Path(folder, "cora.content").write_text("\n".join(rows) + "\n")
    cites = {tuple(map(int, pair)) for pair in RANDOM.integers(0, papers, (links, 2))}
    Path(folder, "cora.cites").write_text("".join(f"{names[a]}\t{names[b]}\n" for a, b in sorted(cites)))


def words(folder: str, sizes: dict[str, int], vocabulary: int = 33_000) -> None:
    """Write a text for each name, of so many words, as WikiText has them."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, count in sizes.items():
        chosen = RANDOM.zipf(1.2, (count // 20, 20)) % vocabulary
        Path(folder, name).write_text("".join(" ".join(f"w{k}" for k in row) + "\n" for row in chosen))


def tokens(folder: str, count: int = 2_000_000, vocabulary: int = 50_257) -> None:
    """Write token ids of GPT-2, as nanoGPT prepares them, and llama2.c those of its vocabulary."""
    Path(folder).mkdir(parents=True, exist_ok=True)  # programs have the script that downloads there
    for name in ("train", "val"):
        RANDOM.integers(0, vocabulary, count).astype(np.uint16).tofile(Path(folder, f"{name}.bin"))


def conversations(path: str, count: int = 4_000) -> None:
    """Write texts as lines of JSON, as long as MiniMind's."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    rows = ("".join(map(chr, RANDOM.integers(0x4E00, 0x4F00, 400))) for _ in range(count))
    Path(path).write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))


def names(folder: str, languages: int = 18, count: int = 1_000) -> None:
    """Write a list of names for each language, as PyTorch's tutorial on them has."""
    Path(folder).mkdir(parents=True)
    for k in range(languages):
        rows = ("".join(map(chr, RANDOM.integers(97, 123, RANDOM.integers(3, 15)))) for _ in range(count))
        Path(folder, f"Language{k}.txt").write_text("\n".join(rows))


def autoencoder(folder: str) -> None:
    """Write Stable Diffusion's autoencoder with the weights that it begins with."""
    from diffusers.models import AutoencoderKL

    AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(128, 256, 512, 512),
        layers_per_block=2,
        latent_channels=4,
        sample_size=256,
    ).save_pretrained(folder)
