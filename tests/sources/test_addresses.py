"""Whose an address is: official names by their labels, everything that only looks like one, and no crash on any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.inputs.sources.addresses import classify, page_key
from src.inputs.sources.finding import collect_citations, find_citations, find_named_sources
from src.inputs.sources.hosts import classify_host
from src.records.citation import OFFICIAL
from tests.cases import each_case

CLASSES = {
    "https://www.medicare.gov/basics": "medicare",
    "http://es.medicare.gov/": "medicare",
    "Medicare.gov/plan-compare": "medicare",
    "https://www.cms.hhs.gov/x": "cms",
    "https://www.cms.gov/newsroom": "cms",
    "https://secure.ssa.gov/poms.nsf/lnx/0600815023": "ssa",
    "https://www.hhs.gov/": "other_federal",
    "https://www.va.gov/health": "other_federal",
    "https://tricare.mil/": "other_federal",
    "https://www.insurance.ca.gov/a": "state_agency",
    "https://www.oregon.gov/odhs": "state_agency",
    "https://www.mass.gov/x": "state_agency",
    "https://mn.gov/aging": "state_agency",
    "https://www.dhs.state.mn.us/x": "state_agency",
    "https://www.virginiabeach.gov/x": "other_federal",
    "https://www.shiphelp.org/": "ship",
    "https://www.medicare.com/x": "other",
    "https://medicare.org": "other",
    "https://www.medicareinteractive.org/x": "other",
    "https://www.health.gov.au/": "other",
    "https://www.gov.uk/x": "other",
    "https://192.0.2.7/medicare.gov": "disguised",
    "https://[2001:db8::1]/medicare.gov": "other",
    "https://example.com/www.medicare.gov/": "disguised",
    "https://example.com/?u=https://www.medicare.gov/": "other",
    "https://xn--mnchen-3ya.de/": "other",
    "https://notmedicare.gov.example.com/": "disguised",
    "https://medicare.gov.plans-help.com/a": "disguised",
    "https://medicare.gov@evil.com/": "disguised",
    "https://medicare.gov:443@evil.com/": "disguised",
    "https://evil.com\\@medicare.gov/": "disguised",
    "https://medicare.gov\\.evil.com/": "disguised",
    "https://medicare.gov%2eevil.com/": "disguised",
    "medicare-gov.com": "disguised",
    "www-medicare.gov.co": "disguised",
    "cms.gov-login.com/x": "disguised",
    "https://medicaregov.us/": "disguised",
    "https://usgov-medicare.com/": "disguised",
    "https://ssa.gov.us/": "disguised",
    "https://shiphelp.org.example.com/": "disguised",
    "https://medlcare.gov/": "disguised",
    "https://medicar.gov/": "disguised",
    "https://mediacre.gov/": "disguised",
    "https://crns.gov/": "disguised",
    "https://wwwmedicare.gov/": "disguised",
    "https://rnedicare-plans.com/": "disguised",
    "https://medicare.g0v/": "disguised",
    "https://m\u0435dicare.gov/": "disguised",
    "https://medicare.g\u03bfv/": "disguised",
    "https://\uff4dedicare.gov/": "disguised",
    "https://medicare\uff0egov/": "disguised",
    "https://medi\u200bcare.gov/": "disguised",
    "https://m\u00e9dicare.gov/": "disguised",
    "https://\u0441ms.com/": "disguised",
    "https://xn--mdicare-5of.com/": "disguised",
    "https://hhs.gov\u2044a.example.com/": "disguised",
    "https://example.gov\uff0fevil.com/": "disguised",
    "https://medicare.gov.evil.com/%zz": "disguised",
    "https:/www.medicare.gov/": "malformed",
    "htps://www.medicare.gov/": "malformed",
    "https//www.medicare.gov/": "malformed",
    "https:\\\\www.medicare.gov\\x": "malformed",
    "ftp://ftp.cms.gov/x": "malformed",
    "https://www.medicare.gov:99999/": "malformed",
    "https://medicare..gov/": "malformed",
    "https://-medicare.gov/": "malformed",
    "https://medicare/": "malformed",
    "https://192.0.2.700/": "malformed",
    "https://www.medicare.gov/%0d%0aLocation:x": "malformed",
    "https://www.medicare.gov/%zz": "malformed",
    "https://www.medicare.gov/a\x07b": "malformed",
    "https://": "malformed",
    "": "malformed",
}  # fmt: skip


@each_case(("url", "expected"), CLASSES.items(), ids=lambda value: ascii(value)[:60])
def test_the_class_of_an_address(url: str, expected: str) -> None:
    assert classify(url).host_class == expected
    assert classify(url).why.endswith(".")


@each_case("name", ["sba", "nsa", "gsa", "sss", "usa", "cdc", "fda", "irs", "medicaid", "healthcare"])
def test_agencies_whose_names_are_near_to_others_are_not_imitations(name: str) -> None:
    assert classify_host(f"www.{name}.gov").host_class == "other_federal"


def test_a_redirect_that_carries_its_target_is_followed() -> None:
    google = classify("https://www.google.com/url?sa=D&q=https%3A%2F%2Fwww.medicare.gov%2Fx%3Fa%3D1&ust=1")
    assert (google.host_class, google.resolved_url) == ("medicare", "https://www.medicare.gov/x?a=1")
    bing = classify("https://www.bing.com/ck/a?!&&p=12&u=a1aHR0cHM6Ly93d3cubWVkaWNhcmUuZ292Lw&ntb=1")
    assert (bing.redirect, bing.resolved_url) == ("resolved", "https://www.medicare.gov/")
    bad = classify("https://www.google.com/url?q=https://medicare.gov.evil.com/")
    assert (bad.redirect, bad.host_class) == ("resolved", "disguised")


@each_case(
    "url",
    [
        "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZIYQF",
        "https://bit.ly/3xYz", "https://www.google.com/url?sa=t", "https://www.bing.com/ck/a?u=a1!!", "https://t.co/x",
    ],
)  # fmt: skip
def test_a_redirect_that_does_not_say_where_it_leads_is_not_resolved(url: str) -> None:
    found = classify(url)
    assert (found.redirect, found.host_class, found.resolved_url) == ("unresolved", "other", None)
    assert "redirect" in found.why


def test_a_host_that_is_named_like_a_redirector_is_none() -> None:
    assert classify("https://google.evil.com/url?q=https://www.medicare.gov/").host_class == "other"
    assert classify("https://notbing.com/ck/a?u=https://www.medicare.gov/").host_class == "other"


@each_case(
    "spelling",
    [
        "http://www.medicare.gov/basics/costs", "HTTPS://WWW.MEDICARE.GOV/basics/costs/", "medicare.gov/basics/costs#part-b",
        "https://medicare.gov:443/basics/costs?utm_source=openai&gclid=1", "https://medicare.gov./basics/./x/../costs",
        "https://www.medicare.gov/basics/%63osts",
    ],
)  # fmt: skip
def test_spellings_of_one_page_have_one_key(spelling: str) -> None:
    assert page_key(spelling) == "medicare.gov/basics/costs"


def test_what_makes_another_page_makes_another_key() -> None:
    urls = [
        "medicare.gov/a?x=1&y=2",
        "medicare.gov/a?x=2&y=1",
        "medicare.gov/A",
        "medicare.gov:8443/a",
        "cms.gov/a",
        "medicare.gov/a%2Fb",
    ]
    assert len({page_key(url) for url in urls}) == len(urls)
    assert page_key("medicare.gov/a?y=2&x=1") == page_key("medicare.gov/a?x=1&y=2")
    assert page_key("https://medicare.gov@evil.com/") is None


FOUND = {
    "See https://www.medicare.gov/basics/costs.": ["https://www.medicare.gov/basics/costs"],
    "(www.medicare.gov/x), then Medicare.gov/plan-compare!": ["www.medicare.gov/x", "Medicare.gov/plan-compare"],
    "**https://www.ssa.gov/medicare**; _https://cms.gov/a_": ["https://www.ssa.gov/medicare", "https://cms.gov/a"],
    "[Costs](https://www.medicare.gov/a_(b).pdf \"title\") here": ["https://www.medicare.gov/a_(b).pdf"],
    "<https://a.gov/x> `https://b.gov/y` | https://c.gov/z|": ["https://a.gov/x", "https://b.gov/y", "https://c.gov/z"],
    "\u201chttps://d.gov/w\u201d\u2014and more": ["https://d.gov/w"],
    "https://en.wikipedia.org/wiki/Medicare_(United_States))": ["https://en.wikipedia.org/wiki/Medicare_(United_States)"],
    "https://www.medicare.gov/a\\_b": ["https://www.medicare.gov/a_b"],
    "<a href=\"https://www.cms.gov/q\">x</a>": ["https://www.cms.gov/q"],
    "Source:medicare.gov/x and medicare.gov/y's page": ["medicare.gov/x", "medicare.gov/y"],
    "Go to medicare-gov.com or medicare.com": ["medicare-gov.com", "medicare.com"],
    "Mail medicare.gov@evil.com": ["medicare.gov@evil.com"],
    "m\u0435dicare.gov/x": ["m\u0435dicare.gov/x"],
    "Write to help@cms.gov or mailto:a@b.gov, [us](mailto:c@d.gov)": [],
    "Medicare.gov and SSA.GOV, see Medicare.gov's tool at CMS.gov.": [],
    "a.m./p.m., U.S./Canada, e.g./i.e., 1.5/2.5, plan.In 2026, and/or, end.So": [],
    "[here](/plan-compare) and [there](#costs) and [1]": [],
    "&lt;https://www.cms.gov/a&gt; x": ["https://www.cms.gov/a"],
    "See [compare](medicare.gov/plan-compare)": ["medicare.gov/plan-compare"],
    "https:// alone, http:": ["https://"],
}  # fmt: skip


@each_case(("text", "expected"), FOUND.items(), ids=lambda value: ascii(value)[:60])
def test_the_addresses_of_a_text_are_found(text: str, expected: list[str]) -> None:
    assert [one.url for one in find_citations(text)] == expected


def test_a_link_has_a_title_and_the_span_of_the_whole_link() -> None:
    text = "It is $202.90 ([Medicare costs](https://www.medicare.gov/costs))."
    (found,) = find_citations(text)
    assert found.title == "Medicare costs"
    assert text[found.start : found.end] == "[Medicare costs](https://www.medicare.gov/costs)"


def test_an_entry_in_a_list_of_sources_is_cited_where_its_mark_is() -> None:
    text = "It is $202.90 [1]. And $283 [^2].\n\nSources:\n[1]: https://www.cms.gov/a\n- [^2] Costs: https://www.medicare.gov/b\n"
    found = find_citations(text)
    assert [(one.url, text[one.start : one.end], one.title) for one in found] == [
        ("https://www.cms.gov/a", "[1]", None), ("https://www.medicare.gov/b", "[^2]", "Costs"),
    ]  # fmt: skip
    assert [one.start for one in found] == [text.index("[1]"), text.index("[^2]")]


def test_sources_named_without_an_address_are_kept_apart() -> None:
    text = "According to the Centers for Medicare & Medicaid Services, see Medicare.gov; as per CMS, yes."
    assert [one.name for one in find_named_sources(text)] == [
        "Centers for Medicare & Medicaid Services",
        "Medicare.gov",
        "CMS",
    ]
    assert find_named_sources("According to your plan, go to medicare.com.") == ()


def test_an_address_in_an_annotation_and_in_the_text_counts_once() -> None:
    text = "It is so ([medicare.gov](https://www.medicare.gov/costs?utm_source=openai)). See ssa.gov/medicare."
    (link, other) = find_citations(text)
    annotation = link.model_copy(update={"where": "annotation", "url": "https://www.medicare.gov/costs"})
    assert collect_citations(text, [annotation]) == (annotation, other)
    elsewhere = annotation.model_copy(update={"start": 0, "end": 5})
    assert collect_citations(text, [elsewhere]) == (elsewhere, link, other)


@given(st.text())
def test_no_text_makes_the_finder_fail_and_spans_are_in_the_text(text: str) -> None:
    for one in find_citations(text):
        assert one.start is not None and one.end is not None
        assert 0 <= one.start < one.end <= len(text)
        classify(one.url)
    find_named_sources(text)


SPLIT = str.split
PIECES = st.sampled_from(
    [
        *SPLIT(
            "medicare gov .gov .com @ : / \\ // https:// www. - . [ ]( ) < > % %2e %00 # ? = xn-- \u0435 evil 1 [1] [1]:"
        ),
        "\n",
        " ",
        "\u200b",
        "\uff0e",
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_mixture_of_address_parts_makes_the_finder_fail(text: str) -> None:
    for one in find_citations(text):
        classify(one.url)
    classify(text)
    page_key(text)


LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)


@given(
    st.sampled_from(["medicare.gov", "www.cms.gov", "ssa.gov", "ca.gov"]),
    st.text(max_size=20),
    st.sampled_from([".", "-", "", "@", "%2e", "\\"]),
)
def test_whatever_follows_an_official_name_is_official_only_if_the_host_ends_there(
    host: str, rest: str, joint: str
) -> None:
    url = f"https://{host}{joint}{rest}"
    if classify(url).host_class in OFFICIAL:
        name = url.removeprefix("https://")
        for mark in "/?#":
            name = name.partition(mark)[0]
        name = name.partition(":")[0].lower().removesuffix(".")
        assert name.endswith((".gov", ".mil", "shiphelp.org", ".us", "myflorida.com")), url
        assert name.isascii() and "@" not in name and "\\" not in name and "%" not in name


@given(st.lists(LABELS, min_size=1, max_size=4), st.sampled_from(["com", "org", "net", "co", "info", "ru", "com.co"]))
def test_no_name_with_a_private_ending_is_official(labels: list[str], ending: str) -> None:
    host = ".".join([*labels, ending])
    if not host.endswith(("shiphelp.org", "myflorida.com")):
        assert classify_host(host).host_class not in OFFICIAL


@given(LABELS, LABELS)
def test_an_official_ending_before_a_private_name_is_a_disguise(before: str, owner: str) -> None:
    assert classify_host(f"{before}.medicare.gov.{owner}.com").host_class in ("disguised", "malformed")
    assert classify_host(f"medicare-gov-{owner}.com").host_class in ("disguised", "malformed")


@pytest.mark.slow
def test_long_hostile_texts_do_not_make_the_finder_hang() -> None:
    for piece in ("[](", "[1]: ", "https://", "a.", "@", "[", "medicare.gov/", "According to A "):
        find_citations(piece * 3_000)
        find_named_sources(piece * 3_000)
