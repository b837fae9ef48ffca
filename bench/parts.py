"""The parts of the benchmark: each measures both sides and gives rows for the table."""

from __future__ import annotations

import hashlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from .costs import Costs
from .measure import INCOMPLETE, PROGRAM, Measurer, OurRun, best_of
from .study import CALLS_PER_TURN, LEVELS_PER_TURN, MOST_AT_ONCE_PER_TURN, TURNS
from .table import Goal, Row, compared

ISOLATIONS = ("flagged", "claim")
"""The ways to divide claims into calls, other than that of all other parts; the first is the default."""
PROCESSES = 2
VIA = {"create": "chat.completions.create", "raw": "with_raw_response.create", "post": "client.post"}


@dataclass(frozen=True)
class WallCase:
    latency_ms: int
    at_once: int
    waves: int
    rounds: int
    ratio: Goal | None = None
    share: Goal | None = None

    @property
    def trials(self) -> int:
        return self.at_once * self.waves

    @property
    def ideal_s(self) -> float:
        """Calls take exactly their latency and nothing else takes any time; a trial starts when one ends."""
        return self.waves * LEVELS_PER_TURN * self.latency_ms / 1_000


@dataclass(frozen=True)
class InFlightCase:
    """A run with a stated number of calls in flight, and more trials than these calls can serve."""

    latency_ms: int
    calls: int
    trials: int
    share: Goal | None = None

    @property
    def ideal_s(self) -> float:
        """If all calls took exactly their latency and as many as are allowed were always in flight."""
        return self.trials * CALLS_PER_TURN * self.latency_ms / 1_000 / self.calls


@dataclass(frozen=True)
class Sizes:
    rounds: int
    cpu_trials: int
    isolation_trials: int
    """Fewer, because a trial may make five times as many calls."""
    wall: tuple[WallCase, ...]
    few: int
    many: int
    at_once: int
    """Trials at once of the runs of few and of many trials."""
    inspect_samples: int
    transport_trials: int
    starts: int
    in_flight: tuple[InFlightCase, ...]
    process_trials: int


FULL = Sizes(
    rounds=3,
    cpu_trials=150,
    isolation_trials=64,
    wall=(
        WallCase(0, 64, 4, 3),
        WallCase(200, 32, 8, 3, ratio=Goal(1.05)),
        WallCase(2_000, 128, 3, 1, share=Goal(0.95, least=True)),
        WallCase(2_000, 256, 2, 1),
    ),
    few=1_000,
    many=10_000,
    at_once=64,
    inspect_samples=500,
    transport_trials=100,
    starts=15,
    in_flight=(
        InFlightCase(0, 64, 400),
        InFlightCase(200, 64, 800),
        InFlightCase(2_000, 256, 2_048, share=Goal(0.95, least=True)),
    ),
    process_trials=4_000,
)
SMOKE = Sizes(
    rounds=1,
    cpu_trials=3,
    isolation_trials=3,
    wall=(WallCase(20, 2, 2, 1, Goal(1.05), Goal(0.95, least=True)),),
    few=2,
    many=8,
    at_once=2,
    inspect_samples=4,
    transport_trials=2,
    starts=2,
    in_flight=(InFlightCase(0, 4, 4), InFlightCase(20, 4, 8, share=Goal(0.95, least=True))),
    process_trials=8,
)


class Parts:
    def __init__(self, measure: Measurer, sizes: Sizes) -> None:
        self._measure = measure
        self._sizes = sizes
        self._ours: Costs | None = None
        self._long_run: OurRun | None = None

    def run(self, name: str) -> Iterator[Row]:
        """The rows of one part."""
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "cpu": self._cpu,
            "isolation": self._isolation,
            "reread": self._reread,
            "wall": self._wall,
            "memory": self._memory,
            "resume": self._resume,
            "start": self._start,
            "efficiency": self._efficiency,
            "processes": self._processes,
            "replay": self._replay,
            "inspect": self._inspect,
            "transports": self._transports,
        }
        return parts[name]()

    def _cpu(self) -> Iterator[Row]:
        trials, measure = self._sizes.cpu_trials, self._measure
        sides = {"ours": partial(measure.cost, 0, measure.whole, trials, 64)} | {
            via: partial(measure.bare, 0, trials, 64, "--via", via) for via in VIA
        }
        best = best_of(self._sizes.rounds, sides, key=lambda costs: costs.cpu_ms_per_call)
        ours, bare = best["ours"], best["create"]
        self._ours = ours
        yield compared(f"calls made, {trials} trials of {TURNS} turns", ours.calls, bare.calls, form=",.0f")
        for via, name in VIA.items():
            goal = Goal(1) if via == "create" else None
            other = best[via].cpu_ms_per_call
            yield compared(f"CPU per call, ms (bare SDK: {name})", ours.cpu_ms_per_call, other, goal=goal)
        yield compared("calls/s, 0 ms", ours.calls_per_s, bare.calls_per_s, form=".0f")
        calls = TURNS * CALLS_PER_TURN
        yield compared(
            f"trials/s, 0 ms, {TURNS} turns and {calls} calls each",
            ours.calls_per_s / calls,
            bare.calls_per_s / calls,
            form=".1f",
        )

    def _isolation(self) -> Iterator[Row]:
        """What it costs to divide the claims of a reply into several calls. A trial makes more calls then."""
        trials, measure = self._sizes.isolation_trials, self._measure
        ways = ("reply", *ISOLATIONS)
        sides = {way: partial(measure.cost, 0, measure.whole, trials, 64, isolation=way) for way in ways}
        sides |= {f"bare {way}": partial(measure.bare, 0, trials, 64, isolation=way) for way in ISOLATIONS}
        best = best_of(self._sizes.rounds, sides, key=lambda costs: costs.cpu_ms_per_call)
        base = best["reply"]
        for way in ISOLATIONS:
            name, ours = f"--isolation {way}", best[way]
            calls, before = (one.calls / (trials * TURNS) for one in (ours, base))
            yield compared(f"calls per turn, {name} (other: reply)", calls, before, form=".1f")
            bare = best[f"bare {way}"].cpu_ms_per_call
            yield compared(f"CPU per call, ms, {name} (bare SDK: {VIA['create']})", ours.cpu_ms_per_call, bare)
            spent, before = (1_000 * one.cpu_s / trials for one in (ours, base))
            yield compared(f"CPU per trial, ms, {name} (other: reply)", spent, before, form=".0f")

    def _our_cost(self) -> Costs:
        """Our best CPU per call; measured now if the cpu part was left out."""
        if self._ours is None:
            self._ours = self._measure.cost(0, self._measure.whole, self._sizes.cpu_trials, 64)
        return self._ours

    def _reread(self) -> Iterator[Row]:
        run, ours = self._measure.recorded(self._sizes.cpu_trials), self._our_cost()
        for name in ("verify", "replay"):
            costs = [self._measure.command(run.folder, name) for _ in range(self._sizes.rounds)]
            again = 1_000 * min(one.cpu_s for one in costs) / run.costs.calls
            yield compared(f"CPU per call, ms: {name} (other: our run)", again, ours.cpu_ms_per_call)

    def _start(self) -> Iterator[Row]:
        """Whole processes, imports included, with compiled bytecode; the run that is verified has one trial."""
        run = self._measure.ours(0, self._measure.one_turn, 1, 1)
        sides = {
            "bare": partial(self._measure.whole_process, "-c", "pass"),
            "models": partial(self._measure.whole_process, *PROGRAM, "models"),
            "verify": partial(self._measure.whole_process, *PROGRAM, "verify", run.folder),
        }
        best = best_of(self._sizes.starts, sides, key=lambda costs: costs.cpu_s)
        bare = 1_000 * best["bare"].cpu_s
        for name in ("models", "verify"):
            spent = 1_000 * best[name].cpu_s
            yield compared(
                f"start to end of {name}, CPU ms (other: bare Python)", spent, bare, form=".0f", goal=Goal(6)
            )

    def _efficiency(self) -> Iterator[Row]:
        for case in self._sizes.in_flight:
            costs = self._measure.cost(
                case.latency_ms, self._measure.one_turn, case.trials, case.calls, more=("--in-flight", case.calls)
            )
            # Without latency, the ideal is a processor that is never idle.
            ideal = case.ideal_s or costs.cpu_s
            share = ideal / costs.wall_s
            yield Row(
                f"share of the ideal ({ideal:.1f} s), {case.latency_ms} ms, {case.calls} calls in flight, "
                f"{case.trials:,} trials (other: calls/s)",
                f"{share:.1%}",
                f"{costs.calls_per_s:.0f}",
                share,
                f">= {case.share.limit:.0%}" if case.share else "",
                case.share.met(share) if case.share else None,
            )

    def _processes(self) -> Iterator[Row]:
        if "--processes" not in self._measure.help_of("run"):
            raise SkippedError("this release has no --processes")
        for way in ("reply", ISOLATIONS[0]):
            run = partial(self._measure.cost, 0, self._measure.one_turn, self._sizes.process_trials, 64, isolation=way)
            before = self._measure.server.ask("stats")["cpu_s"]
            two, one = run(more=("--processes", PROCESSES)), run()
            share = (self._measure.server.ask("stats")["cpu_s"] - before) / (two.wall_s + one.wall_s)
            row = compared(
                f"calls/s, 0 ms, --processes {PROCESSES}, --isolation {way}, server at {share:.0%} of a core "
                "(other: one process)",
                two.calls_per_s,
                one.calls_per_s,
                form=".0f",
            )
            yield replace(row, goal=">= 1,000 calls/s", met=two.calls_per_s >= 1_000)

    def _wall(self) -> Iterator[Row]:
        for case in self._sizes.wall:
            sides = {
                "ours": partial(self._measure.cost, case.latency_ms, self._measure.one_turn, case.trials, case.at_once),
                "bare": partial(self._measure.bare, case.latency_ms, case.trials, case.at_once, "--turns", 1),
            }
            best = best_of(case.rounds, sides, key=lambda costs: costs.wall_s)
            ours, bare = best["ours"].wall_s, best["bare"].wall_s
            calls = MOST_AT_ONCE_PER_TURN * case.at_once
            where = f"{case.latency_ms} ms, {case.at_once} trials at once (up to {calls} calls), {case.trials} trials"
            yield compared(f"wall time, s, {where}", ours, bare, goal=case.ratio)
            if case.latency_ms:
                share = case.ideal_s / ours
                yield Row(
                    f"share of the ideal ({case.ideal_s:.1f} s), {where}",
                    f"{share:.1%}",
                    f"{case.ideal_s / bare:.1%}",
                    bare / ours,
                    f">= {case.share.limit:.0%}" if case.share else "",
                    case.share.met(share) if case.share else None,
                )

    def _memory(self) -> Iterator[Row]:
        few, many = self._sizes.few, self._sizes.many
        small = self._measure.cost(0, self._measure.one_turn, few, self._sizes.at_once)
        large = self._the_long_run().costs
        yield compared(
            f"peak memory, MB, {many:,} trials (other: ours with {few:,})",
            large.peak_mb,
            small.peak_mb,
            form=".0f",
            goal=Goal(1.15),
        )
        yield compared(
            f"CPU per call, ms, over {many:,} trials (other: over {few:,})",
            large.cpu_ms_per_call,
            small.cpu_ms_per_call,
        )

    def _the_long_run(self) -> OurRun:
        """A long run stopped just before its end."""
        if self._long_run is None:
            sizes = self._sizes
            self._long_run = self._measure.ours(0, self._measure.one_turn, sizes.many, sizes.at_once, stop=True)
        return self._long_run

    def _resume(self) -> Iterator[Row]:
        run = self._the_long_run()
        seconds = min(self._measure.until_first_call(run.folder) for _ in range(self._sizes.rounds))
        reading = min(_seconds_to_hash(run.journal) for _ in range(self._sizes.rounds))
        size = run.journal.stat().st_size / 1e6
        row = compared(
            f"resume of {self._sizes.many:,} trials: start to first call, s (other: hashing each line of the journal)",
            seconds,
            reading,
        )
        yield Row(row.measure, row.ours, row.other, row.ratio, f"< 3 s ({size:.0f} MB journal)", seconds < 3)

    def _replay(self) -> Iterator[Row]:
        """The long run is not complete, so the command says so in the end; all its results are computed again."""
        run = self._the_long_run()
        with (run.folder / "results.jsonl").open("rb") as lines:
            results = sum(1 for _ in lines)
        costs = self._measure.whole_process(*PROGRAM, "replay", run.folder, ends_with=INCOMPLETE)
        row = compared(f"replay of {results:,} trials, s (other: CPU s of all processes)", costs.wall_s, costs.cpu_s)
        yield replace(row, goal="< 60 s", met=costs.wall_s < 60)

    def _inspect(self) -> Iterator[Row]:
        if importlib.util.find_spec("inspect_ai") is None:
            raise SkippedError("inspect_ai is not importable here; install inspect-ai into this environment")
        samples = self._sizes.inspect_samples
        options = ("--base-url", self._measure.server.url(0), "--out", self._measure.folder(), "--samples", samples)
        runs = [self._measure.child(0, "inspect_side", *options) for _ in range(min(2, self._sizes.rounds))]
        theirs, ours = min(runs, key=lambda costs: costs.cpu_ms_per_call), self._our_cost()
        names = f"inspect-ai {version('inspect-ai')}"
        yield compared(
            f"CPU per call, ms (other: {names})", ours.cpu_ms_per_call, theirs.cpu_ms_per_call, goal=Goal(0.25)
        )
        yield compared("calls/s, 0 ms, 64 at once (other: Inspect)", ours.calls_per_s, theirs.calls_per_s, form=".0f")

    def _transports(self) -> Iterator[Row]:
        """What the SDK's other transport and its other ways of use cost; all of it the bare loop."""
        trials = self._sizes.transport_trials
        ways: dict[str, tuple[str, ...]] = {"create, httpx2": (), "post, httpx2": ("--via", "post")}
        if importlib.util.find_spec("aiohttp") is not None:
            ways["create, aiohttp"] = ("--transport", "aiohttp")
            ways["post, aiohttp"] = ("--via", "post", "--transport", "aiohttp")
        ways["create, httpx2, a client per call"] = ("--client", "per-call")
        sides = {
            name: partial(self._measure.bare, 0, max(1, trials // 10) if "--client" in way else trials, 64, *way)
            for name, way in ways.items()
        }
        best = best_of(self._sizes.rounds, sides, key=lambda costs: costs.cpu_ms_per_call)
        base = best.pop("create, httpx2").cpu_ms_per_call
        for name, costs in best.items():
            yield compared(f"bare SDK, CPU per call, ms: {name} (other: create, httpx2)", costs.cpu_ms_per_call, base)
        if "create, aiohttp" not in ways:
            raise SkippedError("the SDK's aiohttp transport: aiohttp is not importable here")


class SkippedError(Exception):
    """A part, or the rest of it, cannot be measured in this environment."""


def _seconds_to_hash(path: Path) -> float:
    began = time.monotonic()
    with path.open("rb") as lines:
        for line in lines:
            hashlib.sha256(line).hexdigest()
    return time.monotonic() - began
