"""All that judges do with one reply: extractor -> verifiers side by side, scorer's reading -> ties settled.

A run and a judge check both judge replies here, so a check measures what a run does. No judge sees another, or the
target's name. How many claims a verifier sees in one call is the plan's `isolation`. Passages that the screen marks are
read apart from the rest of the reply, and their claims are verified one per call. An assertion that the conversation
made before is not verified again. Whatever a reply says, its judging ends: with a judgment, or with a failure's reason.
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
from ..errors import HarnessError
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
    ClaimType,
    FactInView,
    JudgeFailure,
    KeyInView,
    MarkedPassage,
    Observation,
    QuoteSpan,
    Role,
    RunPlan,
    ScorerInput,
    TiedClaim,
    TurnReading,
    Verdict,
)
from ..scoring.result import TurnJudgment, failed
from ..store.strict_json import derive_seed
from ..text.assertions import FEWEST, Assertion, assertion
from ..text.coverage import STOCK_QUOTE, STOCK_REFUSAL, has_content, says_nothing
from ..text.overlap import is_english, share_of
from ..text.retrieval import Retriever
from ..text.screen import marked_passages
from ..text.sentences import Excerpt
from .call_resources import JudgeClients

NOTHING = "nothing but marked passages"
REPEAT_BASE = 1_000
"""Judge numbers of repeats start here: 1001 is the first judge's first repeat."""
APART = "m"
"""Parts of calls about marked passages start with this."""
MOST_CHARACTERS = 24_000
"""How much of one reply is judged: some 4,000 words. What follows is counted, and a reason for review."""
LAST_SPACE = 1_000
"""How far before that limit a space is looked for."""
MOST_OF_ERROR = 500
MOST_CLAIMS = 300
"""Claims of one reply. Those beyond are counted, and a reason for review."""
NEAR = 0.3
"""Share of a claim's words and figures in one statement of the key from which it shares a call with others like it."""
OWN_KINDS: frozenset[ClaimType] = frozenset({"recommendation", "referral"})
"""Types of claims that share calls with each other."""
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

    async def judge(self, turn: Turn, said: Asserted | None = None) -> TurnJudgment:
        """`said`: what the conversation claimed before this reply, and where its own claims are told."""
        said = said or Assertions().next_turn()
        try:
            return await self._judge(turn, said)
        except (HarnessError, OSError, MemoryError):  # the run's own troubles: it stops, and can be resumed
            raise
        except Exception as error:  # a fault of ours that this reply showed: other trials go on
            return broken(turn.turn_id, len(self._plan.verifiers), error)
        finally:
            said.tell({})

    async def _judge(self, turn: Turn, said: Asserted) -> TurnJudgment:
        judged = turn.reply[: judged_length(turn.reply)]
        unjudged = len(turn.reply) - len(judged)
        turn = replace(turn, reply=judged)
        marked = tuple(MarkedPassage(start=m.start, end=m.end, why=m.why) for m in marked_passages(judged))
        found = None if marked else _by_rule(turn, len(self._plan.verifiers))
        if found is None:
            found = await self._by_judges(turn, marked, said)
        if self._snapshot is not None:
            found.citations = await self._check_citations(turn, found, self._snapshot)
        assert found.reading is not None
        found.reading = found.reading.model_copy(update={"marked": marked, "unjudged": unjudged})
        return found

    async def _by_judges(self, turn: Turn, marked: Sequence[MarkedPassage], said: Asserted) -> TurnJudgment:
        plan = self._plan
        drawn = derive_seed(turn.seed, "audit", turn.turn_id) % 10_000 < 10_000 * plan.audit_sample  # by the seed alone
        audited = plan.isolation == "flagged" and drawn
        alone = plan.isolation == "claim" or audited
        way: Way = "each_claim" if alone else "reply" if plan.isolation == "reply" else "near_the_key"
        work = _ReplyWork(plan, self._judges, self._library, turn, way, marked=marked, said=said)
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


@dataclass(frozen=True)
class Asserted:
    """What a conversation asserted, as far as the judging of one turn needs it and adds to it."""

    before: tuple[asyncio.Future[dict[Assertion, str]], ...]
    own: asyncio.Future[dict[Assertion, str]]

    async def earlier(self) -> dict[Assertion, str]:
        """The claims of earlier turns that are verified, by what they assert; waits for these turns to be read."""
        if self.before:
            await asyncio.wait(self.before)
        return {says: claim_id for one in reversed(self.before) for says, claim_id in one.result().items()}

    def tell(self, claims: dict[Assertion, str]) -> None:
        """Only the first time counts."""
        if not self.own.done():
            self.own.set_result(claims)


class Assertions:
    """What a conversation asserts, turn by turn."""

    def __init__(self) -> None:
        self._turns: list[asyncio.Future[dict[Assertion, str]]] = []

    def next_turn(self) -> Asserted:
        said = Asserted(tuple(self._turns), asyncio.get_running_loop().create_future())
        self._turns.append(said.own)
        return said


def judged_length(reply: str) -> int:
    """How many characters of a reply are judged: all, or up to the last space before the limit."""
    if len(reply) <= MOST_CHARACTERS:
        return len(reply)
    space = max(reply.rfind(mark, MOST_CHARACTERS - LAST_SPACE, MOST_CHARACTERS) for mark in " \n")
    return space if space > 0 else MOST_CHARACTERS


def broken(turn_id: str, verifiers: int, error: Exception) -> TurnJudgment:
    """The judgment of a reply on which our own code failed."""
    why = failed("extractor", turn_id, 0, (), f"internal error: {type(error).__name__}: {str(error)[:MOST_OF_ERROR]}")
    return TurnJudgment(turn_id, verdicts=[() for _ in range(verifiers)], failures=[why])


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
        found = {one for claim in claims for one in retriever.find(claim.text, claim.quotes)}
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
        marked: Sequence[MarkedPassage] = (),
        said: Asserted | None = None,
        found: TurnJudgment | None = None,
    ) -> None:
        self._plan, self._judges, self._library = plan, judges, library
        self._turn, self.way, self._marked = turn, way, marked
        self._said = said or Assertions().next_turn()
        self.found = found or TurnJudgment(turn.turn_id)
        self._rest = Excerpt.without(turn.reply, marked)
        self._apart: frozenset[str] = frozenset()
        """The claims of marked passages."""
        self._ruled: str | None = None
        """Why no judge reads the rest of the reply."""

    @property
    def checked(self) -> tuple[Claim, ...]:
        """The claims that verifiers get: those that can be checked and were not made before."""
        return tuple(claim for claim in self.found.claims if claim.verifiable and claim.same_as is None)

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
        """The claims of the reply, divided into calls. Those of marked passages are each alone.

        In `near_the_key`, claims share a call only with claims of their kind: factual ones that could be about the key,
        other factual ones, advice and referrals, and what the extractor left out. So text that is not about Medicare
        does not reach a verifier together with the claims that count.
        """
        everything = {claim.claim_id: verifier.in_view(claim, self._turn.reply) for claim in self.checked}
        apart = [view for name, view in everything.items() if name in self._apart]
        alone: list[Part] = [(f"{APART}{n}", (view,)) for n, view in enumerate(apart, 1)]
        views = {name: view for name, view in everything.items() if name not in self._apart}
        single: dict[str, Part] = {name: (f"c{n}", (view,)) for n, (name, view) in enumerate(views.items(), 1)}
        if way == "reply" and views:
            return (("", tuple(views.values())), *alone)
        if way != "near_the_key":
            return (*single.values(), *alone)
        claims = [claim for claim in self.checked if claim.claim_id in views]
        factual = [claim.claim_id for claim in claims if claim.type == "factual" and not claim.verbatim]
        near = [claim_id for claim_id in factual if self._could_be_about_the_key(views[claim_id])]
        others = [one.claim_id for one in claims if one.type in OWN_KINDS and not one.verbatim]
        groups = {
            "s1": near,
            "s2": [one for one in factual if one not in near],
            "s3": others,
            "s4": [one.claim_id for one in claims if one.verbatim],
        }
        shared = {name: ids for name, ids in groups.items() if len(ids) > 1}
        rest = [part for claim_id, part in single.items() if not any(claim_id in ids for ids in shared.values())]
        return (*((name, tuple(views[one] for one in ids)) for name, ids in shared.items()), *rest, *alone)

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
        turn = self._turn
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
        """Claims of the reply and, by a call of its own, of its marked passages."""
        turn, found = self._turn, self.found
        self._ruled = says_nothing(self._rest.text) if has_content(self._rest.text) else NOTHING
        excerpts = [] if self._ruled else [("", self._rest)]
        if self._marked:
            excerpts.append((APART, Excerpt.of(turn.reply, self._marked)))
        reading = [asyncio.create_task(self._extract_from(*one)) for one in excerpts]
        await finish(reading)
        extractions = [task.result() for task in reading]
        apart = extractions.pop() if self._marked else None
        if apart:
            self._apart = frozenset(claim.claim_id for claim in apart.claims)
            extractions.append(apart if not apart.failure else replace(apart, failure=None))
        first = extractions[0] if not self._ruled else None
        if first and self.way == "near_the_key" and not first.first.enough:
            self.way = "each_claim"  # an extractor that leaves out so much may have been told to
        claims = await self._distinct([claim for one in extractions for claim in one.claims])
        found.claims = claims[:MOST_CLAIMS]
        found.rejected = tuple(rejected for one in extractions for rejected in one.rejected)
        spans = [span for claim in found.claims for span in claim.quote_spans]
        found.reading = TurnReading(
            turn_id=turn.turn_id,
            how="judges",
            sentences=sum(one.final.sentences for one in extractions),
            covered_first=sum(one.first.covered for one in extractions),
            covered=sum(one.final.covered for one in extractions),
            left_out=tuple(text for one in extractions for text in one.left_out),
            typographic_quotes=sum(span.match == "typographic" for span in spans),
            verbatim=sum(claim.verbatim for claim in found.claims),
            unjudged_claims=len(claims) - len(found.claims) + sum(one.surplus for one in extractions),
        )
        if first and first.failure:
            found.failures.append(failed("extractor", turn.turn_id, 0, (), first.failure))
        elif first and first.rejected and not first.claims:
            reason = "none of its claims is quoted from the reply"
            found.failures.append(failed("extractor", turn.turn_id, 0, (), reason))

    async def _extract_from(self, part: str, excerpt: Excerpt) -> extractor.Extraction:
        """Claims of an excerpt, with their quotes at their places in the reply."""
        client = self.client("extractor", self._plan.extractor, part=part)
        prefix = f"{part}." if part else ""
        got = await extractor.extract(client, self._turn.turn_id, self._turn.asked, excerpt.text, prefix)
        if got.failure and part:  # the passages are judged in their own words: they do not stop the trial
            got = extractor.in_own_words(self._turn.turn_id, excerpt.text, prefix)
        return replace(got, claims=tuple(_in_reply(claim, excerpt) for claim in got.claims))

    async def _distinct(self, claims: Sequence[Claim]) -> tuple[Claim, ...]:
        """Each assertion once, with all its quotes; one that was made before names the claim that made it."""
        kept: dict[str, Claim] = {}
        first: dict[tuple[bool, bool, Assertion], str] = {}
        """The claims of marked passages stay apart from the others: no verifier is shown both together."""
        for claim in claims:
            says = self._asserted(claim)
            same = first.setdefault((claim.claim_id in self._apart, claim.verifiable, says), claim.claim_id)
            if says and same != claim.claim_id:
                spans = sorted({*kept[same].quote_spans, *claim.quote_spans}, key=lambda one: (one.start, one.end))
                kept[same] = kept[same].model_copy(update={"quote_spans": tuple(spans)})
            else:
                kept[claim.claim_id] = claim
        earlier = await self._said.earlier()
        own: dict[Assertion, str] = {}
        for claim_id, claim in kept.items():
            says = self._asserted(claim) if claim.verifiable else ()
            if says and (before := earlier.get(says) or own.get(says)):
                kept[claim_id] = claim.model_copy(update={"same_as": before})
            elif says:
                own[says] = claim_id
        self._said.tell(own)
        return tuple(kept.values())

    def _asserted(self, claim: Claim) -> Assertion:
        """What a claim says; nothing if only the text around it would tell."""
        if not claim.verbatim:
            return assertion(claim.text)
        context = " ".join(self._turn.reply[span.start : span.end] for span in claim.quote_spans[1:])
        says = assertion(claim.text)
        return (*says, "|", *assertion(context)) if context else says if len(says) >= FEWEST else ()

    async def _read(self) -> list[JudgeFailure]:
        """Let the scorer read the reply; returns its failure, if any."""
        turn, found = self._turn, self.found
        if self._ruled and self._ruled != NOTHING:
            found.observations = _observed(self._ruled, self._rest.text)
            return []
        reply = turn.reply if self._ruled else self._rest.text
        payload = ScorerInput(disallowed_claims=turn.key.disallowed_claims, question=turn.asked.question, reply=reply)
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
        apart = tuple(tie for tie in ties if tie.claim_id in self._apart)
        others = tuple(tie for tie in ties if tie.claim_id not in self._apart)
        alone = self.way == "each_claim"
        parts = [(f"c{n}", (tie,)) for n, tie in enumerate(others, 1)] if alone else [("", others)] if others else []
        parts += [(f"{APART}{n}", (tie,)) for n, tie in enumerate(apart, 1)]
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
    return TurnJudgment(
        turn.turn_id,
        reading=TurnReading(turn_id=turn.turn_id, how="rule", why=nothing),
        observations=_observed(nothing, turn.reply),
        verdicts=[() for _ in range(verifiers)],
    )


def _observed(nothing: str, text: str) -> tuple[Observation, ...]:
    """What is observed in a text that needs no judge, for this reason."""
    refused = (Observation(kind="refusal", quote=text.strip()[:STOCK_QUOTE]),)
    return refused if nothing == STOCK_REFUSAL else ()


def _in_reply(claim: Claim, excerpt: Excerpt) -> Claim:
    """A claim of an excerpt, with its quotes at their places in the reply."""
    spans = [
        QuoteSpan(start=start, end=end, match=span.match)
        for span in claim.quote_spans
        for start, end in excerpt.in_whole(span.start, span.end)
    ]
    return claim.model_copy(update={"quote_spans": tuple(spans)})


async def finish(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for all of them, then raise the first error, if any. Calls in flight are never cut off."""
    if tasks:
        await asyncio.wait(tasks)
    errors = [error for task in tasks if (error := task.exception())]
    if errors:  # what stops the run comes first: a fault that one reply shows does not hide it
        raise min(errors, key=lambda error: not isinstance(error, (HarnessError, OSError)))


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
