"""Where a program runs and how much it does: the one argument of every builder in this folder."""

from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[], object]


@dataclass(frozen=True)
class Setting:
    """A device, and whether to do as little as a test needs instead of as much as the post did."""

    device: str = "cuda"
    small: bool = False

    def of(self, full: int, small: int) -> int:
        """One of two numbers, by how much is to be done."""
        return small if self.small else full


Build = Callable[[Setting], Step]
