"""A frozen encoder and a trained decoder (Chaim Rand, part 9): in turn, on two streams, on two that wait."""

import itertools

import torch
import torch.nn as nn
from setting import Build, Setting, Step
from torch.profiler import record_function as scope


def convolutions(*channels: int) -> nn.Sequential:
    """3×3 convolutions with these numbers of channels, a ReLU behind each."""
    pairs = itertools.pairwise(channels)
    return nn.Sequential(*[m for a, b in pairs for m in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())])


class Halves:
    """The frozen encoder, the trained decoder, and two batches of 8 images of 3×256×256 with a class for each pixel."""

    def __init__(self, setting: Setting) -> None:
        torch.manual_seed(0)
        self.device = setting.device
        batch, side = setting.of(8, 1), setting.of(256, 16)
        self.encoder = convolutions(3, 16, 32, 64, 64).to(self.device).eval().requires_grad_(False)
        self.decoder = convolutions(64, 64, 32, 16, 10).to(self.device)
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=1e-3)
        self.loss = nn.CrossEntropyLoss()
        self.images = [self._host(torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)) for _ in range(2)]
        self.labels = [self._host(torch.randint(0, 10, (batch, side, side))) for _ in range(2)]
        self.turn = 0

    def _host(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self.device == "cuda" else tensor

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The next batch, on the device."""
        self.turn += 1
        images, labels = self.images[self.turn % 2], self.labels[self.turn % 2]
        return images.to(self.device, non_blocking=True).float(), labels.to(self.device, non_blocking=True)

    def encode(self, images: torch.Tensor) -> torch.Tensor:
        """What the frozen half makes of a batch."""
        with scope("encoder"), torch.no_grad():
            return self.encoder(images)

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """One step of the trained half."""
        with scope("decoder"):
            self.optimizer.zero_grad()
            self.loss(self.decoder(features), labels).backward()
            self.optimizer.step()


def serial(setting: Setting) -> Step:
    """Both halves on one stream."""
    halves = Halves(setting)

    def step() -> None:
        images, labels = halves.batch()
        halves.train(halves.encode(images), labels)

    return step


def streamed(waits_both_ways: bool) -> Build:
    """The encoder works on the next batch while the decoder trains on this one, each on a stream of its own.

    `waits_both_ways` makes the encoder wait for the decoder as well, which nothing needs: no overlap is left.
    Unlike as published, the labels are handed over to the decoder's stream too (`wait_stream`, `record_stream`).
    """

    def made(setting: Setting) -> Step:
        halves = Halves(setting)
        encoding, decoding = torch.cuda.Stream(), torch.cuda.Stream()
        ready: list[tuple[torch.Tensor, torch.Tensor]] = []

        def encode() -> None:
            images, labels = halves.batch()
            encoding.wait_stream(torch.cuda.current_stream())
            if waits_both_ways:
                encoding.wait_stream(decoding)
            with torch.cuda.stream(encoding):
                features = halves.encode(images)
            for tensor, user in ((images, encoding), (features, decoding), (labels, decoding)):
                tensor.record_stream(user)
            ready.append((features, labels))

        def step() -> None:
            if not ready:
                encode()
            features, labels = ready.pop()
            decoding.wait_stream(encoding)
            decoding.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(decoding):
                halves.train(features, labels)
            encode()

        return step

    return made


VARIANTS = {
    "pipeline.serial": serial,
    "pipeline.pipelined": streamed(waits_both_ways=False),
    "pipeline.needless": streamed(waits_both_ways=True),
}
