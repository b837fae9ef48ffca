"""What a piece of work cost this process. Used by every child process; needs only the standard library."""

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
    wall_s: float
    cpu_s: float
    """User and system time of all threads of the process."""
    peak_mb: float
    """Largest resident set since the process started."""
    calls: int = 0
    exit_code: int = 0

    @property
    def cpu_ms_per_call(self) -> float:
        return 1_000 * self.cpu_s / self.calls

    @property
    def calls_per_s(self) -> float:
        return self.calls / self.wall_s

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], None], profile: Path | None = None) -> Costs:
    """Do the work and say what it cost; with `profile`, also write a cProfile of it there."""
    profiler = cProfile.Profile() if profile else None
    cpu, clock = _cpu_s(), time.monotonic()
    if profiler and profile:
        profiler.runcall(work)
        profiler.dump_stats(profile)
    else:
        work()
    wall, spent = time.monotonic() - clock, _cpu_s() - cpu
    return Costs(wall, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)
