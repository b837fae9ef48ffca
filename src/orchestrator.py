"""The order of stages, and the only file that knows it.

    scenario -> questioner -> target, turn by turn, with its real replies in context
             -> per reply, as soon as it is there: extractor -> verifiers side by side, scorer's reading -> ties settled
             -> scorer by code, per verifier and for the final verdicts -> one line in results.jsonl, in plan order

Trials run concurrently, and each is a pure function of the plan and the replies from the gateway. So neither
concurrency nor a crash in between can change a result. `execute` serves `run` and `resume`; `recompute` serves
`replay`, through a closed gateway.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from . import storage
from .adapters.base import Message, ModelRequest
from .agents import (
    adjudicator,
    extractor,
    questioner,
    scorer,
    verifier,
)
from .agents.ask import JudgeClient
from .calls.gateway import (
    CallId,
    CallResources,
    Gateway,
    LiveGateway,
    ReplayGateway,
    ReusedCalls,
    Stopping,
)
from .errors import IntegrityError
from .planning.plan import Trial, rejudged, trials
from .records.model_name import family, family_of_id
from .runner.in_order import InOrder
from .runner.judge_clients import JudgeClients
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
"""Judge numbers of a verifier's repeats begin here: 1001 is the first judge's first repeat."""


class TrialRunner:
    """A plan being carried out through a gateway."""

    def __init__(self, plan: RunPlan, gateway: Gateway) -> None:
        self.plan = plan
        self._gateway = gateway
        self._judges = JudgeClients(gateway, plan.prompts, plan.api_ids, plan.judge_parameters, plan.policy.max_asks)
        self._questions: dict[str, asyncio.Task[tuple[QuestionerOutput, str | None]]] = {}

    async def run_trial(self, trial: Trial) -> TrialResult:
        turns, failure = await self._turns(trial)
        if failure:
            return assemble(self.plan, trial, [], [], [], questioner_failure=failure)
        exchanges: list[Exchange] = []
        records: list[CallRecord] = []
        judging: list[asyncio.Task[TurnJudgment]] = []
        try:
            async for exchange, record in self._converse(trial, turns):
                exchanges.append(exchange)
                if record:
                    records.append(record)
                if exchange.outcome == "answered":
                    judging.append(asyncio.create_task(self._judge(trial, exchange, tuple(records))))
        finally:
            await _to_the_end(judging)
        return assemble(self.plan, trial, exchanges, records, [task.result() for task in judging])

    async def _turns(self, trial: Trial) -> tuple[QuestionerOutput, str | None]:
        """The questions; a rewording is made once and shared by all targets."""
        scenario = trial.planned.scenario
        seed = trial.question_seed(self.plan.seed)
        exact = questioner.question(QuestionerInput(scenario=scenario, seed=seed))
        if not self.plan.questioner or not scenario.variation_knobs.paraphrase:
            return exact, None
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
                    temperature=self.plan.target_parameters.temperature,
                    max_tokens=self.plan.target_parameters.max_tokens,
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
        plan, turn_id, reply = self.plan, exchange.turn_id, exchange.reply or ""
        found = TurnJudgment(turn_id)
        if addressed := addresses_the_judge(reply):
            found.reading = TurnReading(turn_id=turn_id, how="tampered", why=addressed)
            return found
        if nothing := says_nothing(reply):
            found.reading = TurnReading(turn_id=turn_id, how="rule", why=nothing)
            if nothing == STOCK_REFUSAL:
                found.observations = (Observation(kind="refusal", quote=reply.strip()[:STOCK_QUOTE]),)
            found.verdicts = [() for _ in plan.verifiers]
            return found
        families = _families(trial, answered_by)

        def client(role: Role, model: str, number: int = 0) -> JudgeClient:
            call = CallId(trial.trial_id, role, turn_id, number)
            seed = trial.seed(plan.seed, role, turn_id, number)
            return self._judges.client(role, model, call, seed=seed, families=families, records=found.records)

        extraction = await extractor.extract(
            client("extractor", plan.extractor), turn_id, ExtractorInput(question=exchange.user_message, reply=reply)
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
        key = verifier.key_in_view(trial.planned.scenario.answer_key)
        shown = tuple(verifier.in_view(claim, reply) for claim in found.claims if claim.verifiable)
        to_read = ScorerInput(question=exchange.user_message, reply=reply, disallowed_claims=key.disallowed_claims)
        reading = asyncio.create_task(scorer.read(client("scorer", plan.scorer), to_read))
        verifying = [
            asyncio.create_task(verifier.verify(client("verifier", model, number), exchange.user_message, shown, key))
            for number, model in enumerate(plan.verifiers, 1)
            if shown
        ]
        await _to_the_end([reading, *verifying])
        found.observations, unread = reading.result()
        if unread:
            found.failures.append(failed("scorer", turn_id, 0, (), unread))
        for number, verification in enumerate([task.result() for task in verifying], 1):
            found.verdicts.append(verification.verdicts)
            if verification.failure:
                left = verification.unjudged if verification.verdicts else ()  # empty: the whole judge failed
                found.failures.append(failed("verifier", turn_id, number, left, verification.failure))
        await self._settle(client("adjudicator", plan.adjudicator), exchange.user_message, found, shown, key)
        if shown and rejudged(plan, trial):
            await self._again(client, exchange.user_message, found, shown, key)
        return found

    async def _again(
        self,
        client: Callable[[Role, str, int], JudgeClient],
        question: str,
        found: TurnJudgment,
        shown: tuple[ClaimInView, ...],
        key: KeyInView,
    ) -> None:
        """Each verifier once more and once more, with other seeds: how far it agrees with itself."""
        verifiers, repeats = self.plan.verifiers, range(1, self.plan.judge_repeats + 1)
        clients = [
            (number, client("verifier", model, REPEAT_BASE * repeat + number))
            for number, model in enumerate(verifiers, 1)
            for repeat in repeats
        ]
        tasks = [asyncio.create_task(verifier.verify(one, question, shown, key)) for _, one in clients]
        await _to_the_end(tasks)
        found.repeats = [[] for _ in verifiers]
        for (number, _), task in zip(clients, tasks, strict=True):
            found.repeats[number - 1].append(task.result().verdicts)

    async def _settle(
        self, client: JudgeClient, question: str, found: TurnJudgment, shown: Sequence[ClaimInView], key: KeyInView
    ) -> None:
        ties = adjudicator.tied(shown, found.verdicts)
        if not ties:
            return
        found.settled, failure = await adjudicator.settle(client, question, ties, key)
        if failure:
            left = tuple(tie.claim_id for tie in ties if tie.claim_id not in found.settled) if found.settled else ()
            found.failures.append(failed("adjudicator", found.turn_id, 0, left, failure))


async def _to_the_end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for all of them, then raise the first error if there was one: calls in flight are never cut off."""
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


STAGGER_S = 0.001
"""Between the starts of two workers: calls that start together come back together, and then queue for this process."""


class TargetQueues:
    """Which trial comes next: that of the target with the fewest in flight, so that a slow one holds up only itself."""

    def __init__(self, todo: Sequence[Trial]) -> None:
        self._waiting: dict[str, deque[int]] = {}
        for number, trial in enumerate(todo):
            self._waiting.setdefault(trial.target, deque()).append(number)
        self._in_flight: Counter[str] = Counter()

    def take(self) -> tuple[str, int] | None:
        queues = [queue for queue, numbers in self._waiting.items() if numbers]
        if not queues:
            return None
        queue = min(queues, key=self._in_flight.__getitem__)
        self._in_flight[queue] += 1
        return queue, self._waiting[queue].popleft()

    def leave(self, queue: str) -> None:
        self._in_flight[queue] -= 1

    def close(self) -> None:
        self._waiting.clear()


async def in_plan_order(
    study: TrialRunner,
    todo: Sequence[Trial],
    concurrency: int,
    sink: Callable[[bytes], None],
    on_trial: Callable[[], None],
) -> None:
    """Run trials side by side and hand their results, as bytes, on in plan order."""
    queues = TargetQueues(todo)
    with InOrder(sink) as ordered:

        async def worker() -> None:
            while taken := queues.take():
                queue, number = taken
                result = await study.run_trial(todo[number])
                try:
                    ordered.put(number, storage.encode_record(result))
                except OSError as error:  # the temporary file of results that wait for their turn
                    raise storage.storage_error(Path(tempfile.gettempdir()), error) from None
                on_trial()
                queues.leave(queue)

        workers: list[asyncio.Task[None]] = []
        try:
            for _ in range(min(concurrency, len(todo))):
                workers.append(asyncio.create_task(worker()))
                await asyncio.sleep(STAGGER_S)
            for finished in asyncio.as_completed(workers):
                await finished
        except BaseException:
            # A stop, a failed disk or a fault ends every worker, but only once its calls in flight are in the journal.
            queues.close()
            ends = await asyncio.gather(*workers, return_exceptions=True)
            faults = [end for end in ends if isinstance(end, BaseException) and not isinstance(end, Stopping)]
            if faults:  # a fault makes the others stop: it is the fault that must be told
                raise faults[0] from None
            raise


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
    """Carry a run to its end from wherever it stands. Raises `Stopping` where it was asked to stop before that."""
    failpoints = Failpoints.from_environment()
    everything = trials(manifest.plan)
    with storage.RunLock(folder):
        results = storage.Results(folder / storage.RESULTS, [trial.trial_id for trial in everything], failpoints)
        todo = everything[results.count :]
        if results.count and not (folder / storage.JOURNAL).exists():
            raise IntegrityError(f"{folder / storage.JOURNAL}: is gone, though results were computed from it.")
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
            await in_plan_order(TrialRunner(manifest.plan, gateway), todo, concurrency, results.append, on_trial)
            return storage.write_seal(folder, journal, results, failpoints)
        finally:
            journal.close()
            results.close()
            if reused:
                reused.close()


def _transcripts(earlier: Path, manifest: Manifest) -> ReusedCalls:
    """The calls of an earlier run that this one takes over; it must be the very run the manifest names."""
    named = manifest.transcripts
    assert named is not None
    found = storage.manifest_sha256(earlier), storage.file_sha256(earlier / storage.JOURNAL)
    if found != (named.manifest_sha256, named.journal_sha256):
        raise IntegrityError(f"{earlier}: is not, or no longer, the run whose transcripts were to be judged again.")
    recorded = storage.RecordedCalls(earlier / storage.JOURNAL, found[0], lambda trial: True)
    return ReusedCalls(recorded, frozenset(named.stages))


async def recompute(folder: Path, manifest: Manifest, sink: Callable[[bytes], None], first: int) -> None:
    """Compute the first results again from manifest and journal alone; no adapter is even imported."""
    todo = trials(manifest.plan)[:first]
    recorded = storage.RecordedCalls(folder / storage.JOURNAL, storage.manifest_sha256(folder), lambda trial: True)
    try:
        await in_plan_order(TrialRunner(manifest.plan, ReplayGateway(recorded)), todo, 1, sink, lambda: None)
    finally:
        recorded.close()


if __name__ == "__main__":
    from .cli.parser import main

    raise SystemExit(main())
