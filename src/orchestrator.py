"""The order of the stages of a trial. This is the only file that knows it.

    scenario -> questioner -> target, turn by turn, with its real replies in context
             -> per reply, as soon as it is there: extractor -> verifiers side by side, scorer's reading -> ties settled
             -> scorer by code, per verifier and for the final verdicts -> one line in results.jsonl, in plan order

Trials run concurrently, and each is a pure function of the plan and the replies from the gateway. So neither
concurrency nor a crash in between can change a result. `execute` serves `run` and `resume`; `recompute` serves
`replay`, through a gateway that can only look calls up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from . import storage
from .adapters.base import Message, ModelRequest
from .agents import (
    adjudicator,
    extractor,
    questioner,
    scorer,
    verifier,
)
from .agents.ask import Answer, JudgeClient
from .calls.gateway import (
    CallId,
    CallResources,
    Gateway,
    LiveGateway,
    ReplayGateway,
    ReusedCalls,
)
from .errors import IntegrityError
from .planning.trials import Trial, in_noise_sample, trials
from .records.model_name import family, family_of_id
from .runner.judge_clients import JudgeClients
from .runner.schedule import run_in_plan_order
from .schemas import (
    CallRecord,
    ClaimInView,
    Exchange,
    ExtractorInput,
    KeyInView,
    Manifest,
    Observation,
    QuestionerInput,
    QuestionerOutput,
    Role,
    RunPlan,
    ScorerInput,
    Seal,
    TrialResult,
    TurnOutcome,
    TurnReading,
)
from .scoring.result import (
    ENDS_CONVERSATION,
    TurnJudgment,
    assemble,
    failed,
)
from .store.failpoints import Failpoints
from .text.injection import (
    STOCK_QUOTE,
    STOCK_REFUSAL,
    addresses_the_judge,
    has_content,
    says_nothing,
)

REPEAT_BASE = 1_000
"""Judge numbers of repeats start here: 1001 is the first judge's first repeat."""


class ClientFor(Protocol):
    """Makes the client of one judge of one reply."""

    def __call__(self, role: Role, model: str, number: int) -> JudgeClient: ...


@dataclass(frozen=True)
class _Task:
    """What verifiers and adjudicator are shown."""

    question: str
    claims: tuple[ClaimInView, ...]
    key: KeyInView


class TrialRunner:
    """Runs the trials of a plan through a gateway."""

    def __init__(self, plan: RunPlan, gateway: Gateway) -> None:
        self.plan = plan
        self._gateway = gateway
        self._judges = JudgeClients(gateway, plan.prompts, plan.api_ids, plan.parameters_of, plan.policy.max_asks)
        self._questions: dict[str, asyncio.Task[Answer[QuestionerOutput]]] = {}

    async def run_trial(self, trial: Trial) -> TrialResult:
        turns = await self._turns(trial)
        if turns.value is None:
            return assemble(self.plan, trial, [], [], [], questioner_failure=turns.failure)
        exchanges: list[Exchange] = []
        records: list[CallRecord] = []
        judging: list[asyncio.Task[TurnJudgment]] = []
        try:
            async for exchange, record in self._converse(trial, turns.value):
                exchanges.append(exchange)
                if record:
                    records.append(record)
                if exchange.outcome == "answered":
                    judging.append(asyncio.create_task(self._judge(trial, exchange, tuple(records))))
        finally:
            await _to_the_end(judging)
        return assemble(self.plan, trial, exchanges, records, [task.result() for task in judging])

    async def _turns(self, trial: Trial) -> Answer[QuestionerOutput]:
        """The questions; a rewording is made once and shared by all targets."""
        scenario = trial.planned.scenario
        seed = trial.question_seed(self.plan.seed)
        exact = questioner.question(QuestionerInput(scenario=scenario, seed=seed))
        if not self.plan.questioner or not scenario.variation_knobs.paraphrase:
            return Answer(exact)
        if trial.questions_id not in self._questions:
            call = CallId(trial.questions_id, "questioner")
            families = tuple(family(target) for target in self.plan.targets)
            client = self._judges.client(
                "questioner", self.plan.questioner, call, seed=seed, families=families, records=[]
            )
            self._questions[trial.questions_id] = asyncio.create_task(questioner.paraphrase(client, exact))
        return await self._questions[trial.questions_id]

    async def _converse(
        self, trial: Trial, turns: QuestionerOutput
    ) -> AsyncIterator[tuple[Exchange, CallRecord | None]]:
        scripted = {turn.turn_id: turn for turn in trial.planned.scenario.scripted_turns}
        parameters = self.plan.parameters_of(trial.target)
        context: list[Message] = []
        last_reply: str | None = None
        ended = False
        for turn in turns.turns:
            group, condition = scripted[turn.turn_id].question_group, scripted[turn.turn_id].condition
            unasked: TurnOutcome | None = None
            if ended:
                unasked = "not_asked"
            elif not questioner.holds(condition, last_reply):
                unasked = "skipped"
            if unasked:
                yield _exchange(turn.turn_id, group, turn.user_message, unasked, None), None
                continue
            asked = Message("user", turn.user_message)
            record = await self._gateway.call(
                CallId(trial.trial_id, "target", turn.turn_id),
                ModelRequest(
                    model=trial.target,
                    api_id=self.plan.api_ids.get(trial.target, ""),
                    messages=(*context, asked),
                    temperature=parameters.temperature,
                    max_tokens=parameters.max_tokens,
                    seed=trial.seed(self.plan.seed, "target", turn.turn_id),
                    hint=f"{trial.planned.name}/{turn.turn_id}",
                ),
            )
            outcome: TurnOutcome = "answered" if record.outcome == "ok" else record.outcome
            if outcome == "answered" and not has_content(record.text or ""):
                outcome = "empty"
            ended = outcome in ENDS_CONVERSATION
            last_reply = record.text
            if record.text:  # what the target wrote stays in its context; an exchange without words is left out
                context += [asked, Message("assistant", record.text)]
            yield _exchange(turn.turn_id, group, turn.user_message, outcome, record), record

    async def _judge(self, trial: Trial, exchange: Exchange, answered_by: tuple[CallRecord, ...]) -> TurnJudgment:
        """All that judges do with one reply. No judge sees another, or the target's name."""
        if unjudged := self._without_judges(exchange):
            return unjudged
        found = TurnJudgment(exchange.turn_id)
        families = _families(trial, answered_by)

        def client(role: Role, model: str, number: int = 0) -> JudgeClient:
            call = CallId(trial.trial_id, role, exchange.turn_id, number)
            seed = trial.seed(self.plan.seed, role, exchange.turn_id, number)
            return self._judges.client(role, model, call, seed=seed, families=families, records=found.records)

        await self._extract(client, exchange, found)
        key = verifier.key_in_view(trial.planned.scenario.answer_key)
        reply = exchange.reply or ""
        task = _Task(
            exchange.user_message,
            tuple(verifier.in_view(claim, reply) for claim in found.claims if claim.verifiable),
            key,
        )
        await self._verify_and_read(client, exchange, found, task)
        await self._settle(client("adjudicator", self.plan.adjudicator), found, task)
        if task.claims and in_noise_sample(self.plan, trial):
            await self._verify_again(client, found, task)
        return found

    def _without_judges(self, exchange: Exchange) -> TurnJudgment | None:
        """Replies that no judge reads: those that address the judge, and those that say nothing."""
        reply, turn_id = exchange.reply or "", exchange.turn_id
        if addressed := addresses_the_judge(reply):
            return TurnJudgment(turn_id, reading=TurnReading(turn_id=turn_id, how="tampered", why=addressed))
        nothing = says_nothing(reply)
        if not nothing:
            return None
        refused = (Observation(kind="refusal", quote=reply.strip()[:STOCK_QUOTE]),)
        return TurnJudgment(
            turn_id,
            reading=TurnReading(turn_id=turn_id, how="rule", why=nothing),
            observations=refused if nothing == STOCK_REFUSAL else (),
            verdicts=[() for _ in self.plan.verifiers],
        )

    async def _extract(self, client: ClientFor, exchange: Exchange, found: TurnJudgment) -> None:
        turn_id = exchange.turn_id
        extraction = await extractor.extract(
            client("extractor", self.plan.extractor, 0),
            turn_id,
            ExtractorInput(question=exchange.user_message, reply=exchange.reply or ""),
        )
        found.claims, found.rejected = extraction.claims, extraction.rejected
        found.reading = TurnReading(
            turn_id=turn_id,
            how="judges",
            sentences=extraction.final.sentences,
            covered_first=extraction.first.covered,
            covered=extraction.final.covered,
            left_out=extraction.final.left_out,
            typographic_quotes=sum(
                span.match == "typographic" for claim in extraction.claims for span in claim.quote_spans
            ),
        )
        if extraction.failure:
            found.failures.append(failed("extractor", turn_id, 0, (), extraction.failure))
        elif extraction.rejected and not extraction.claims:
            found.failures.append(failed("extractor", turn_id, 0, (), "none of its claims is quoted from the reply"))

    async def _verify_and_read(self, client: ClientFor, exchange: Exchange, found: TurnJudgment, task: _Task) -> None:
        """The verifiers, each alone, and the scorer's reading, at the same time."""
        to_read = ScorerInput(
            question=task.question, reply=exchange.reply or "", disallowed_claims=task.key.disallowed_claims
        )
        reading = asyncio.create_task(scorer.read(client("scorer", self.plan.scorer, 0), to_read))
        verifying = [
            asyncio.create_task(
                verifier.verify(client("verifier", model, number), task.question, task.claims, task.key)
            )
            for number, model in enumerate(self.plan.verifiers, 1)
            if task.claims
        ]
        await _to_the_end([reading, *verifying])
        observed = reading.result()
        found.observations = observed.value or ()
        if observed.failure:
            found.failures.append(failed("scorer", found.turn_id, 0, (), observed.failure))
        for number, verification in enumerate([one.result() for one in verifying], 1):
            found.verdicts.append(verification.verdicts)
            if verification.failure:
                left = verification.unjudged if verification.verdicts else ()  # empty: the whole judge failed
                found.failures.append(failed("verifier", found.turn_id, number, left, verification.failure))

    async def _verify_again(self, client: ClientFor, found: TurnJudgment, task: _Task) -> None:
        """Each verifier again, with other seeds, to measure how far it agrees with itself."""
        clients = [
            (number, client("verifier", model, REPEAT_BASE * repeat + number))
            for number, model in enumerate(self.plan.verifiers, 1)
            for repeat in range(1, self.plan.judge_repeats + 1)
        ]
        tasks = [asyncio.create_task(verifier.verify(one, task.question, task.claims, task.key)) for _, one in clients]
        await _to_the_end(tasks)
        found.repeats = [[] for _ in self.plan.verifiers]
        for (number, _), one in zip(clients, tasks, strict=True):
            found.repeats[number - 1].append(one.result().verdicts)

    async def _settle(self, client: JudgeClient, found: TurnJudgment, task: _Task) -> None:
        ties = adjudicator.tied(task.claims, found.verdicts)
        if not ties:
            return
        answer = await adjudicator.settle(client, task.question, ties, task.key)
        found.settled = answer.value or {}
        if answer.failure:
            left = tuple(tie.claim_id for tie in ties if tie.claim_id not in found.settled) if found.settled else ()
            found.failures.append(failed("adjudicator", found.turn_id, 0, left, answer.failure))


async def _to_the_end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for all of them, then raise the first error, if any. Calls in flight are never cut off."""
    if tasks:
        await asyncio.wait(tasks)
    errors = [error for task in tasks if (error := task.exception())]
    if errors:
        raise errors[0]


def _families(trial: Trial, records: Sequence[CallRecord]) -> tuple[str, ...]:
    """The target's family as requested and as served."""
    served = [family_of_id(record.served_model) for record in records if record.served_model]
    return tuple(dict.fromkeys((family(trial.target), *served)))


def _exchange(
    turn_id: str, group: str | None, user_message: str, outcome: TurnOutcome, record: CallRecord | None
) -> Exchange:
    return Exchange(
        turn_id=turn_id,
        question_group=group,
        user_message=user_message,
        outcome=outcome,
        reply=record.text if record else None,
        detail=record.error if record else None,
        served_model=record.served_model if record else None,
    )


async def execute(
    folder: Path,
    manifest: Manifest,
    *,
    concurrency: int,
    resources: CallResources,
    on_call: Callable[[CallRecord], None],
    on_start: Callable[[int, int], None],
    on_trial: Callable[[], None],
    earlier: Path | None = None,
) -> Seal:
    """Carry a run to its end from wherever it is. Raises `Stopping` if it was asked to stop before that."""
    failpoints = Failpoints.from_environment()
    everything = trials(manifest.plan)
    with storage.RunLock(folder):
        results = storage.Results(folder / storage.RESULTS, [trial.trial_id for trial in everything], failpoints)
        todo = everything[results.count :]
        if results.count and not (folder / storage.JOURNAL).exists():
            raise IntegrityError(f"{folder / storage.JOURNAL} is missing, but results were computed from it.")
        wanted = {trial.trial_id for trial in todo} | {trial.questions_id for trial in todo}
        journal = storage.Journal(
            folder / storage.JOURNAL,
            storage.manifest_sha256(folder),
            wanted=wanted.__contains__,
            failpoints=failpoints,
        )
        reused = _transcripts(earlier, manifest) if earlier else None
        gateway = LiveGateway(journal, manifest.plan.policy, resources, on_call, reused)
        on_start(len(everything), results.count)

        try:
            await run_in_plan_order(
                TrialRunner(manifest.plan, gateway).run_trial, todo, concurrency, results.append, on_trial
            )
            return storage.write_seal(folder, journal, results, failpoints)
        finally:
            journal.close()
            results.close()
            if reused:
                reused.close()


def _transcripts(earlier: Path, manifest: Manifest) -> ReusedCalls:
    """The calls of an earlier run that this one reuses. It must be exactly the run that the manifest names."""
    named = manifest.transcripts
    assert named is not None
    found = storage.manifest_sha256(earlier), storage.file_sha256(earlier / storage.JOURNAL)
    if found != (named.manifest_sha256, named.journal_sha256):
        raise IntegrityError(f"{earlier} is not, or is no longer, the run whose transcripts this run judges.")
    recorded = storage.RecordedCalls(earlier / storage.JOURNAL, found[0], lambda trial: True)
    return ReusedCalls(recorded, frozenset(named.stages))


async def recompute(folder: Path, manifest: Manifest, sink: Callable[[bytes], None], first: int) -> None:
    """Recompute the first results from the manifest and journal alone. No adapter is used."""
    todo = trials(manifest.plan)[:first]
    recorded = storage.RecordedCalls(folder / storage.JOURNAL, storage.manifest_sha256(folder), lambda trial: True)
    try:
        await run_in_plan_order(
            TrialRunner(manifest.plan, ReplayGateway(recorded)).run_trial, todo, 1, sink, lambda: None
        )
    finally:
        recorded.close()


if __name__ == "__main__":
    from .cli.parser import main

    raise SystemExit(main())
