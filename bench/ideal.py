"""The wall time of an ideal client: calls take exactly their latency, and nothing else takes any time.

It is computed by playing the study through, not by a formula: one-turn trials start in order, so many at once; a trial
asks its target, then its extractor, then both verifiers and the scorer together; a call that finds all places taken
waits its turn, first come first served; the next trial starts when one ends. No client that keeps to both limits in
this order can be quicker.
"""

from __future__ import annotations

import heapq
from collections import deque

from .study import LEVELS_OF_ONE_TURN

_CALLS_BY_LEVEL = (1, 1, 3)


def ideal_wall_s(trials: int, latency_s: float, *, trials_at_once: int, calls_at_once: int) -> float:
    clock, free = 0.0, calls_at_once
    started = min(trials, trials_at_once)
    waiting = deque((trial, 0) for trial in range(started))
    left = dict.fromkeys(range(started), 1)
    """Calls of a trial's present level that have not come back."""
    ends: list[tuple[float, int, int]] = []
    while waiting or ends:
        while waiting and free:
            trial, level = waiting.popleft()
            heapq.heappush(ends, (clock + latency_s, trial, level))
            free -= 1
        clock, trial, level = heapq.heappop(ends)
        free += 1
        left[trial] -= 1
        if left[trial]:
            continue
        if level + 1 < LEVELS_OF_ONE_TURN:
            left[trial] = _CALLS_BY_LEVEL[level + 1]
            waiting.extend([(trial, level + 1)] * left[trial])
        elif started < trials:
            left[started] = 1
            waiting.append((started, 0))
            started += 1
    return clock
