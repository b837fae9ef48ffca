"""How the CPU time of a function grows with the length of its text. Other processes do not count in CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable

SMALLEST_S = 0.005
"""Shorter times are mostly noise."""


def grows_linearly(read: Callable[[str], object], piece: str, length: int) -> bool:
    """Whether 4 times the text takes less than 10 times the CPU time; quadratic growth would take 16 times."""

    def cpu_time(characters: int) -> float:
        times = []
        for turn in range(3):
            text = piece * (characters // len(piece)) + " " * turn  # another text each time: results are cached
            began = time.process_time()
            read(text)
            times.append(time.process_time() - began)
        return min(times)

    return cpu_time(4 * length) < 10 * max(cpu_time(length), SMALLEST_S)
