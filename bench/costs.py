"""What a piece of work cost this process. Used by every child; needs the standard library alone."""

from __future__ import annotations

import cProfile
import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Costs:
    calls: int
    wall_s: float
    cpu_s: float
    """User and system time of all threads of the process."""
    peak_mb: float
    """Largest resident set since the process began."""
    folder: str = ""

    @property
    def cpu_ms_a_call(self) -> float:
        return 1_000 * self.cpu_s / self.calls

    @property
    def calls_a_s(self) -> float:
        return self.calls / self.wall_s

    def to_json(self, **more: object) -> str:
        return json.dumps(asdict(self) | more)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], int], profile: Path | None = None) -> Costs:
    """Do the work, which returns how many calls it made."""
    profiler = cProfile.Profile() if profile else None
    cpu, clock = _cpu_s(), time.monotonic()
    if profiler and profile:
        calls = profiler.runcall(work)
        profiler.dump_stats(profile)
    else:
        calls = work()
    wall, spent = time.monotonic() - clock, _cpu_s() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return Costs(calls, wall, spent, peak)
