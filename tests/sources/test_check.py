"""From a statement and its citation to an outcome: what code decides, what is asked, and what the answer means."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from src.inputs.sources.check import (
    PASSAGE,
    Statement,
    SupportRequest,
    attach,
    check_citation,
    figure_findings,
    passage_for,
    settle,
)
from src.inputs.sources.finding import find_citations
from src.inputs.sources.snapshot import Snapshot, bundled_snapshot
from src.records.base import Label
from src.records.citation import CheckedCitation, Citation, SnapshotPage
from src.records.contracts import Claim, QuoteSpan
from tests.cases import each_case

URL = "https://www.medicare.gov/basics/costs"
TEXT = "In 2026 the standard Part B premium is $202.90 per month. The Part B deductible is $283."
STATEMENT = Statement("The Part B premium is $202.90 a month in 2026.", "C1", ("it is $202.90",))


def page(url: str = URL, *, text: str | None = TEXT, status: int = 200, whole: bool = True) -> SnapshotPage:
    return SnapshotPage(
        url=url, final_url=url, fetched=date(2026, 11, 16), status=status, content_type="text/html", bytes=10,
        sha256="a" * 64, title="Costs", text=text, origin="a test", whole=whole,
    )  # fmt: skip


def cited(url: str, *, title: str | None = None) -> Citation:
    return Citation(url=url, title=title, where="text")


def check(url: str, *pages: SnapshotPage, statement: Statement | None = STATEMENT) -> CheckedCitation:
    found = check_citation(statement, cited(url), Snapshot(pages))
    assert isinstance(found, CheckedCitation)
    return found


@each_case(
    ("url", "outcome", "host_class"),
    [
        ("https://medicare.gov.plans-help.com/x", "disguised", "disguised"),
        ("https:/medicare.gov", "malformed", "malformed"),
        ("https://www.medicare.com/x", "not_official", "other"),
        ("https://www.cms.gov/unknown", "not_in_snapshot", "cms"),
        ("https://bit.ly/x", "not_in_snapshot", "other"),
    ],
)
def test_what_the_address_alone_decides(url: str, outcome: str, host_class: str) -> None:
    found = check(url, page())
    assert (found.outcome, found.host_class, found.claim_id) == (outcome, host_class, "C1")
    assert found.page_date is None


def test_an_official_address_whose_page_is_unknown_is_no_accusation() -> None:
    found = check("https://www.medicare.gov/never-seen", page())
    assert not found.invented
    assert "not in the snapshot" in found.why


def test_an_official_address_that_the_site_does_not_have_is_dead_and_invented() -> None:
    found = check(URL, page(status=404, text=None))
    assert (found.outcome, found.invented) == ("dead", True)
    assert found.page_date == date(2026, 11, 16)


def test_a_figure_that_is_not_on_the_page_is_not_supported_without_asking_anyone() -> None:
    found = check(URL, page(), statement=Statement("The premium is $185.00 a month.", "C1"))
    assert found.outcome == "not_supported"
    assert [(one.figure, one.on_page) for one in found.figures] == [("$185", False)]
    assert "$185" in found.why


def test_a_page_of_which_only_a_part_is_known_does_not_refute_by_what_it_lacks() -> None:
    statement = Statement("The premium is $185.00 a month.", "C1")
    request = check_citation(statement, cited(URL), Snapshot((page(whole=False),)))
    assert isinstance(request, SupportRequest)
    assert settle(request, "NOT_IN_KEY").outcome == "not_in_snapshot"
    assert settle(request, "CONTRADICTED").outcome == "not_supported"


def request() -> SupportRequest:
    found = check_citation(STATEMENT, cited(f"{URL}/?utm_source=openai"), Snapshot((page(),)))
    assert isinstance(found, SupportRequest)
    return found


def test_the_question_to_a_verifier_is_a_key_of_one_fact_and_shows_no_address() -> None:
    asked = request()
    (fact,) = asked.key.canonical_facts
    assert (fact.fact_id, fact.statement) == ("P1", TEXT)
    assert asked.claim.text == STATEMENT.text
    assert asked.claim.quotes == ("it is $202.90",)
    assert "medicare.gov" not in asked.key.model_dump_json() + asked.claim.model_dump_json()


@each_case(
    ("label", "outcome"),
    [
        ("SUPPORTED", "supported"),
        ("CONTRADICTED", "not_supported"),
        ("NOT_IN_KEY", "not_supported"),
        (None, "undecided"),
    ],
)
def test_a_label_becomes_an_outcome(label: Label | None, outcome: str) -> None:
    found = settle(request(), label, "the judge did not answer")
    assert found.outcome == outcome
    assert (found.page_sha256, found.final_url) == ("a" * 64, URL)
    assert ("did not answer" in found.why) == (label is None)


def test_a_redirect_is_looked_up_by_its_target() -> None:
    url = f"https://www.google.com/url?q={URL}"
    found = check_citation(STATEMENT, cited(url), Snapshot((page(),)))
    assert isinstance(found, SupportRequest)
    done = settle(found, "SUPPORTED")
    assert (done.url, done.resolved_url, done.host_class) == (url, URL, "medicare")


def test_a_link_that_shows_an_official_address_and_leads_elsewhere_is_disguised() -> None:
    (link,) = find_citations("See [www.medicare.gov/costs](https://example.com/costs).")
    found = check_citation(None, link, Snapshot(()))
    assert isinstance(found, CheckedCitation)
    assert (found.outcome, found.host_class) == ("disguised", "disguised")
    (plain,) = find_citations("See [Medicare costs](https://example.com/costs).")
    assert getattr(check_citation(None, plain, Snapshot(())), "outcome", "") == "not_official"
    google = Citation(
        url="https://vertexaisearch.cloud.google.com/grounding-api-redirect/x", title="medicare.gov", where="annotation"
    )
    assert getattr(check_citation(None, google, Snapshot(())), "outcome", "") == "not_in_snapshot"


def test_a_page_without_text_and_a_citation_without_a_statement_stay_open() -> None:
    assert check(URL, page(text=None)).outcome == "not_in_snapshot"
    assert check(URL, page(), statement=None).outcome == "undecided"


def test_figures_count_as_quantities_and_years_only_alone() -> None:
    assert [one.on_page for one in figure_findings("Part B is $2,434.80 a year.", TEXT)] == [True]
    assert [one.figure for one in figure_findings("In 2026 it is $283.", TEXT)] == ["$283"]
    assert [(one.figure, one.on_page) for one in figure_findings("It ends in 2031.", TEXT)] == [("2031", False)]
    assert [one.on_page for one in figure_findings("It covers 100 days.", "Days 21\u2013100: $217 each day.")] == [True]
    assert [one.on_page for one in figure_findings("It covers 90 days.", "Days 21\u2013100: $217 each day.")] == [False]
    assert figure_findings("There are two ways to enroll.", TEXT) == ()
    assert [one.on_page for one in figure_findings("It covers 3 visits.", TEXT)] == [False]


def test_figures_of_the_question_need_not_be_on_the_page() -> None:
    said = "With an income of $30,000 you pay $202.90 a month."
    assert [one.figure for one in figure_findings(said, TEXT, ["My income is $30,000."])] == ["$202.90"]


def test_the_passage_has_the_sentence_that_the_statement_is_about() -> None:
    filler = [
        f"Section {number} is about wheelchairs, walkers and hospital beds for people at home." for number in range(300)
    ]
    needed = "People who delay Part B pay 10% more for each full 12-month period."
    text = "\n".join([*filler[:170], "Late enrollment penalty.", needed, *filler[170:]])
    found = passage_for("The Part B late penalty is 10% per year of delay.", text)
    assert needed in found
    assert len(found) <= PASSAGE
    assert passage_for("anything", "A short page.") == "A short page."


@given(st.text(max_size=200), st.text(max_size=400))
def test_no_statement_and_no_page_make_the_check_fail(statement: str, text: str) -> None:
    figure_findings(statement, text)
    assert len(passage_for(statement, text, limit=60)) <= 60 or len(text) <= 60


def claim(claim_id: str, reply: str, quote: str) -> Claim:
    start = reply.index(quote)
    return Claim(
        claim_id=claim_id, text=quote, type="factual", confidence="high", verifiable=True,
        quote_spans=(QuoteSpan(start=start, end=start + len(quote)),),
    )  # fmt: skip


def test_a_citation_backs_what_it_overlaps_then_its_sentence_then_its_paragraph() -> None:
    reply = (
        "Part B costs $202.90 (https://www.medicare.gov/a). It has a deductible of $283.\n\n"
        "- Part A is free for most.\n- Part D is capped at $2,100. [Source](https://www.cms.gov/b)\n\n"
        "See https://www.ssa.gov/c for more."
    )
    quotes = ["costs $202.90", "a deductible of $283", "Part A is free for most", "capped at $2,100"]
    claims = [claim(f"C{number}", reply, quote) for number, quote in enumerate(quotes, 1)]
    citations = find_citations(reply)
    backed = attach(reply, claims, citations)
    assert [one.claim_ids for one in backed] == [("C1",), ("C4",), ()]
    overlapping = citations[0].model_copy(update={"start": 0, "end": len(reply)})
    nowhere = citations[0].model_copy(update={"start": None, "end": None})
    assert [len(one.claim_ids) for one in attach(reply, claims, [overlapping, nowhere])] == [4, 0]


def test_the_bundled_snapshot_can_support_a_statement() -> None:
    url = "https://www.medicare.gov/publications/11579-medicare-costs.pdf"
    found = check_citation(Statement("The Part A deductible is $1,736 in 2026."), cited(url), bundled_snapshot())
    assert isinstance(found, SupportRequest)
    assert [one.on_page for one in found.figures] == [True]
    assert "$1,736" in found.passage
