"""Heavy augmentation before a small classifier (Chaim Rand, part 9): in the loader, on the device, on its own stream.

Needs torchvision.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from setting import Build, Setting, Step
from torch.profiler import record_function as scope
from torch.utils.data import DataLoader, Dataset

SIDE, CROP = 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Photos(Dataset):
    """Random images of 3×256×256 bytes, augmented where they are made if so wanted."""

    def __init__(self, augmented: bool) -> None:
        self.transform = on_cpu() if augmented else None

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.randint(0, 256, (3, SIDE, SIDE), dtype=torch.uint8)
        return self.transform(image) if self.transform else image, index % 10


def on_cpu() -> object:
    """Crop, resize, rotate, blur and normalise one image."""
    from torchvision.transforms import v2

    return v2.Compose([
        v2.RandomResizedCrop(CROP, antialias=True),
        v2.RandomRotation(30),
        v2.GaussianBlur(7),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ])  # fmt: skip


def on_device(images: torch.Tensor) -> torch.Tensor:
    """The same for a batch on its device: roi_align crops and resizes, one grid rotates each image by its own angle."""
    from torchvision.ops import roi_align

    count, where = len(images), images.device
    x = images.float().div_(255)
    corner = torch.rand(count, 2, device=where) * (SIDE - CROP)
    extent = CROP * (0.5 + 0.5 * torch.rand(count, 2, device=where))
    numbers = torch.arange(count, device=where, dtype=torch.float32).unsqueeze(1)
    x = roi_align(x, torch.cat([numbers, corner, corner + extent], 1), CROP, aligned=True)
    angle = (torch.rand(count, device=where) - 0.5) * math.radians(60)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(count, device=where)
    turn = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1)
    x = F.grid_sample(x, F.affine_grid(turn, list(x.shape), align_corners=False), align_corners=False)
    taps = torch.arange(7, device=where) - 3.0
    kernel = torch.exp(-(taps**2) / 4.5)
    kernel = (kernel / kernel.sum()).expand(3, 1, 1, 7)
    x = F.conv2d(F.conv2d(x, kernel, padding=(0, 3), groups=3), kernel.transpose(2, 3), padding=(3, 0), groups=3)
    return (x - sum(MEAN) / 3) / (sum(STD) / 3)


class Trainer:
    """A loader with 8 workers, a small classifier, and its optimizer."""

    def __init__(self, setting: Setting, in_loader: bool) -> None:
        torch.manual_seed(0)
        from torchvision.models import resnet18

        self.device = setting.device
        self.model = resnet18(num_classes=10).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        loader = DataLoader(
            Photos(in_loader),
            batch_size=setting.of(32, 2),
            num_workers=setting.of(8, 0),
            pin_memory=self.device == "cuda",
        )
        self.batches: Iterator[list[torch.Tensor]] = iter(loader)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The next batch, on the device."""
        with scope("load"):
            x, y = next(self.batches)
        with scope("to device"):
            return x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)

    def train(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """One training step."""
        with scope("train"):
            self.optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()


def in_line(in_loader: bool) -> Build:
    """Augment in the loader's workers, or on the device in line with training."""

    def made(setting: Setting) -> Step:
        trainer = Trainer(setting, in_loader)

        def step() -> None:
            x, y = trainer.batch()
            if not in_loader:
                with scope("augment"), torch.no_grad():
                    x = on_device(x)
            trainer.train(x, y)

        return step

    return made


def streamed(setting: Setting) -> Step:
    """Augment the next batch on a stream of its own while this one trains."""
    trainer = Trainer(setting, in_loader=False)
    side = torch.cuda.Stream()
    ready: list[tuple[torch.Tensor, torch.Tensor]] = []

    def prepare() -> None:
        with torch.cuda.stream(side):
            x, y = trainer.batch()
            with scope("augment"), torch.no_grad():
                ready.append((on_device(x), y))

    def step() -> None:
        if not ready:
            prepare()
        x, y = ready.pop()
        here = torch.cuda.current_stream()
        here.wait_stream(side)
        x.record_stream(here)
        y.record_stream(here)
        trainer.train(x, y)
        prepare()

    return step


VARIANTS = {"augmentation.cpu": in_line(True), "augmentation.gpu": in_line(False), "augmentation.stream": streamed}
