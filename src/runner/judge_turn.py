"""All that judges do with one reply: extractor -> verifiers side by side, scorer's reading -> ties settled.

A run and a judge check both judge replies here, so a check measures what a run does. No judge sees another, or the
target's name. How many claims a verifier sees in one call is the plan's `isolation`. A reply that the screen marks is
verified one claim per call and judged a second time without the marked passages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..adapters.base import About
from ..agents import adjudicator, extractor, scorer, verifier
from ..agents.ask import AskedTurn, JudgeClient
from ..calls.gateway import CallId
from ..inputs.sources.check import Statement, SupportRequest, attach, check_citation, settle
from ..inputs.sources.finding import collect_citations
from ..inputs.sources.snapshot import Snapshot
from ..records.citation import CheckedCitation, Citation
from ..records.judge_check import CheckPlan
from ..records.model_name import is_person
from ..records.target import WebCitation, WebSearch
from ..schemas import (
    BackgroundFact,
    Claim,
    ClaimInView,
    FactInView,
    JudgeFailure,
    KeyInView,
    MarkedPassage,
    Observation,
    Role,
    RunPlan,
    ScorerInput,
    TiedClaim,
    TurnReading,
    Verdict,
)
from ..scoring.result import TurnJudgment, failed
from ..store.strict_json import derive_seed
from ..text.coverage import STOCK_QUOTE, STOCK_REFUSAL, has_content, says_nothing
from ..text.overlap import is_english, share_of
from ..text.retrieval import Retriever
from ..text.screen import marked_passages
from ..text.sentences import cut
from .call_resources import JudgeClients

REPEAT_BASE = 1_000
"""Judge numbers of repeats start here: 1001 is the first judge's first repeat."""
WITHOUT = "w"
"""Parts of calls about a reply without its marked passages start with this."""
NEAR = 0.3
"""Share of a claim's words and figures in one statement of the key from which it shares a call with others like it."""
Way = Literal["each_claim", "near_the_key", "reply"]
Part = tuple[str, tuple[ClaimInView, ...]]
"""Claims that a verifier sees in one call, with the name of the part."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One reply to be judged."""

    trial_id: str
    turn_id: str
    asked: AskedTurn
    reply: str
    key: KeyInView
    seed: int
    """Of this trial; the seed of every call is derived from it."""
    families: tuple[str, ...] = ()
    """Model families that may not judge this reply."""
    state: str | None = None
    """The code of the state in which the person who asks lives, if there are facts of that state."""
    repeats: int = 0
    """Times that each verifier judges again, to measure its noise."""
    search: WebSearch | None = None
    """What the target searched for this reply."""


class TurnJudge:
    """Judges replies with the judges of one plan."""

    def __init__(self, plan: RunPlan | CheckPlan, judges: JudgeClients, snapshot: Snapshot | None = None) -> None:
        """`snapshot`: the pages against which citations are checked; None: they are not checked."""
        self._plan = plan
        self._judges = judges
        self._library = FactFinder(plan.background)
        self._snapshot = snapshot

    async def judge(self, turn: Turn) -> TurnJudgment:
        marked = tuple(MarkedPassage(start=m.start, end=m.end, why=m.why) for m in marked_passages(turn.reply))
        found = _by_rule(turn, len(self._plan.verifiers)) or await self._as_written(turn, bool(marked))
        if self._snapshot is not None:
            found.citations = await self._check_citations(turn, found, self._snapshot)
        if not marked:
            return found
        assert found.reading is not None
        found.reading = found.reading.model_copy(update={"marked": marked})
        found.without = await self._without(turn, marked)
        found.records += found.without.records
        return found

    async def _as_written(self, turn: Turn, marked: bool) -> TurnJudgment:
        plan = self._plan
        drawn = derive_seed(turn.seed, "audit", turn.turn_id) % 10_000 < 10_000 * plan.audit_sample  # by the seed alone
        audited = plan.isolation == "flagged" and not marked and drawn
        alone = plan.isolation == "claim" or (plan.isolation == "flagged" and (marked or audited))
        way: Way = "each_claim" if alone else "reply" if plan.isolation == "reply" else "near_the_key"
        work = _ReplyWork(plan, self._judges, self._library, turn, way)
        await work.do()
        found = work.found
        shared = [part for part in work.parts("near_the_key") if len(part[1]) > 1] if audited else []
        if shared:
            found.shared, _ = await work.verify(shared)
        assert found.reading is not None
        verified = "both_ways" if shared else "each_claim" if work.way == "each_claim" else None
        found.reading = found.reading.model_copy(update={"verified": verified})
        return found

    async def _check_citations(
        self, turn: Turn, found: TurnJudgment, snapshot: Snapshot
    ) -> tuple[CheckedCitation, ...]:
        """By code, and where a page must be read, by the first verifier that is a model."""
        models = [(n, model) for n, model in enumerate(self._plan.verifiers, 1) if not is_person(model)]
        work = _ReplyWork(self._plan, self._judges, self._library, turn, "each_claim", found=found)

        def client_for(number: int) -> JudgeClient:
            return work.client("verifier", models[0][1], models[0][0], f"p{number}")

        of_reply = _cited(turn.reply, turn.asked, found.claims, turn.search)
        return await _check_citations(of_reply, turn.asked, snapshot, client_for if models else None)

    async def _without(self, turn: Turn, marked: Sequence[MarkedPassage]) -> TurnJudgment:
        """The same reply, judged as if the marked passages were not in it."""
        rest = cut(turn.reply, marked)
        if not has_content(rest):
            return TurnJudgment(turn.turn_id, verdicts=[() for _ in self._plan.verifiers])
        shorter = replace(turn, reply=rest, repeats=0)
        if ruled := _by_rule(shorter, len(self._plan.verifiers)):
            return ruled
        work = _ReplyWork(self._plan, self._judges, self._library, shorter, "each_claim", prefix=WITHOUT)
        await work.do()
        return work.found


class FactFinder:
    """The background facts of a plan, as verifiers see them, found by what a claim says."""

    def __init__(self, facts: Sequence[BackgroundFact]) -> None:
        self._facts = {fact.fact_id: verifier.fact_in_view(fact) for fact in facts}
        self._everywhere = tuple(fact for fact in facts if not fact.states)
        self._in_state = {
            state: tuple(fact for fact in facts if state in fact.states) for fact in facts for state in fact.states
        }
        self._retrievers: dict[str | None, Retriever] = {}

    def find(
        self, claims: Sequence[ClaimInView | TiedClaim], key: KeyInView, state: str | None
    ) -> tuple[FactInView, ...]:
        """Facts about these claims that hold where the person lives and that the key does not state itself."""
        if state not in self._retrievers:
            offered = (*self._everywhere, *self._in_state.get(state or "", ()))
            self._retrievers[state] = Retriever(offered)
        retriever = self._retrievers[state]
        found = {one for claim in claims for one in retriever.find(" ".join([claim.text, *claim.quotes]))}
        known = {fact.statement for fact in key.canonical_facts}
        facts = [self._facts[fact_id] for fact_id in sorted(found)]
        return tuple(fact for fact in facts if fact.statement not in known)


class _ReplyWork:
    """The judging of one text, step by step."""

    def __init__(
        self,
        plan: RunPlan | CheckPlan,
        judges: JudgeClients,
        library: FactFinder,
        turn: Turn,
        way: Way,
        *,
        prefix: str = "",
        found: TurnJudgment | None = None,
    ) -> None:
        self._plan, self._judges, self._library = plan, judges, library
        self._turn, self.way, self._prefix = turn, way, prefix
        self.found = found or TurnJudgment(turn.turn_id)

    @property
    def checked(self) -> tuple[Claim, ...]:
        """The claims that verifiers get."""
        return tuple(claim for claim in self.found.claims if claim.verifiable)

    async def do(self) -> None:
        await self._extract()
        parts = self.parts(self.way)
        reading = asyncio.create_task(self._read())
        verifying = asyncio.create_task(self.verify(parts))
        await finish([reading, verifying])
        self.found.verdicts, failures = verifying.result()
        # In a fixed order, whichever judge ended first.
        self.found.failures += [*reading.result(), *failures]
        await self._settle()
        if parts and self._turn.repeats:
            await self._verify_again(parts)

    def parts(self, way: Way) -> tuple[Part, ...]:
        """The claims of the reply, divided into calls.

        In `near_the_key`, claims share a call only with claims of their kind: those that could be about the key, and
        other factual ones. What is no factual claim by the extractor's reading is verified alone. So text that is not
        about Medicare does not reach a verifier together with the claims that count.
        """
        views = {claim.claim_id: verifier.in_view(claim, self._turn.reply) for claim in self.checked}
        single: dict[str, Part] = {name: (f"c{n}", (view,)) for n, (name, view) in enumerate(views.items(), 1)}
        if way == "reply" and views:
            return (("", tuple(views.values())),)
        if way != "near_the_key":
            return tuple(single.values())
        factual = [claim.claim_id for claim in self.checked if claim.type == "factual" and not claim.verbatim]
        near = [claim_id for claim_id in factual if self._could_be_about_the_key(views[claim_id])]
        groups = {"s1": near, "s2": [claim_id for claim_id in factual if claim_id not in near]}
        shared = {name: ids for name, ids in groups.items() if len(ids) > 1}
        rest = [part for claim_id, part in single.items() if not any(claim_id in ids for ids in shared.values())]
        return (*((name, tuple(views[one] for one in ids)) for name, ids in shared.items()), *rest)

    def _could_be_about_the_key(self, claim: ClaimInView) -> bool:
        key = self._turn.key
        stated = [fact.statement for fact in (*key.canonical_facts, *self._found([claim]))]
        stated += [one.statement for one in key.disallowed_claims]
        said = [claim.text, *claim.quotes]
        if not is_english(" ".join(said)):
            return True
        return any(share_of(text, [one]) >= NEAR for text in said for one in stated)

    def _found(self, claims: Sequence[ClaimInView | TiedClaim]) -> tuple[FactInView, ...]:
        return self._library.find(claims, self._turn.key, self._turn.state)

    def _shown(self, claims: Sequence[ClaimInView | TiedClaim]) -> verifier.Shown:
        """The key, and what the shared library says about these claims."""
        return verifier.Shown(self._turn.asked, self._turn.key, self._found(claims))

    def client(self, role: Role, model: str, number: int = 0, part: str = "") -> JudgeClient:
        turn, part = self._turn, self._prefix + part
        call = CallId(turn.trial_id, role, turn.turn_id, number, part=part)
        seed = derive_seed(turn.seed, role, turn.turn_id, number, part)
        return self._judges.client(
            role,
            model,
            call,
            seed=seed,
            families=turn.families,
            records=self.found.records,
            about=About(turn.asked.earlier, turn.asked.question, turn.reply),
        )

    async def _extract(self) -> None:
        turn, found = self._turn, self.found
        client = self.client("extractor", self._plan.extractor)
        extraction = await extractor.extract(client, turn.turn_id, turn.asked, turn.reply)
        found.claims, found.rejected = extraction.claims, extraction.rejected
        if self.way == "near_the_key" and not extraction.first.enough:
            self.way = "each_claim"  # an extractor that leaves out so much may have been told to
        spans = [span for claim in extraction.claims for span in claim.quote_spans]
        found.reading = TurnReading(
            turn_id=turn.turn_id,
            how="judges",
            sentences=extraction.final.sentences,
            covered_first=extraction.first.covered,
            covered=extraction.final.covered,
            left_out=tuple(turn.reply[span.start : span.end] for span in extraction.final.left_out),
            typographic_quotes=sum(span.match == "typographic" for span in spans),
            verbatim=sum(claim.verbatim for claim in extraction.claims),
        )
        if extraction.failure:
            found.failures.append(failed("extractor", turn.turn_id, 0, (), extraction.failure))
        elif extraction.rejected and not extraction.claims:
            reason = "none of its claims is quoted from the reply"
            found.failures.append(failed("extractor", turn.turn_id, 0, (), reason))

    async def _read(self) -> list[JudgeFailure]:
        """Let the scorer read the reply; returns its failure, if any."""
        turn, found = self._turn, self.found
        payload = ScorerInput(
            disallowed_claims=turn.key.disallowed_claims, question=turn.asked.question, reply=turn.reply
        )
        observed = await scorer.read(self.client("scorer", self._plan.scorer), payload)
        found.observations = observed.value or ()
        return [failed("scorer", turn.turn_id, 0, (), observed.failure)] if observed.failure else []

    async def verify(
        self, parts: Sequence[Part], *, base: int = 0
    ) -> tuple[list[tuple[Verdict, ...]], list[JudgeFailure]]:
        """Put all parts to every verifier, at the same time: verdicts by verifier, in the order of the claims."""
        if not parts:
            return [() for _ in self._plan.verifiers], []
        shown = [self._shown(claims) for _, claims in parts]
        tasks = [
            [
                asyncio.create_task(verifier.verify(self.client("verifier", model, base + number, name), claims, seen))
                for (name, claims), seen in zip(parts, shown, strict=True)
            ]
            for number, model in enumerate(self._plan.verifiers, 1)
        ]
        await finish([task for one in tasks for task in one])
        order = {claim.claim_id: place for place, claim in enumerate(self.found.claims)}
        by_verifier: list[tuple[Verdict, ...]] = []
        failures: list[JudgeFailure] = []
        for number, one in enumerate(tasks, 1):
            done = [task.result() for task in one]
            verdicts = sorted((v for part in done for v in part.verdicts), key=lambda v: order[v.claim_id])
            by_verifier.append(tuple(verdicts))
            failure = next((part.failure for part in done if part.failure), None)
            if failure:
                left = tuple(claim_id for part in done for claim_id in part.unjudged)
                whole = left if verdicts else ()  # empty: the whole judge failed
                failures.append(failed("verifier", self._turn.turn_id, number, whole, failure))
        return by_verifier, failures

    async def _verify_again(self, parts: Sequence[Part]) -> None:
        """Each verifier again, with other seeds, to measure how far it agrees with itself."""
        again = range(1, self._turn.repeats + 1)
        repeats = [(await self.verify(parts, base=REPEAT_BASE * number))[0] for number in again]
        self.found.repeats = [[one[number] for one in repeats] for number in range(len(self._plan.verifiers))]

    async def _settle(self) -> None:
        found, turn, model = self.found, self._turn, self._plan.adjudicator
        views = [verifier.in_view(claim, turn.reply) for claim in self.checked]
        ties = adjudicator.tied(views, found.verdicts)
        if not ties or model is None:
            return
        alone = self.way == "each_claim"
        parts = [(f"c{n}", (tie,)) for n, tie in enumerate(ties, 1)] if alone else [("", ties)]
        settling = [
            asyncio.create_task(
                adjudicator.settle(self.client("adjudicator", model, part=name), tied, self._shown(tied))
            )
            for name, tied in parts
        ]
        await finish(settling)
        answers = [task.result() for task in settling]
        found.settled = {claim_id: label for one in answers for claim_id, label in (one.value or {}).items()}
        failure = next((one.failure for one in answers if one.failure), None)
        if failure:
            left = tuple(tie.claim_id for tie in ties if tie.claim_id not in found.settled) if found.settled else ()
            found.failures.append(failed("adjudicator", turn.turn_id, 0, left, failure))


def _by_rule(turn: Turn, verifiers: int) -> TurnJudgment | None:
    """What code says of a reply that needs no judge: a stock refusal, or a few words without a fact."""
    nothing = says_nothing(turn.reply)
    if not nothing:
        return None
    refused = (Observation(kind="refusal", quote=turn.reply.strip()[:STOCK_QUOTE]),)
    return TurnJudgment(
        turn.turn_id,
        reading=TurnReading(turn_id=turn.turn_id, how="rule", why=nothing),
        observations=refused if nothing == STOCK_REFUSAL else (),
        verdicts=[() for _ in range(verifiers)],
    )


async def finish(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for all of them, then raise the first error, if any. Calls in flight are never cut off."""
    if tasks:
        await asyncio.wait(tasks)
    errors = [error for task in tasks if (error := task.exception())]
    if errors:
        raise errors[0]


# The citations of a reply: collected, tied to its claims, checked by code, and the rest by a verifier.
#
# A verifier is asked as always, with the passage of the page as a key of one fact. It sees neither the address nor
# anything else that a search brought. A check that fails decides nothing: the citation stays undecided.

MOST_CHECKS = 40
"""Support checks of one reply. Citations beyond that stay undecided."""


async def _check_citations(
    backings: Iterable[tuple[Citation, Statement | None]],
    turn: AskedTurn,
    snapshot: Snapshot,
    client_for: Callable[[int], JudgeClient] | None,
) -> tuple[CheckedCitation, ...]:
    """All citations of a reply, once for each claim that they back.

    `client_for`: who answers a support check, by its number; None if nobody can.
    """
    found = [check_citation(statement, citation, snapshot) for citation, statement in backings]
    requests = [(place, one) for place, one in enumerate(found) if isinstance(one, SupportRequest)]
    asked = {
        place: asyncio.create_task(_label(client_for(number), one, turn))
        for number, (place, one) in enumerate(requests, 1)
        if client_for and number <= MOST_CHECKS
    }
    if asked:
        await asyncio.wait(asked.values())
    settled: list[CheckedCitation] = []
    for place, one in enumerate(found):
        if isinstance(one, CheckedCitation):
            settled.append(one)
        elif place in asked:
            settled.append(asked[place].result())
        else:
            why = "no model is a verifier" if client_for is None else "the reply has too many citations"
            settled.append(settle(one, None, why))
    return tuple(settled)


async def _label(client: JudgeClient, request: SupportRequest, asked: AskedTurn) -> CheckedCitation:
    done = await verifier.verify(client, (request.claim,), verifier.Shown(asked, request.key))
    label = done.verdicts[0].label if done.verdicts else None
    return settle(request, label, done.failure)


def _cited(
    text: str, asked: AskedTurn, claims: Sequence[Claim], search: WebSearch | None
) -> Iterator[tuple[Citation, Statement | None]]:
    """Each citation of a reply with what it backs: a claim, several one after the other, or none."""
    by_id = {claim.claim_id: claim for claim in claims if claim.verifiable}
    annotations = [_annotation(one) for one in search.citations] if search else []
    citations = collect_citations(text, annotations)
    for backing in attach(text, tuple(by_id.values()), citations):
        if not backing.claim_ids:
            yield backing.citation, None
        for claim_id in backing.claim_ids:
            view = verifier.in_view(by_id[claim_id], text)
            yield backing.citation, Statement(view.text, claim_id, view.quotes, asked.given)


def _annotation(given: WebCitation) -> Citation:
    """As an adapter read it; a span that is no span is left out."""
    placed = given.start is not None and given.end is not None and given.start < given.end
    return Citation(**{**dict(given), **({} if placed else {"start": None, "end": None})}, where="annotation")
