"""Starting the two sides as child processes and reading back what they cost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .costs import Costs
from .loopback import NEVER_MS, Server
from .study import CALLS_PER_TURN, KEY, ROOT, TURNS, run_words, write_scenario

WARM_UP_TRIALS = 8
CHILD_TIMEOUT_S = 1_800
SIGNAL_WAIT_S = 2
"""How long an idle child gets to notice a signal."""
OK, INCOMPLETE = 0, 4
PROGRAM = ("-c", "import sys; from src.cli import main; sys.exit(main())")
"""What the installed command does, as arguments of Python."""


@dataclass(frozen=True)
class OurRun:
    costs: Costs
    folder: Path

    @property
    def journal(self) -> Path:
        return self.folder / "calls.jsonl"


def best_of(rounds: int, sides: Mapping[str, Callable[[], Costs]], key: Callable[[Costs], float]) -> dict[str, Costs]:
    """Each side in turn, so many rounds; the best of each."""
    found: dict[str, list[Costs]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            found[name].append(measure())
    return {name: min(costs, key=key) for name, costs in found.items()}


def environment(base_url: str) -> dict[str, str]:
    """The user's environment, less what would redirect or slow down a child, with the server's address."""
    dropped = ("OPENAI_", "COMPATIBLE_", "MEDICARE_EVAL_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PYTHONDONTWRITE")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(dropped)}
    return kept | {"COMPATIBLE_BASE_URL": base_url, "COMPATIBLE_API_KEY": KEY}


def calls_in(journal: Path) -> int:
    """Recorded calls. Anything but a first attempt that was answered makes the measurement void."""
    calls = 0
    with journal.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            calls += 1
            if record["outcome"] != "ok" or not record["call"].endswith("|0|1"):
                raise RuntimeError(
                    f"{journal}, line {calls}: {record['call']} is {record['outcome']}, not a plain call"
                )
    return calls


class Measurer:
    def __init__(self, server: Server, work: Path) -> None:
        self.server = server
        self.one_turn = write_scenario(work, "bench", turns=1)
        self.whole = write_scenario(work, "scenario_001")
        self._work = work
        self._folders = 0
        self._recorded: dict[str, OurRun] = {}

    def folder(self) -> Path:
        self._folders += 1
        folder = self._work / str(self._folders)
        folder.mkdir()
        return folder

    def child(self, latency_ms: int, module: str, *arguments: object, hold_after: int | None = None) -> Costs:
        """Run a module of the benchmark. With `hold_after`, stop it after so many calls, as Ctrl-C does."""
        command = [sys.executable, "-m", f"bench.{module}", *(str(argument) for argument in arguments)]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(self.server.url(latency_ms)),
        )
        try:
            if hold_after is not None:
                self._stop(process, hold_after)
            out, err = process.communicate(timeout=CHILD_TIMEOUT_S)
        finally:
            process.kill()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{err[-2_000:]}")
        return Costs(**json.loads(out.splitlines()[-1]))

    def _stop(self, process: subprocess.Popen[str], after: int) -> None:
        """The server keeps its answers back, so the run cannot end before it has noticed the signal."""
        self.server.ask("reset")
        self.server.ask(f"hold/{after}")
        try:
            while process.poll() is None:
                if self.server.ask("stats")["requests"] > after:
                    process.send_signal(signal.SIGINT)
                    time.sleep(SIGNAL_WAIT_S)
                    return
                time.sleep(0.05)
        finally:
            self.server.ask("release")

    def ours(
        self,
        latency_ms: int,
        scenario: Path,
        trials: int,
        at_once: int,
        *,
        stop: bool = False,
        isolation: str = "reply",
        more: Sequence[object] = (),
    ) -> OurRun:
        """A run of the real command line. With `stop`, it is stopped as many trials before its end as run at once.

        The calls that are then left are more than can be in flight, so the run cannot end on what it has sent already.
        """
        out, turns = self.folder(), TURNS if scenario == self.whole else 1
        calls = CALLS_PER_TURN * turns
        words, warm_up = (
            run_words(out / name, [scenario], repeats=repeats, concurrency=concurrency, isolation=isolation, more=more)
            for name, repeats, concurrency in (("runs", trials, at_once), ("warm-up", WARM_UP_TRIALS, WARM_UP_TRIALS))
        )
        hold_after = calls * (WARM_UP_TRIALS + trials - at_once) if stop else None
        costs = self.child(
            latency_ms, "harness", json.dumps(words), "--warm-up", json.dumps(warm_up), hold_after=hold_after
        )
        run = OurRun(costs, next((out / "runs").iterdir()))
        run = replace(run, costs=replace(costs, calls=calls_in(run.journal)))
        if costs.exit_code != (INCOMPLETE if stop else OK):
            raise RuntimeError(f"the run ended with exit code {costs.exit_code}")
        if not stop and isolation == "reply" and run.costs.calls != calls * trials:
            raise RuntimeError(f"{trials} trials made {run.costs.calls} calls, not {calls * trials}")
        return run

    def cost(
        self,
        latency_ms: int,
        scenario: Path,
        trials: int,
        at_once: int,
        *,
        isolation: str = "reply",
        more: Sequence[object] = (),
    ) -> Costs:
        """What such a run costs; its folder is removed."""
        run = self.ours(latency_ms, scenario, trials, at_once, isolation=isolation, more=more)
        shutil.rmtree(run.folder)
        return run.costs

    def command(self, run: Path, *words: str) -> Costs:
        """What a command that only reads a run costs, by its second run in one process."""
        line = json.dumps([*words, str(run)])
        costs = self.child(0, "harness", line, "--warm-up", line)
        if costs.exit_code:
            raise RuntimeError(f"{' '.join(words)} ended with exit code {costs.exit_code}")
        return costs

    def whole_process(self, *arguments: object, ends_with: int = OK) -> Costs:
        """What a Python process costs from its start to its end, with all processes that it starts and waits for."""
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *(str(argument) for argument in arguments)],
            cwd=ROOT,
            env=environment(self.server.url(0)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        if process.returncode != ends_with:
            raise RuntimeError(f"{arguments} ended with {process.returncode}, not {ends_with}")
        return Costs(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1_024)

    def help_of(self, command: str) -> str:
        words = [sys.executable, *PROGRAM, command, "--help"]
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    def recorded(self, trials: int, isolation: str = "reply") -> OurRun:
        """A short run, made once, whose calls are sent or read again."""
        if isolation not in self._recorded:
            self._recorded[isolation] = self.ours(0, self.whole, min(64, trials), 64, isolation=isolation)
        return self._recorded[isolation]

    def bare(self, latency_ms: int, trials: int, at_once: int, *more: object, isolation: str = "reply") -> Costs:
        """The bare loop over the bodies of the recorded run."""
        journal = self.recorded(trials, isolation).journal
        options = ("--base-url", self.server.url(latency_ms), "--journal", journal)
        return self.child(0, "bare", *options, "--trials", trials, "--concurrency", at_once, *more)

    def until_first_call(self, run: Path) -> float:
        """Seconds from the start of `resume` to its first request. It is never answered, so the folder stays as is."""
        self.server.ask("reset")
        began = time.monotonic()
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "src.orchestrator",
                "resume",
                str(run),
                "--quiet",
                "--concurrency",
                "64",
                "--no-probe",
            ],
            cwd=ROOT,
            env=environment(self.server.url(NEVER_MS)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            while time.monotonic() - began < CHILD_TIMEOUT_S:
                first: float | None = self.server.ask("stats")["first_at"]
                if first is not None:
                    return first - began
                if process.poll() is not None:
                    assert process.stderr
                    raise RuntimeError(f"resume ended with {process.returncode}: {process.stderr.read()[-500:]!r}")
                time.sleep(0.05)
            raise RuntimeError("resume made no call")
        finally:
            process.kill()
            process.communicate()
