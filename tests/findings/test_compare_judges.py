"""Two judgings of the same replies: how claims that were extracted again are matched, and what is listed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from src.findings.compare_judges import JudgesCompared, compare_judges
from src.schemas import Claim, Label, QuoteSpan, RunPlan, TrialResult
from src.text.quotes import LEAST_OVERLAP
from tests.cases import each_case
from tests.findings.made_runs import write_run
from tests.findings.report_run import code, coded, verdict
from tests.helpers import ROOT, claim, final_claim, plan, result
from tests.runs import call

REPLY = "Part B costs $202.90 a month, and most people pay it. Plans have networks."
S: Label = "SUPPORTED"
N: Label = "NOT_IN_KEY"


def at(words: str, text: str = "A claim.", claim_id: str = "Q1.C1") -> Claim:
    start = REPLY.index(words)
    span = QuoteSpan(start=start, end=start + len(words))
    return claim(claim_id).model_copy(update={"quote_spans": (span,), "text": text})


def judging(claims: Sequence[Claim], labels: Sequence[Label | None], **changes: Any) -> TrialResult:
    named = [one.model_copy(update={"claim_id": f"Q1.C{n}"}) for n, one in enumerate(claims, 1)]
    pairs = list(zip(named, labels, strict=True))
    final = [final_claim(one.claim_id, label, text=one.text) for one, label in pairs]
    verdicts = tuple(verdict(label, f"Because of {one.text}", one.claim_id) for one, label in pairs if label)
    made = result(reply=REPLY, claims=named, final_claims=final, **changes)
    return made.model_copy(update={"verdicts": {"judge_1": verdicts}})


def compared(
    folder: Path, old: TrialResult, new: TrialResult, plans: tuple[RunPlan, RunPlan] | None = None
) -> JudgesCompared:
    before, after = plans or (plan(), plan())
    return compare_judges(write_run(folder / "old", [old], before), write_run(folder / "new", [new], after))


def test_a_claim_whose_quote_grew_is_the_same_claim(tmp_path: Path) -> None:
    old = judging([at("Part B costs $202.90 a month")], [N])
    new = judging([at("Part B costs $202.90 a month, and most people pay it.")], [S])
    found = compared(tmp_path, old, new)
    (change,) = found.changed
    assert (change.before.label, change.after.label) == (N, S)
    assert change.before.reasons == ("judge_1: NOT_IN_KEY, Because of A claim.",)
    assert change.after.evidence == ("F1",)
    assert change.quote == "Part B costs $202.90 a month"
    assert found.moves == {(N, S): 1}
    assert (found.same, found.gone, found.new) == (0, 0, 0)


def test_less_than_half_of_the_shorter_quote_is_another_claim(tmp_path: Path) -> None:
    old = judging([at("202.90 a month")], [S])
    enough = judging([at("a month, and m")], [S])
    found = compared(tmp_path, old, enough)
    shared, shorter = len("a month"), len("202.90 a month")
    assert shared / shorter == LEAST_OVERLAP
    assert (found.same, found.gone, found.new) == (1, 0, 0)
    less = judging([at(" month, and mo")], [S])
    assert len(" month") / shorter < LEAST_OVERLAP
    found = compared(tmp_path / "less", old, less)
    assert (found.same, found.gone, found.new) == (0, 1, 1)


def test_claims_of_one_sentence_are_told_apart_by_their_words(tmp_path: Path) -> None:
    quote = "Part B costs $202.90 a month, and most people pay it."
    price, people = at(quote, "Part B costs $202.90 a month."), at(quote, "Most people pay the Part B premium.")
    found = compared(tmp_path, judging([price, people], [S, N]), judging([people, price], [N, S]))
    assert (found.same, found.changed) == (2, [])


def test_a_claim_that_was_split_matches_once_and_the_other_part_is_new(tmp_path: Path) -> None:
    whole = at("Part B costs $202.90 a month, and most people pay it.")
    parts = [at("Part B costs $202.90 a month"), at("most people pay it.")]
    found = compared(tmp_path, judging([whole], [S]), judging(parts, [S, N]))
    assert (found.same, found.gone, found.new) == (1, 0, 1)


def test_claims_of_other_replies_are_never_matched(tmp_path: Path) -> None:
    old = judging([at("Plans have networks.")], [S])
    elsewhere = at("Plans have networks.").model_copy(update={"turn_id": "Q2"})
    found = compared(tmp_path, old, judging([elsewhere], [S]))
    assert (found.same, found.gone, found.new) == (0, 1, 1)


def test_changed_codes_come_with_both_reasons(tmp_path: Path) -> None:
    old = coded(judging([], []), code("g1", "incorrect", reason="Wrong against F1."), code("g2", "not_substantive"))
    new = coded(judging([], []), code("g1", "accurate_complete", reason="All points."), code("g2", "not_substantive"))
    found = compared(tmp_path, old, new)
    (change,) = found.changed_codes
    assert (change.before, change.after) == ("incorrect", "accurate_complete")
    assert (change.reason_before, change.reason_after) == ("Wrong against F1.", "All points.")
    assert (found.codes_same, dict(found.codes_changed)) == (1, {("g1", "incorrect", "accurate_complete"): 1})
    out = call("compare", tmp_path / "old", tmp_path / "new", "--by", "judges")[1]
    assert "g1: incorrect -> accurate_complete\n  first: Wrong against F1.\n  second: All points.\n" in out


def test_trials_that_are_scored_now_and_what_differs_are_listed(tmp_path: Path) -> None:
    before = plan()
    after = before.model_copy(update={"adjudicator": None, "isolation": "flagged"})
    old = judging([], [], outcome="tampered")
    found = compared(tmp_path, old, judging([at("Plans have networks.")], [S]), (before, after))
    assert dict(found.outcomes_changed) == {("tampered", "scored"): 1}
    assert found.differences == (
        "adjudicator: offline:rules before, none now",
        "claims per verifier call: reply before, flagged now",
    )
    out = call("compare", tmp_path / "old", tmp_path / "new", "--by", "judges")[1]
    assert "Trials: tampered -> scored (1)" in out
    assert "What differs between the judgings:\n  adjudicator: offline:rules before, none now\n" in out


def test_changes_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    found = compared(tmp_path, judging([at("Plans have networks.")], [S]), judging([at("Plans have networks.")], [N]))
    assert len(found.changed) == 1
    runs = (tmp_path / "old", tmp_path / "new")
    assert "shown;" not in call("compare", *runs, "--by", "judges")[1]
    assert (
        "0 of 1 changed label shown; --show N or --json has more."
        in call("compare", *runs, "--by", "judges", "--show", 0)[1]
    )


@each_case("release", ["0.1", "0.2"])
def test_an_old_run_and_its_rejudging_are_compared_with_what_changed_and_why(release: str, tmp_path: Path) -> None:
    old = ROOT / "tests" / "formats" / release / "run"
    assert call("rejudge", old, "--out", tmp_path, "--quiet")[0] == 0
    (new,) = tmp_path.iterdir()
    found = compare_judges(old, new)
    assert found.trials == 9
    assert found.same + len(found.changed) == found.moves.total() > 80
    assert any(one.startswith("medicare-eval 0.") for one in found.differences)
    assert any(one.startswith("run format ") for one in found.differences)
    for change in found.changed:
        assert change.quote
        assert len(change.before.reasons) == len(change.after.reasons) == 2
    document = json.loads(call("compare", old, new, "--json")[1])
    assert len(document["changed_codes"]) == len(found.changed_codes)
    assert document["differences"] == list(found.differences)
