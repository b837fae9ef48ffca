"""The citations of one reply: collected, tied to its claims, checked by code, and the rest by a verifier.

A verifier is asked as always, with the passage of the page as a key of one fact. It sees neither the address nor
anything else that a search brought. A check that fails decides nothing: the citation stays undecided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..agents import verifier
from ..agents.ask import AskedTurn, JudgeClient
from ..inputs.sources.check import Statement, SupportRequest, attach, check_citation, settle
from ..inputs.sources.finding import collect_citations
from ..inputs.sources.snapshot import Snapshot
from ..records.citation import CheckedCitation, Citation
from ..records.target import WebCitation, WebSearch
from ..schemas import Claim

MOST_CHECKS = 40
"""Support checks of one reply. Citations beyond that stay undecided."""


async def check_citations(
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


def cited(
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
