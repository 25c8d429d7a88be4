"""The types of the arrays that stages pass to one another, one-dimensional numpy columns; and two of them as one key."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int8 = npt.NDArray[np.int8]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]


def numbered_pairs(first: Any, second: Any) -> tuple[Int64, Int64]:
    """Number the different pairs of two columns; as `np.unique` of their rows, which takes ten times as long.

    Args:
        first, second: of one length, numbers from -1 to below 2**31.

    Returns:
        The pairs in ascending order, one a row, and for each place of the columns the number of its pair.
    """
    width = int(second.max(initial=0)) + 2
    codes, which = np.unique((first.astype(np.int64) + 1) * width + second + 1, return_inverse=True)
    return np.stack([codes // width - 1, codes % width - 1], axis=1), which.reshape(-1)
