"""Addresses and statements written by someone who has not seen the code, run against it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from src.inputs.sources.addresses import classify
from src.inputs.sources.check import check_citation, figure_findings, passage_for
from src.inputs.sources.finding import find_citations
from src.inputs.sources.snapshot import Snapshot
from src.records.citation import Citation, SnapshotPage
from tests.cases import each_case

CORPUS = Path(__file__).parent / "corpus"
LEAST = {"addresses.json": 60, "pairs.json": 30}


def read(name: str) -> list[dict[str, Any]]:
    path = CORPUS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def short(value: object) -> str:
    return str(value)[:50].encode("ascii", "replace").decode("ascii")


@each_case("name", LEAST)
def test_the_corpus_is_there_and_large_enough(name: str) -> None:
    assert (CORPUS / name).is_file(), (
        f"{CORPUS / name} is missing: it is delivered by someone who has not seen the code"
    )
    assert len(read(name)) >= LEAST[name]


def dead(address: str) -> Snapshot:
    url = address if "://" in address else f"https://{address}"
    page = SnapshotPage(
        url=url, final_url=url, fetched=date(2026, 11, 16), status=404, content_type="text/html", bytes=0,
        sha256="0" * 64, title=None, text=None, origin="a test",
    )  # fmt: skip
    return Snapshot((page,))


def outcomes(citation: Citation, snapshot: Snapshot) -> set[str]:
    """What the code says before any support check, in the words of the corpus."""
    address = classify(citation.url)
    checked = check_citation(None, citation, snapshot)
    outcome = getattr(checked, "outcome", "official")
    plain = "official" if address.is_official and outcome in ("not_in_snapshot", "undecided") else str(outcome)
    if address.redirect == "unresolved":
        return {"redirect_unresolved"}
    return {plain, "redirect_resolved"} if address.redirect == "resolved" else {plain}


@each_case("entry", read("addresses.json"), ids=lambda entry: short(entry["text"]))
def test_an_address_of_the_corpus_is_found_and_classified(entry: dict[str, Any]) -> None:
    found = {one.url: one for one in find_citations(entry["text"])}
    if entry["address"] is None:
        assert not found, entry["why"]
        return
    assert entry["address"] in found, entry["why"]
    citation = found[entry["address"]]
    snapshot = dead(entry["address"]) if entry["outcome"] == "dead" else Snapshot(())
    checked = check_citation(None, citation, snapshot)
    assert getattr(checked, "host_class", None) == entry["class"], entry["why"]
    assert entry["outcome"] in outcomes(citation, snapshot), entry["why"]


@each_case("entry", read("pairs.json"), ids=lambda entry: short(entry["statement"]))
def test_a_statement_of_the_corpus_meets_its_page(entry: dict[str, Any]) -> None:
    findings = figure_findings(entry["statement"], entry["page_text"])
    if entry["figure_on_page"] is not None:
        assert all(one.on_page for one in findings) == entry["figure_on_page"], (findings, entry["why"])
    if entry.get("needed"):
        assert entry["needed"] in passage_for(entry["statement"], entry["page_text"]), entry["why"]
