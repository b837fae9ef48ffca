"""Every provider, every fault, every role, through the whole pipeline: `python -m tests.fault_matrix`.

Each cell is a run of its own: one scenario of one turn, the real SDK on the wire against the loopback server, the real
journal, results and seal. The server knows by the model's name which cell a request belongs to and by the system prompt
which role it is in; the role under test gets the fault at every attempt, every other role a valid answer. Then the run
folder is read back and compared with what was expected, and `verify`, `replay` and `report` must work on it.

Without a fault (the controls) the same runs must be scored, so that no cell passes because nothing was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args
from unittest.mock import patch

from src import orchestrator, storage
from src.adapters.base import (
    RETRYABLE,
    Adapter,
    ModelReply,
    ModelRequest,
)
from src.adapters.offline_adapter import ROLE_OF_SCHEMA, OfflineAdapter
from src.agents.ask import SCHEMA_REFUSED
from src.calls import limits
from src.calls.gateway import CallResources, Stop
from src.calls.limits import Limits
from src.planning.prompts import REPLY_TYPES, load_prompts
from src.schemas import (
    CallOutcome,
    CallPolicy,
    CallRecord,
    RunPlan,
    Scenario,
    TrialResult,
    Verdict,
    VerifierOutput,
)
from src.store.failpoints import Failpoints
from src.store.hash_chain import GENESIS, ChainReader, is_recovery
from src.text.fence import unwrap
from tests.adapters.test_contract import BY_NAME, ENVIRONMENT
from tests.helpers import fact_json, manifest, plan, scenario, with_canary
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ROOT, call

Role = Literal["target", "extractor", "verifier", "scorer", "adjudicator"]
ROLES: tuple[Role, ...] = get_args(Role)
PROVIDERS = ("openai", "anthropic", "google", "xai", "compatible")
FACTS = ("The standard Part B premium is $202.90 a month in 2026.", "The Part B deductible is $283 a year in 2026.")
ANSWER = " ".join(FACTS)
ATTEMPTS = 2
SLOW_FAULT_S = 2.0
"""How long an attempt may take that meets a fault which never ends by itself. All others may take minutes."""
PAGE = ROOT / "docs" / "faults.md"


@dataclass(frozen=True)
class Fault:
    name: str
    scripted: Scripted = field(hash=False)
    outcome: CallOutcome
    """The class it must be given."""
    status: int | None = 200
    """The HTTP status the journal must hold."""
    times: int = 1_000
    """How many requests of the role it hits; what comes after is answered."""

    @property
    def slow(self) -> bool:
        """Whether it is only over when the attempt's time is."""
        return self.outcome == "timeout"


def _status(status: int, outcome: CallOutcome) -> Fault:
    return Fault(str(status), Scripted(status=status), outcome, status)


NO_FAULT = Fault("no fault", Scripted(), "ok", None)
FAULTS: tuple[Fault, ...] = (
    *(_status(status, "permanent") for status in (400, 401, 403, 404)),
    *(_status(status, "transient") for status in (408, 409)),
    *(_status(status, "permanent") for status in (413, 422)),
    _status(429, "rate_limited"),
    *(_status(status, "transient") for status in (500, 502, 503, 529)),
    Fault("timeout", Scripted(fault="timeout"), "timeout", None),
    Fault("reset", Scripted(fault="reset"), "transient", None),
    Fault("truncated body", Scripted(fault="truncated_body"), "transient"),
    Fault("malformed JSON", Scripted(fault="malformed_json"), "malformed"),
    Fault("HTML with 200", Scripted(fault="html"), "malformed"),
    Fault("`null`", Scripted(fault="null"), "malformed"),
    Fault("`{}`", Scripted(fault="empty_object"), "malformed"),
    Fault("empty body", Scripted(fault="empty_body"), "malformed"),
    Fault("slow drip", Scripted(fault="slow_drip"), "timeout"),
)


@dataclass(frozen=True)
class Cell:
    role: Role
    fault: Fault
    provider: str

    def __str__(self) -> str:
        return f"{self.role}, {self.fault.name}, {self.provider}"


@dataclass(frozen=True)
class Finding:
    """What a cell came to, as its place in the table shows it."""

    outcome: str
    """The class of every attempt at the failed call."""
    attempts: int
    """At each call."""
    askings: int
    """Calls of the judge; where both verifiers failed, of each."""
    trial: str

    def __str__(self) -> str:
        asked = f" asked {self.askings}x" if self.askings > 1 else ""
        return f"{self.outcome} x{self.attempts}{asked} → {self.trial}"


TRIAL: dict[Role, str] = {
    "target": "failed",
    "extractor": "judge_failure",
    "verifier": "judge_failure",
    "scorer": "judge_failure",
    "adjudicator": "judge_failure",
}
"""What becomes of a trial in which the role brings nothing but failures."""
MEANS: dict[Role, str] = {
    "target": "The provider is asked as the target. The turn has no answer, and the trial no claim and no score.",
    "extractor": "The provider splits the answer into claims. There are none to check, and the trial has no score.",
    "verifier": "The provider is both verifiers. No claim has a verdict, and the trial has no score.",
    "scorer": "The provider reads for refusals and hedges. There is no observation, and the trial has no score.",
    "adjudicator": (
        "The provider settles ties. The tied claims stay without a label, the trial has no score, and it is marked for a "
        "person to look at."
    ),
}


def expected(cell: Cell) -> Finding:
    if cell.fault is NO_FAULT:
        return Finding("ok", 1, 1, "scored")
    attempts = ATTEMPTS if cell.fault.outcome in RETRYABLE else 1
    askings = 2 if cell.role != "target" and cell.fault.status in SCHEMA_REFUSED else 1
    return Finding(cell.fault.outcome, attempts, askings, TRIAL[cell.role])


def cells(
    roles: Iterable[Role] = ROLES, faults: Iterable[Fault] = FAULTS, providers: Iterable[str] = PROVIDERS
) -> list[Cell]:
    given = list(faults), list(providers)
    return [Cell(role, fault, provider) for role in roles for fault in given[0] for provider in given[1]]


# ---- the server's part ------------------------------------------------------------------------------------------


@dataclass
class Place:
    """A cell being run: its name on the wire, its folder, and what the server saw of it."""

    cell: Cell
    number: int
    folder: Path
    seen: Counter[str] = field(default_factory=Counter)
    """Requests by role."""
    crash: str | None = None

    @property
    def model(self) -> str:
        provider = BY_NAME[self.cell.provider]
        return f"{provider.name}:{provider.model}-c{self.number}"

    @property
    def contrary(self) -> str:
        """The second verifier, which where ties are wanted finds nothing in the key."""
        return f"{self.model}-contrary"


_ROLE_OF_PROMPT = {prompt.text: role for role, prompt in load_prompts().items()}


def role_and_task(received: Received) -> tuple[str, str]:
    """Which role a request is in, and the first thing the user says in it."""
    body = received.body
    if received.wire == "google":
        parts = body.get("systemInstruction", {}).get("parts", [])
        system, task = "".join(part["text"] for part in parts), body["contents"][0]["parts"][0]["text"]
    elif received.wire == "anthropic":
        system, task = body.get("system", ""), body["messages"][0]["content"]
    else:
        said = [message["content"] for message in body["messages"] if message["role"] == "system"]
        system, task = "".join(said), body["messages"][len(said)]["content"]
    return (_ROLE_OF_PROMPT[system] if system else "target"), task


def right_answer(role: str, task: str) -> str:
    """What a working model says: the target its fixed answer, a judge what the rules compute."""
    if role == "target":
        return ANSWER
    input_type, compute = ROLE_OF_SCHEMA[REPLY_TYPES[role].__name__]  # type: ignore[index]
    answer = compute(input_type.model_validate_json(unwrap(task)[1])).model_dump_json()
    return with_canary(answer, task)


def contrary_answer(task: str) -> str:
    ids = [claim["claim_id"] for claim in json.loads(unwrap(task)[1])["claims"]]
    verdicts = [Verdict(claim_id=name, label="NOT_IN_KEY", evidence=(), severity="none", notes="") for name in ids]
    return with_canary(VerifierOutput(verdicts=tuple(verdicts)).model_dump_json(), task)


def script(places: Sequence[Place]) -> Callable[[Received], Scripted]:
    by_number = {str(place.number): place for place in places}

    def answer(received: Received) -> Scripted:
        role, task = role_and_task(received)
        place = by_number[received.model.removesuffix("-contrary").rpartition("-c")[2]]
        place.seen[role] += 1
        fault = place.cell.fault
        if role == place.cell.role and fault is not NO_FAULT and place.seen[role] <= fault.times:
            return fault.scripted
        if role == "verifier" and place.cell.role == "adjudicator" and received.model.endswith("-contrary"):
            return Scripted(text=contrary_answer(task))
        return Scripted(text=right_answer(role, task))

    return answer


# ---- one run per cell -------------------------------------------------------------------------------------------


class FixedTarget:
    """A target in this process that always gives the same answer."""

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return ModelReply(outcome="ok", text=ANSWER, sent=request.as_json(), received=ANSWER, served_model="fake-fixed")

    async def aclose(self) -> None: ...


@dataclass
class Hurried:
    """An adapter that gives up soon on the role under test where its fault never ends; other roles have all their time,
    so that a cell comes out the same on a busy machine."""

    inner: Adapter
    cell: Cell

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        role = _ROLE_OF_PROMPT[request.system] if request.system else "target"
        hurried = self.cell.fault.slow and role == self.cell.role
        return await self.inner.complete(request, timeout_s=SLOW_FAULT_S if hurried else timeout_s)

    async def aclose(self) -> None:
        await self.inner.aclose()


def two_facts() -> Scenario:
    facts = [fact_json(f"F{number}", statement) for number, statement in enumerate(FACTS, 1)]
    return scenario(answer_key={"canonical_facts": facts, "required_points": ["F1", "F2"], "disallowed_claims": []})


def plan_of(place: Place) -> RunPlan:
    policy = CallPolicy(max_attempts=ATTEMPTS, timeout_s=300.0, deadline_s=900.0)
    if place.cell.role == "target":
        made = plan(scenarios=[two_facts()], targets=[place.model])
    else:
        made = plan(scenarios=[two_facts()], targets=["fake:fixed"], verifiers=[place.model, place.contrary])
    return made.model_copy(update={"policy": policy, "prompts": load_prompts()})


async def carry_out(place: Place, adapters: dict[str, Adapter]) -> None:
    made = manifest(plan_of(place))
    place.folder.mkdir(parents=True)
    storage.write_once(
        place.folder / storage.MANIFEST, storage.encode_record(made) + b"\n", Failpoints.from_environment(), "manifest"
    )
    try:
        await orchestrator.execute(
            place.folder,
            made,
            concurrency=1,
            resources=CallResources(
                adapter_for=lambda provider: Hurried(adapters[provider], place.cell), limits=Limits(8), stop=Stop()
            ),
            on_call=lambda record: None,
            on_start=lambda total, done: None,
            on_trial=lambda: None,
        )
    except Exception:
        place.crash = traceback.format_exc()


async def carry_out_all(places: Sequence[Place], server: Loopback) -> list[str]:
    """Run the cells, some at a time; complaints of the event loop come back as problems."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))
    providers = dict.fromkeys(place.cell.provider for place in places)
    adapters: dict[str, Adapter] = {name: BY_NAME[name].open(server) for name in providers}
    adapters |= {"fake": FixedTarget(), "offline": OfflineAdapter()}

    waiting = iter(places)

    async def worker() -> None:
        for place in waiting:
            await carry_out(place, adapters)

    try:
        await asyncio.gather(*(worker() for _ in range(10)))
    finally:
        for adapter in adapters.values():
            await adapter.aclose()
    return complaints


@contextmanager
def bare_environment() -> Iterator[None]:
    """No setting of an SDK and no proxy."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(ENVIRONMENT) and not name.lower().endswith("_proxy")
    }
    with patch.dict(os.environ, kept, clear=True):
        yield


@dataclass
class Outcome:
    findings: dict[Cell, Finding] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def run(chosen: Sequence[Cell], parent: Path) -> Outcome:
    """Run the cells and examine what each left behind."""
    places = [Place(cell, number, parent / f"{number}") for number, cell in enumerate(chosen)]
    outcome = Outcome()
    quick = patch.object(limits, "FIRST_CEILING_S", 0.001)
    with bare_environment(), quick, Loopback(script(places), keep=1) as server:
        outcome.problems += asyncio.run(carry_out_all(places, server))
    for place in places:
        finding, problems = examine(place)
        outcome.findings[place.cell] = finding
        if finding != expected(place.cell):
            problems.insert(0, f"came to {finding}, not to {expected(place.cell)}")
        outcome.problems += [f"{place.cell}: {problem}" for problem in problems]
    return outcome


# ---- what a run must have left behind ---------------------------------------------------------------------------


def examine(place: Place) -> tuple[Finding, list[str]]:
    if place.crash:
        return Finding("traceback", 0, 0, "none"), [place.crash]
    cell = place.cell
    records = _records(place.folder)
    lines = [line.payload for line in ChainReader(place.folder / storage.RESULTS, GENESIS)]
    result = TrialResult.model_validate_json(lines[0])
    mine = [record for record in records if record.call.split("|")[1] == cell.role]
    calls = Counter(record.call.rpartition("|")[0] for record in mine)
    outcomes = sorted({record.outcome for record in mine})
    unresolved = any(claim.label is None for claim in result.final_claims)
    trial = result.outcome + (", unresolved" if unresolved and result.outcome == "scored" else "")
    problems = [*_wire_problems(place, records), *_result_problems(cell, result), *_command_problems(place.folder)]
    by_judge = Counter(name.rpartition("|")[0] for name in calls)
    if (
        len(by_judge) != (2 if cell.role == "verifier" else 1)
        or len({*calls.values()}) > 1
        or len({*by_judge.values()}) > 1
    ):
        problems.append(f"calls of the role and their attempts: {dict(calls)}")
    if cell.fault is not NO_FAULT:
        problems += [f"{record.call}: {problem}" for record in mine for problem in _record_problems(cell, record)]
    return Finding(
        " ".join(outcomes), max(calls.values(), default=0), max(by_judge.values(), default=0), trial
    ), problems


def _records(folder: Path) -> list[CallRecord]:
    reader = ChainReader(folder / storage.JOURNAL, storage.manifest_sha256(folder))
    return [CallRecord.model_validate_json(line.payload) for line in reader if not is_recovery(line.payload)]


def _wire_problems(place: Place, records: Sequence[CallRecord]) -> Iterator[str]:
    """Every request the server saw is one attempt in the journal, and the other way round."""
    asked = Counter(
        record.call.split("|")[1] for record in records if record.model.partition(":")[0] == place.cell.provider
    )
    if asked != place.seen:
        yield f"the server saw {dict(place.seen)}, the journal holds {dict(asked)}"
    if not asked[place.cell.role]:
        yield "the role was never asked"


def _record_problems(cell: Cell, record: CallRecord) -> Iterator[str]:
    """What is wrong with the record of a failed attempt."""
    number, last = int(record.call.rpartition("|")[2]), expected(cell).attempts
    if record.final != (number == last):
        yield f"attempt {number} of {last} is final: {record.final}"
    if record.text is not None or record.served_model is not None or record.stop_reason is not None:
        yield f"holds an answer: {record.text!r}"
    if record.status != cell.fault.status:
        yield f"has status {record.status}, not {cell.fault.status}"
    if not record.error or not record.sent:
        yield f"does not say what was sent and what went wrong: {record.error!r}"
    if (record.received is None) != (cell.fault.name in ("timeout", "reset")):
        yield f"keeps of the body: {record.received!r}"


def _result_problems(cell: Cell, result: TrialResult) -> Iterator[str]:
    """Where a failure was taken for an answer."""
    labels = [claim.label for claim in result.final_claims]
    if cell.fault is NO_FAULT:
        if result.judge_failures or labels != ["SUPPORTED", "SUPPORTED"] or not result.final_scores:
            yield f"the control has failures {result.judge_failures} and labels {labels}"
        if cell.role == "adjudicator" and {claim.decided_by for claim in result.final_claims} != {"adjudicator"}:
            yield "the control has no tie"
        return
    if result.outcome != "scored" and (result.final_scores or result.scores_by_judge or result.error_categories):
        yield "a trial that was not scored has scores"
    if cell.role == "target":
        if result.claims or labels or result.conversation[0].reply is not None:
            yield "the failed call left a reply or claims"
        if result.conversation[0].outcome != cell.fault.outcome or not result.conversation[0].detail:
            yield f"the turn's outcome is {result.conversation[0].outcome}: {result.conversation[0].detail!r}"
        return
    failures = [(failure.stage, failure.judge) for failure in result.judge_failures]
    if failures != [(cell.role, number) for number in ((1, 2) if cell.role == "verifier" else (0,))]:
        yield f"the judge failures recorded are {failures}"
    if not all(f"the call failed: {cell.fault.outcome}: " in failure.reason for failure in result.judge_failures):
        yield f"the reasons given are {[failure.reason for failure in result.judge_failures]}"
    yield from _verdict_problems(cell, result)


def _verdict_problems(cell: Cell, result: TrialResult) -> Iterator[str]:
    """Verdicts, claims or observations that no judge gave."""
    labels = [claim.label for claim in result.final_claims]
    if cell.role == "extractor" and (result.claims or labels):
        yield "there are claims, but no extractor"
    if cell.role == "scorer" and result.observations:
        yield "there are observations, but no scorer"
    if cell.role == "verifier" and any(result.verdicts.values()):
        yield "there are verdicts, but no verifier"
    if cell.role in ("verifier", "adjudicator"):
        if labels != [None, None] or {claim.decided_by for claim in result.final_claims} != {"unresolved"}:
            yield f"the claims are labeled {labels}"
        if not result.needs_manual_review:
            yield "the unresolved claims are not marked for review"


def _command_problems(folder: Path) -> Iterator[str]:
    for command in ("verify", "replay", "report"):
        try:
            code, _, err = call(command, folder)
        except Exception:
            yield f"{command}: {traceback.format_exc()}"
            continue
        if code or err:
            yield f"{command}: exit {code}: {err}"


# ---- the table --------------------------------------------------------------------------------------------------

INTRODUCTION = f"""\
# What a provider's faults do to a run

Every fault, at every provider, in every role, through the whole pipeline: a failure has its class, is retried as its
class allows, is recorded at every attempt, and is never treated as an answer.

Made by `python -m tests.fault_matrix --write docs/faults.md`; do not edit. Every cell is a run of its own with the
provider's real SDK against a server on the loopback interface ([tests/loopback.py](../tests/loopback.py)) that
answers each attempt of the role in question with the fault, and every other role as it should.

A cell reads: class of each attempt x attempts at a call → outcome of the trial. Attempts are limited to {ATTEMPTS} here (a
run's default is {CallPolicy().max_attempts}). A judge that answers 400 or 422 may be refusing the response schema, so it is asked again without
one: asked 2x. The first row is the control: the same run without a fault.

Also checked for each cell: requests at the server equal records in `calls.jsonl`, each with its status, its error and
the body received; no claim, verdict, observation or label comes from a failed call; `verify`, `replay` and `report`
work on the run; nothing ends in a traceback.
"""


def table(role: Role, findings: dict[Cell, Finding]) -> str:
    lines = [["fault", *PROVIDERS]]
    for fault in (NO_FAULT, *FAULTS):
        row = [findings.get(Cell(role, fault, provider)) for provider in PROVIDERS]
        if any(row):
            lines.append([fault.name, *(str(finding or "") for finding in row)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rows = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rows.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rows)


def page(findings: dict[Cell, Finding], problems: int) -> str:
    parts = [INTRODUCTION]
    for role in ROLES:
        parts.append(f"## {role.capitalize()}\n\n{MEANS[role]}\n\n{table(role, findings)}\n")
    return "\n".join([*parts, total(findings, problems)]) + "\n"


def total(findings: dict[Cell, Finding], problems: int) -> str:
    return f"{sum(cell.fault is not NO_FAULT for cell in findings)} cells, {problems} problems"


def whole() -> list[Cell]:
    return cells(faults=(NO_FAULT, *FAULTS))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page, if there is no problem")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="faults-") as parent:
        outcome = run(whole(), Path(parent))
    for role in ROLES:
        print(f"{role.capitalize()}\n{table(role, outcome.findings)}\n")
    for problem in outcome.problems:
        print(f"problem: {problem}")
    print(total(outcome.findings, len(outcome.problems)))
    if options.write and not outcome.problems:
        options.write.write_text(page(outcome.findings, 0), encoding="utf-8")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
