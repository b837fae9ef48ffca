"""`judge-check`: the gold set, the command and its record, judges of every kind, bad input, called from Python."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from src import storage
from src.calls.stop import Stop
from src.cli.judge_check import LABELS, OUTCOMES, confusions
from src.errors import IncompleteRun, InputError
from src.findings.judge_agreement import RECORD, read_check
from src.judge_check import check as check_module
from src.judge_check.check import CheckOptions, check_judges, check_judges_async
from src.judge_check.gold import Gold, load_gold
from src.judge_check.judge_reply import JudgedReply
from src.judge_check.measure import PANEL, measure_codes, why_not_coded
from src.records.judge_check import CHECK_FORMAT, ClaimKind, JudgeCheck, JudgeMeasured, Split
from src.records.study import JudgeOptions, ModelSettings
from src.runner.progress import RunProgress
from src.schemas import ClaimInView, ExtractorInput, VerifierInput
from src.scoring.definitions import SHARES
from src.scoring.result import TurnJudgment, failed
from src.stats.confusion import precision, recall, share_right
from src.text.fence import unwrap
from tests.cases import each_case
from tests.helpers import with_canary
from tests.loopback import Loopback, Received, Scripted
from tests.runs import END_TO_END, ROOT, call, newest, shared
from tests.test_wire_runs import redirect, said, sensible

SPLITS: tuple[Split, ...] = ("dev", "held_out", "second", "third")
OFFLINE = JudgeOptions(judges=(ModelSettings(model="offline:rules"),))
COBRA = ROOT / "gold" / "dev" / "cobra.json"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def gold() -> dict[Split, Gold]:
    return {split: load_gold(split) for split in SPLITS}


def checked(out: Path, *arguments: object) -> tuple[Path, str]:
    code, printed, err = call("judge-check", *arguments, "--out", out, "--quiet")
    assert code == 0, err
    return newest(out), printed


@pytest.fixture(scope="module")
def dev() -> tuple[Path, str]:
    return shared("judge-check", "--split", "dev", "--worst", 20)


def own_gold(folder: Path, change: Callable[[Document], None] = lambda document: None, replies: int = 2) -> Path:
    """A small gold set: the first replies of one dev file, changed."""
    document: Document = json.loads(COBRA.read_text(encoding="utf-8"))
    document["replies"] = document["replies"][:replies]
    change(document)
    folder.mkdir(parents=True)
    (folder / "own.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def right(judge: JudgeMeasured) -> int:
    return sum(n for (gold, given), n in judge.matrix().items() if gold == given)


def total(judge: JudgeMeasured) -> int:
    return sum(judge.matrix().values())


def end_to_end(record: JudgeCheck) -> JudgeMeasured:
    assert record.end_to_end is not None
    return record.end_to_end


# --- the gold set ---


@pytest.mark.slow
def test_the_gold_set_is_as_large_and_as_varied_as_it_says(gold: dict[Split, Gold]) -> None:
    items = [item for part in gold.values() for item in part.items]
    assert len(items) >= 60
    assert sum(part.claims for part in gold.values()) >= 600
    assert sum(len(part.files) for part in gold.values()) >= 10
    assert {claim.kind for item in items for claim in item.reply.claims} == set(get_args(ClaimKind))
    assert {claim.label for item in items for claim in item.reply.claims} == set(LABELS)
    assert {item.reply.quality for item in items} >= {"good", "mixed", "poor"}


def test_every_gold_reply_has_a_question_and_contains_its_quotes(gold: dict[Split, Gold]) -> None:
    for part in gold.values():
        for item in part.items:
            assert item.asked.question, item.reply.reply_id
            for claim in item.claims:
                assert all(quote in item.reply.text for quote in claim.quotes), (item.reply.reply_id, claim.claim_id)


def test_ids_are_unique_and_no_reply_is_in_two_splits(gold: dict[Split, Gold]) -> None:
    ids = Counter(item.reply.reply_id for part in gold.values() for item in part.items)
    assert [name for name, n in ids.items() if n > 1] == []
    for part in gold.values():
        for item in part.items:
            names = [claim.claim_id for claim in item.reply.claims]
            assert len(set(names)) == len(names), item.reply.reply_id
    texts = Counter(" ".join(item.reply.text.split()) for part in gold.values() for item in part.items)
    assert set(texts.values()) == {1}


def test_every_gold_file_names_its_split_and_no_scenario_is_in_both() -> None:
    found = {split: sorted((ROOT / "gold" / split).glob("*.json")) for split in ("dev", "held_out")}
    for split, paths in found.items():
        assert all(json.loads(path.read_bytes())["split"] == split for path in paths)
    assert not {path.name for path in found["dev"]} & {path.name for path in found["held_out"]}


def test_gold_labels_that_our_own_rule_would_refuse_are_listed(tmp_path: Path) -> None:
    def elsewhere(document: Document) -> None:
        first = next(one for one in first_reply(document)["claims"] if one["label"] == "SUPPORTED")
        first.update(text="Bananas ripen in a bowl.", quotes=["Short version"])

    assert load_gold("dev", own_gold(tmp_path / "plain")).off_topic() == ()
    own = own_gold(tmp_path / "own", elsewhere)
    assert len(load_gold("dev", own).off_topic()) == 1
    record = read_check(checked(tmp_path / "out", "--split", "dev", "--gold", own, "--only", "verifier")[0])
    assert record.off_topic == 1


# --- the command, its table and its record ---


@pytest.mark.slow
def test_the_counts_of_a_record_agree_with_each_other_and_with_the_gold_set(
    dev: tuple[Path, str], gold: dict[Split, Gold]
) -> None:
    record = read_check(dev[0])
    items = gold["dev"].items
    assert (record.replies, record.claims) == (len(items), gold["dev"].claims)
    assert record.failures == ()
    assert record.calls == len((dev[0] / storage.JOURNAL).read_bytes().splitlines())
    labels = Counter(claim.label for item in items for claim in item.reply.claims)
    kinds = Counter(claim.kind for item in items for claim in item.reply.claims)
    for judge in (end_to_end(record), *record.judges):
        assert [one.reply_id for one in judge.replies] == [item.reply.reply_id for item in items]
        assert {label: sum(n for (is_, _), n in judge.matrix().items() if is_ == label) for label in LABELS} == labels
        assert {kind: n for kind, (_, n) in judge.by_kind.items()} == kinds
        assert sum(n for n, _ in judge.by_kind.values()) == right(judge)
        assert len(judge.errors) == record.claims - right(judge)
        assert all(error.gold != error.given for error in judge.errors)
        assert judge.same_evidence <= right(judge)
    assert [(one.name, one.model) for one in record.judges] == [
        ("judge_1", "offline:rules"),
        ("judge_2", "offline:rules"),
        (PANEL, None),
    ]
    assert not any("missed" in pair or one.spurious() for one in record.judges for pair in one.matrix())
    extractor = record.extractor_measured
    assert extractor is not None
    assert extractor.gold_claims == record.claims
    assert extractor.found == sum(n for (_, given), n in end_to_end(record).matrix().items() if given != "missed")
    assert extractor.extracted - extractor.on_gold == sum(end_to_end(record).spurious().values())
    assert extractor.covered <= extractor.sentences


def test_the_table_shows_the_numbers_that_follow_from_the_counts_of_each_reply(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    record = read_check(folder)
    lines = [line for line in printed.splitlines() if re.search(r"\d+ +\d+ +\d+\.\d%", line)]
    for judge in (end_to_end(record), *record.judges):
        replies = confusions(judge)
        assert lines[0].split(", all")[0] == judge.name
        assert f" {share_right(replies).value:.1%} (" in lines.pop(0)
        for label in LABELS:
            found, given = recall(replies, label), precision(replies, label)
            cells = lines[0].split()
            assert cells[:4] == [label, str(found.n), f"{found.effective:.0f}", f"{found.value:.1%}"]
            assert (f"{given.value:.1%}" if given.n else "-") in lines.pop(0).split(f"{found.value:.1%} (")[1]
    for judge in (end_to_end(record), *record.judges):
        for label in LABELS:
            row = [str(judge.matrix().get((label, given), 0)) for given in OUTCOMES]
            assert any(line.split() == [label, *row] for line in printed.splitlines())
    whole = end_to_end(record)
    assert any(
        line.split() == ["spurious", *(str(whole.spurious().get(given, 0)) for given in OUTCOMES[:-1])]
        for line in printed.splitlines()
    )
    shares = [whole.precision[label].with_spurious for label in LABELS]
    row = ["-" if share is None else f"{share:.1%}" for share in shares]
    assert any(line.split() == ["with", "spurious", *row] for line in printed.splitlines())
    for kind, (hit, of) in whole.by_kind.items():
        assert re.search(rf"^{kind.replace('_', ' ')} +{hit} of {of} ", printed, re.MULTILINE)


def test_a_record_has_precision_with_and_without_spurious_claims(dev: tuple[Path, str]) -> None:
    record = read_check(dev[0])
    whole = end_to_end(record)
    extra = whole.spurious()
    assert extra["NOT_IN_KEY"] > 0
    for label in LABELS:
        hits = whole.matrix().get((label, label), 0)
        given = sum(n for (_, got), n in whole.matrix().items() if got == label)
        both = whole.precision[label]
        assert (both.matched, both.with_spurious) == (hits / given, hits / (given + extra.get(label, 0)))
    assert all(one.matched == one.with_spurious for judge in record.judges for one in judge.precision.values())


def test_the_worst_errors_end_to_end_are_shown_worst_first_with_both_reasons(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    judge = end_to_end(read_check(folder))
    assert f"The 20 worst of {len(judge.errors)} errors, end to end:" in printed
    shown = printed.split("errors, end to end:", 1)[1]
    assert shown.count("    gold:  ") == shown.count("    judge: ") == 20
    assert judge.errors[0].gold_reason in shown
    places = [shown.index(f"{error.reply_id} {error.claim_id} [") for error in judge.errors[:20]]
    assert places == sorted(places)


def test_only_one_way_of_measuring_makes_only_its_calls(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")
    records = {
        only: read_check(checked(tmp_path / only, "--split", "dev", "--gold", own, "--only", only)[0])
        for only in ("end-to-end", "verifier")
    }
    both = read_check(checked(tmp_path / "both", "--split", "dev", "--gold", own)[0])
    assert (records["end-to-end"].judges, records["end-to-end"].end_to_end) == ((), both.end_to_end)
    assert (records["verifier"].judges, records["verifier"].end_to_end) == (both.judges, None)
    assert records["verifier"].extractor_measured is None
    assert both.calls == sum(record.calls for record in records.values())


@pytest.mark.slow
def test_a_limit_draws_replies_by_the_seed_and_is_part_of_the_plan(tmp_path: Path) -> None:
    def drawn(name: str, *more: object) -> JudgeCheck:
        folder, printed = checked(tmp_path / name, "--split", "dev", "--only", "end-to-end", *more)
        assert ("drawn at random" in printed) == ("--limit" in more)
        return read_check(folder)

    few, again, other = drawn("a", "--limit", 5), drawn("b", "--limit", 5), drawn("c", "--limit", 5, "--seed", 7)
    names = [[one.reply_id for one in end_to_end(record).replies] for record in (few, again, other)]
    assert few.replies == len(set(names[0])) == 5
    assert names[0] == names[1] != names[2]
    assert few.plan_sha256 == again.plan_sha256
    everything = read_check(shared("judge-check", *END_TO_END).folder)
    assert set(names[0]) <= {one.reply_id for one in end_to_end(everything).replies}
    assert few.plan_sha256 != everything.plan_sha256


@pytest.mark.slow
@each_case(("split", "replies", "claims"), [("second", 48, 966), ("third", 40, 754)])
def test_the_later_parts_are_measured_like_the_others(
    split: Split, replies: int, claims: int, tmp_path: Path, gold: dict[Split, Gold]
) -> None:
    folder, printed = checked(tmp_path, "--split", split, "--only", "verifier", "--limit", 4)
    record = read_check(folder)
    assert (record.split, record.replies, record.limit) == (split, 4, 4)
    assert f"drawn at random, {split} part of the gold set" in printed
    assert (len(gold[split].items), gold[split].claims) == (replies, claims)


# --- study codes ---


def test_gold_codes_follow_from_the_gold_labels(dev: tuple[Path, str], gold: dict[Split, Gold]) -> None:
    codes = read_check(dev[0]).codes
    assert codes is not None
    assert codes.left_out == {"several_turns": 1}
    assert len(codes.replies) == len(gold["dev"].items) - 1
    by_quality: dict[str, Counter[str]] = {}
    quality = {item.reply.reply_id: item.reply.quality for item in gold["dev"].items}
    for one in codes.replies:
        by_quality.setdefault(quality[one.reply_id], Counter())[one.gold] += 1
    assert by_quality["good"] == {"accurate_complete": 9}
    assert by_quality["poor"].keys() == by_quality["mixed"].keys() == {"incorrect"}
    assert "incorrect" not in by_quality["refusal"]


def test_a_gold_reply_without_claims_has_no_point(gold: dict[Split, Gold]) -> None:
    item = next(item for item in gold["dev"].items if item.reply.reply_id == "cobra-1")
    silent = replace(item, reply=item.reply.model_copy(update={"claims": ()}), claims=(), spans=())
    judgment = TurnJudgment(turn_id=item.reply.turn_id)
    (code,) = measure_codes([JudgedReply(silent, judgment)]).replies
    assert (code.gold, code.given) == ("not_substantive", "not_substantive")
    (code,) = measure_codes([JudgedReply(item, judgment)]).replies
    assert (code.gold, code.given) == ("accurate_complete", "not_substantive")


def test_a_judge_that_failed_gives_no_code(gold: dict[Split, Gold]) -> None:
    (item, *_) = gold["dev"].items
    broken = TurnJudgment(
        turn_id=item.reply.turn_id, failures=[failed("extractor", item.reply.turn_id, 0, (), "no answer")]
    )
    (code,) = measure_codes([JudgedReply(item, broken)]).replies
    assert code.given == "incomplete_data"


@each_case(
    ("rule", "reason"),
    [
        ({"fabricated": "incorrect"}, "not_labeled"),
        ({"referral_alone": "accurate_complete"}, "not_labeled"),
        ({"hedged": "not_substantive"}, "not_labeled"),
        ({"material_from": "high"}, None),
    ],
)
def test_a_reply_whose_code_goes_by_more_than_labels_is_left_out(
    rule: dict[str, str], reason: str | None, gold: dict[Split, Gold]
) -> None:
    (item, *_) = gold["dev"].items
    default = item.rubric.default.model_copy(update=rule)
    changed = replace(item, rubric=item.rubric.model_copy(update={"default": default}))
    assert why_not_coded(changed) == reason
    assert why_not_coded(replace(item, rubric=item.rubric.model_copy(update={"study_codes": False}))) == "no_code"


def test_the_codes_that_were_found_are_printed_with_their_intervals(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    codes = read_check(folder).codes
    assert codes is not None
    assert "Study codes, end to end, of 35 replies:" in printed
    for code in SHARES:
        those = [one.given == code for one in codes.replies if one.gold == code]
        others = [one.given == code for one in codes.replies if one.gold != code]
        found = rf"  {code} found {sum(those)} of {len(those)} \(\d+-\d+%\), "
        assert re.search(rf"{found}wrongly given {sum(others)} of {len(others)} \(\d+-\d+%\);", printed)
    assert "not coded: 1 whose question has several turns." in printed


def test_a_record_written_before_codes_were_measured_can_be_read(dev: tuple[Path, str], tmp_path: Path) -> None:
    """Its bytes have no such field, and must be exactly what was written."""
    written = (dev[0] / RECORD).read_bytes()
    codes = re.search(rb'"codes":\{.*?\},"extractor_measured"', written)
    assert codes is not None
    (tmp_path / RECORD).write_bytes(written.replace(codes[0], b'"extractor_measured"'))
    assert read_check(tmp_path) == read_check(dev[0]).model_copy(update={"codes": None})


# --- judges that know the gold set, over the wire ---


def by_heart(gold: Document | None, task: VerifierInput) -> Document:
    """The gold label, as far as it rests on ids that the judge is shown."""
    facts = (*task.answer_key.canonical_facts, *task.background_facts)
    shown = {fact.fact_id for fact in facts} | {one.claim_id for one in task.answer_key.disallowed_claims}
    nothing = {"label": "NOT_IN_KEY", "evidence": [], "severity": "none"}
    evidence = [one for one in gold["evidence"] if one in shown] if gold else []
    return {**{name: gold[name] for name in nothing}, "evidence": evidence} if gold and evidence else nothing


def answered(request: Received, change: Callable[[str, Document], Document | None]) -> Scripted:
    """A judge that extracts the gold claims and gives the gold labels, changed; other roles judge by rule."""
    system, user = said(request)
    replies = json.loads(COBRA.read_bytes())["replies"]
    if system.startswith("You split an answer"):
        asked = ExtractorInput.model_validate_json(unwrap(user)[1])
        (reply,) = (one for one in replies if one["text"] == asked.reply)
        changed = [change(request.model, claim) for claim in reply["claims"]]
        claims = [
            {"claim_id": one["claim_id"], "text": one["text"], "type": "factual", "confidence": "high",
             "verifiable": True, "quotes": one["quotes"]}
            for one in changed if one is not None and not asked.left_out
        ]  # fmt: skip
        return Scripted(text=with_canary(json.dumps({"claims": claims}), user))
    if system.startswith("You check claims"):
        known = {claim["text"]: claim for reply in replies for claim in reply["claims"]}
        task = VerifierInput.model_validate_json(unwrap(user)[1])
        verdicts = []
        for seen in task.claims:
            gold = change(request.model, known[seen.text]) if seen.text in known else None
            verdicts.append({"claim_id": seen.claim_id, **by_heart(gold, task), "notes": "by heart"})
        return Scripted(text=with_canary(json.dumps({"verdicts": verdicts}), user))
    return sensible(request)


def unchanged(model: str, claim: Document) -> Document:
    return claim


def checked_by(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[str, Document], Document | None],
    *more: object,
    adjudicator: str | None = None,
) -> JudgeCheck:
    own = own_gold(tmp_path / "own")
    with Loopback(lambda request: answered(request, change)) as server:
        redirect(monkeypatch, server)
        for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
            monkeypatch.delenv(f"{name}_API_KEY")
        if adjudicator:
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
            more = (*more, "--adjudicator-model", adjudicator)
        code, _, err = small_wire_check(tmp_path, own, *more)
    assert code == 0, err
    return read_check(newest(tmp_path / "out"))


def test_judges_that_know_the_gold_set_are_right_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = checked_by(tmp_path, monkeypatch, unchanged)
    for judge in record.judges:
        assert (right(judge), judge.errors) == (record.claims, ())
    whole, extractor = end_to_end(record), record.extractor_measured
    assert extractor is not None
    # What the anchor rejects of the gold claims is judged in its own words, which these judges do not know by heart.
    assert len(whole.errors) == record.claims - right(whole) == extractor.rejected <= 1
    assert whole.same_evidence == right(whole)
    assert record.codes is not None
    assert [(one.gold, one.given) for one in record.codes.replies] == [
        ("accurate_complete", "accurate_complete"),
        ("incorrect", "incorrect"),
    ]


def test_a_claim_that_the_extractor_leaves_out_is_judged_in_its_own_words_or_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second asking gets nothing new, so what nobody extracted is judged as the reply says it."""
    left_out = {"G1", "G3"}
    record = checked_by(tmp_path, monkeypatch, lambda _, claim: None if claim["claim_id"] in left_out else claim)
    whole, extractor = end_to_end(record), record.extractor_measured
    assert extractor is not None and extractor.verbatim > 0
    assert len({error.claim_id for error in whole.errors} - left_out) <= extractor.rejected
    assert left_out & {error.claim_id for error in whole.errors}
    assert {error.given for error in whole.errors} <= {"NOT_IN_KEY", "missed"}
    assert extractor.found == record.claims - sum(error.given == "missed" for error in whole.errors)


def disagree(model: str, claim: Document) -> Document:
    """The second verifier finds nothing in the key."""
    if model == "grok-x":
        return {**claim, "label": "NOT_IN_KEY", "evidence": [], "severity": "none"}
    return claim


def test_verifiers_that_disagree_leave_claims_open_unless_a_third_family_settles_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = checked_by(tmp_path, monkeypatch, disagree, "--judge-model", "xai:grok-x")
    settled = checked_by(
        tmp_path / "again", monkeypatch, disagree, "--judge-model", "xai:grok-x", adjudicator="anthropic:claude-x"
    )
    assert (record.adjudicator, settled.adjudicator) == (None, "anthropic:claude-x")
    panel = record.judges[-1].matrix()
    tied = sum(n for (gold, _), n in panel.items() if gold != "NOT_IN_KEY")
    assert sum(n for (_, given), n in panel.items() if given == "open") == tied
    # One claim is rejected by the anchor and judged in its own words, in which both verifiers find nothing.
    assert sum(n for (_, given), n in end_to_end(record).matrix().items() if given == "open") == tied - 1
    first, second, _ = record.judges
    assert right(first) == record.claims
    assert right(second) == record.claims - tied
    assert not any(given == "open" for _, given in end_to_end(settled).matrix())


def test_json_prints_the_record_itself(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")
    folder, printed = checked(tmp_path / "out", "--split", "dev", "--gold", own, "--json")
    assert JudgeCheck.model_validate_json(printed) == read_check(folder) == read_check(folder / RECORD)
    assert read_check(folder).check_id == folder.name


def test_the_seed_changes_only_the_order_in_which_claims_are_shown(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    options = ("--gold", own, "--split", "dev", "--only", "verifier")
    given = [read_check(checked(tmp_path / str(seed), *options, "--seed", seed)[0]) for seed in (1, 2)]
    assert given[0].plan_sha256 != given[1].plan_sha256
    assert given[0].judges == given[1].judges


# --- resuming, stopping, failing ---


def small_wire_check(tmp_path: Path, own: Path, *more: object) -> tuple[int, str, str]:
    return call(
        "judge-check", "--split", "dev", "--gold", own, "--judge-model", "compatible:llama-3",
        "--out", tmp_path / "out", "--quiet", "--no-probe", *more,
    )  # fmt: skip


def test_a_check_probes_its_judges_only_if_a_call_is_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_gold(tmp_path / "own")
    arguments = ("judge-check", "--split", "dev", "--gold", own, "--judge-model", "compatible:llama-3", "--quiet")
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        assert call(*arguments, "--out", tmp_path / "out")[0] == 0
        folder = newest(tmp_path / "out")
        asked = server.count
        assert asked == read_check(folder).calls + 1
        (folder / RECORD).unlink()
        assert call(*arguments, "--resume", folder)[0] == 0
        assert server.count == asked


def test_resume_calls_nothing_again_and_gives_the_same_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own")
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        code, printed, err = small_wire_check(tmp_path, own)
        assert code == 0, err
        folder = newest(tmp_path / "out")
        calls, before = server.count, {path.name: path.read_bytes() for path in folder.iterdir()}
        assert calls == read_check(folder).calls
        code, again, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert (code, again) == (0, printed), err
        assert before[RECORD] == (folder / RECORD).read_bytes()
        assert before[storage.MANIFEST] == (folder / storage.MANIFEST).read_bytes()
        (folder / RECORD).unlink()
        code, again, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert (code, again) == (0, printed), err
        assert before[RECORD] == (folder / RECORD).read_bytes()
        assert server.count == calls
    assert list((tmp_path / "out").iterdir()) == [folder]


def stopper() -> Callable[[Received], Scripted]:
    """A judge by rule that gets one Ctrl-C at its second call."""
    seen: list[str] = []

    def script(request: Received) -> Scripted:
        seen.append(request.model)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return sensible(request, delay_s=0.3 if len(seen) in (3, 4) else 0.0)  # these two are in flight at the stop

    return script


@pytest.mark.slow
def test_a_stopped_check_leaves_no_record_and_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        code, _, err = small_wire_check(tmp_path, own)
        assert code == 4, err
        folder = newest(tmp_path / "out")
        assert not (folder / RECORD).exists()
        code, _, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert code == 0, err
        journaled = len(re.findall(rb'"outcome":"ok"', (folder / storage.JOURNAL).read_bytes()))
        assert journaled == read_check(folder).calls
    plain, _ = checked(tmp_path / "plain", "--split", "dev", "--gold", own, "--judge-model", "offline:rules")
    assert end_to_end(read_check(folder)).replies == end_to_end(read_check(plain)).replies
    assert read_check(folder).judges[-1].replies == read_check(plain).judges[-1].replies


def test_a_stopped_check_finishes_the_calls_in_flight_so_that_none_is_paid_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        code, _, err = small_wire_check(tmp_path, own)
        assert code == 4, err
        folder = newest(tmp_path / "out")
        code, _, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert code == 0, err
        assert server.count == read_check(folder).calls


def test_a_stopped_check_says_how_to_resume_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        _, _, err = small_wire_check(tmp_path, own)
    assert f"--resume {newest(tmp_path / 'out')}" in err, err


def test_a_dev_check_is_resumed_without_giving_its_split_again(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    record = (folder / RECORD).read_bytes()
    code, again, err = call("judge-check", "--resume", folder, "--worst", 20, "--quiet")
    assert (code, again) == (0, printed), err
    assert (folder / RECORD).read_bytes() == record


@each_case(
    ("flags", "kept"),
    [
        (("--split", "held_out"), "dev"),
        (("--isolation", "claim"), "flagged"),
        (("--only", "verifier"), "both"),
        (("--limit", "3"), "all"),
        (("--seed", "7"), "42"),
        (("--timeout", "5"), "120"),
        (("--judges", "3"), "2"),
        (("--judge-max-tokens", "900"), "16000"),
        (("--judge-model", "openai:gpt-4.1"), "offline:rules offline:rules"),
        (("--adjudicator-model", "openai:gpt-4.1"), "none"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_check_is_not_resumed_with_other_settings(flags: tuple[str, str], kept: str, dev: tuple[Path, str]) -> None:
    flag, value = flags
    folder, _ = dev
    code, out, err = call("judge-check", "--resume", folder, flag, value, "--quiet")
    assert (code, out) == (2, "")
    assert f"was started with {flag} {kept}" in err
    assert f"cannot be resumed with {flag} {value}" in err
    assert err.count("\n") == 1


def test_a_check_is_not_resumed_for_another_target(dev: tuple[Path, str]) -> None:
    code, out, err = call("judge-check", "--resume", dev[0], "--target", "fake:careful", "--quiet")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Leave out --target." in err


def test_a_check_is_resumed_with_the_settings_it_was_started_with(dev: tuple[Path, str]) -> None:
    settings = (
        "--split", "dev", "--isolation", "flagged", "--seed", 42, "--timeout", 120, "--judges", 2,
        "--judge-max-tokens", 16000, "--judge-model", "offline:rules", "--adjudicator-model", "none",
    )  # fmt: skip
    code, _, err = call("judge-check", "--resume", dev[0], *settings, "--quiet")
    assert code == 0, err


def test_a_judge_s_failure_is_counted_and_is_not_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own")
    text = json.loads((own / "own.json").read_bytes())["replies"][0]["claims"][1]["quotes"][0]

    def script(request: Received) -> Scripted:
        system, user = said(request)
        if system.startswith("You check claims") and text in user:
            return Scripted(text="I would rather not say.")
        return sensible(request)

    with Loopback(script) as server:
        redirect(monkeypatch, server)
        code, printed, err = small_wire_check(tmp_path, own, "--only", "verifier")
    assert code == 0, err
    record = read_check(newest(tmp_path / "out"))
    assert [failure.split(":")[0] for failure in record.failures] == ["cobra-1", "cobra-1"]
    assert "; 2 failures:\n  cobra-1: judge_1, gold claims: no usable answer after 3 asks: " in printed
    claims = json.loads((own / "own.json").read_bytes())["replies"][0]["claims"]
    for judge in record.judges:
        lost = [error for error in judge.errors if error.given == "open"]
        assert {error.claim_id for error in lost} == {one["claim_id"] for one in claims}
        assert {error.given_reason for error in lost} == {"no usable verdict"}
        assert total(judge) == record.claims  # a claim without a verdict stays in the denominator


def test_a_reply_whose_extractor_fails_is_open_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own", replies=1)

    def script(request: Received) -> Scripted:
        return Scripted(text="No.") if said(request)[0].startswith("You split an answer") else sensible(request)

    with Loopback(script) as server:
        redirect(monkeypatch, server)
        code, _, err = small_wire_check(tmp_path, own, "--only", "end-to-end")
    assert code == 0, err
    record = read_check(newest(tmp_path / "out"))
    assert {given for _, given in end_to_end(record).matrix()} == {"open"}
    assert len(record.failures) == 1 and record.failures[0].startswith("cobra-1: extractor")


def test_a_check_of_another_release_is_refused_in_one_sentence(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own", replies=1)
    folder, _ = checked(tmp_path / "out", "--split", "dev", "--gold", own)
    kept: dict[str, Document] = {}
    for name in (RECORD, storage.MANIFEST):
        document = json.loads((folder / name).read_bytes())
        assert document["format"] == CHECK_FORMAT == 3
        kept[name] = document
    for written, release in {
        None: "0.2, which measured verifiers on gold claims alone",
        2: "0.3, whose gold set knew no library of facts",
        4: "a later one",
    }.items():
        for name, document in kept.items():
            older = {key: value for key, value in document.items() if key != "format"}
            text = json.dumps(older if written is None else {**older, "format": written})
            (folder / name).write_text(text, encoding="utf-8")
        code, _, err = call("judge-check", "--resume", folder, "--gold", own, "--quiet")
        assert (code, err.count("\n")) == (2, 1)
        assert f"release ({release})" in err
        with pytest.raises(InputError, match=re.escape(release)):
            read_check(folder)
    (folder / RECORD).write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="is not a judge check"):
        read_check(folder)


def test_a_check_is_not_resumed_on_a_different_gold_set(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own", replies=1)
    folder, _ = checked(tmp_path / "out", "--split", "dev", "--gold", own)
    before = (folder / RECORD).read_bytes()
    shutil.rmtree(own)
    other = own_gold(tmp_path / "own", lambda document: document.update(note="Another."), replies=1)
    code, _, err = call("judge-check", "--split", "dev", "--gold", other, "--resume", folder, "--quiet")
    assert code == 2
    assert err == f"medicare-eval: {folder} was started on a different gold set. Start a new check.\n"
    assert before == (folder / RECORD).read_bytes()


# --- bad input ---


def first_reply(document: Document) -> Document:
    reply: Document = document["replies"][0]
    return reply


def bad_quote(document: Document) -> None:
    first_reply(document)["claims"][0]["quotes"] = ["The reply never said this."]


def unknown_scenario(document: Document) -> None:
    document["scenario_id"] = "no_such_scenario"


def unknown_label(document: Document) -> None:
    first_reply(document)["claims"][0]["label"] = "MAYBE"


def unknown_turn(document: Document) -> None:
    first_reply(document)["turn_id"] = "Q99"


def unknown_variant(document: Document) -> None:
    first_reply(document)["variant"] = "no_such_variant"


def unknown_evidence(document: Document) -> None:
    first_reply(document)["claims"][0]["evidence"] = ["F99"]


def same_reply_id(document: Document) -> None:
    document["replies"][1]["reply_id"] = first_reply(document)["reply_id"]


def same_claim_id(document: Document) -> None:
    first_reply(document)["claims"][1]["claim_id"] = first_reply(document)["claims"][0]["claim_id"]


@each_case(
    ("change", "printed"),
    [
        (bad_quote, "cobra-1 G1: a quote is not in the reply"),
        (unknown_scenario, "field scenario_id: there is no scenario 'no_such_scenario' in the bank."),
        (unknown_label, "field replies[0].claims[0].label: 'MAYBE' is not allowed"),
        (unknown_turn, "cobra-1: the scenario has no turn 'Q99'."),
        (unknown_variant, "cobra-1: the scenario has no variant 'no_such_variant'."),
        (unknown_evidence, "cobra-1 G1 cites ['F99'], which are not ids in the answer key."),
        (same_reply_id, "reply_id 'cobra-1' is used more than once in the gold set."),
        (same_claim_id, "cobra-1: claim_id 'G1' is used more than once."),
    ],
)
def test_a_gold_set_with_a_fault_is_rejected_in_one_sentence(
    change: Callable[[Document], None], printed: str, tmp_path: Path
) -> None:
    own = own_gold(tmp_path / "own", change)
    code, out, err = call("judge-check", "--split", "dev", "--gold", own, "--out", tmp_path / "out", "--quiet")
    assert (code, out) == (2, "")
    assert str(own / "own.json") in err
    assert printed in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@each_case(
    ("arguments", "code", "printed"),
    [
        (
            ("--gold", "/no/such/folder"),
            2,
            "/no/such/folder contains no gold files. Give a folder of .json files with --gold.",
        ),
        (("--resume", "/no/such/check"), 2, "cannot be read"),
        (("--judge-model", "fake:careful"), 3, "not a judge"),
        (("--judge-model", "offline:rephrase"), 3, "judges nothing"),
        (("--judge-model", "anthropic:claude-3-opus"), 3, "retired"),
        (
            ("--judge-model", "compatible:a", "--adjudicator-model", "compatible:a"),
            3,
            "--adjudicator-model: compatible:a cannot settle ties of compatible:a",
        ),
        (("--split", "both"), 2, "invalid choice"),
    ],
)
def test_a_check_that_cannot_run_is_rejected_before_anything_is_written(
    arguments: tuple[str, ...], code: int, printed: str, tmp_path: Path
) -> None:
    found, out, err = call("judge-check", *arguments, "--out", tmp_path / "out", "--quiet")
    assert (found, out) == (code, "")
    assert printed in err
    assert not (tmp_path / "out").exists()


def test_a_gold_set_of_two_years_is_refused(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")
    document = json.loads((own / "own.json").read_bytes())
    document["plan_year"] = 2025
    for number, reply in enumerate(document["replies"]):
        reply.update(reply_id=f"earlier-{number}", claims=[])
    (own / "earlier.json").write_text(json.dumps(document), encoding="utf-8")
    code, _, err = call("judge-check", "--split", "dev", "--gold", own, "--out", tmp_path / "out", "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert "has files of several plan years (2025, 2026). Check each year by itself." in err


def test_a_claim_in_view_shows_judges_neither_label_nor_reason(gold: dict[Split, Gold]) -> None:
    assert set(ClaimInView.model_fields) == {"claim_id", "text", "quotes"}
    for item in gold["dev"].items:
        assert [claim.claim_id for claim in item.claims] == [claim.claim_id for claim in item.reply.claims]


# --- called from Python ---


def test_check_judges_returns_the_record_and_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = own_gold(tmp_path / "own")
    seen: list[RunProgress] = []
    options = CheckOptions(split="dev", gold=own, judges=OFFLINE, out=tmp_path / "out")
    run = check_judges(options, progress=seen.append)
    assert run.record == read_check(run.record_path)
    assert [judge.name for judge in run.record.judges] == ["judge_1", "judge_2", PANEL]
    assert (run.folder.parent, run.manifest.check_id) == (tmp_path / "out", run.folder.name)
    assert (seen[0].trials, seen[0].trials_done, seen[0].finished) == (2, 0, False)
    assert (seen[-1].trials_done, seen[-1].calls, seen[-1].finished) == (2, run.record.calls, True)
    assert capsys.readouterr() == ("", "")


def test_check_judges_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")

    async def notebook() -> tuple[JudgeCheck, JudgeCheck]:
        options = CheckOptions(split="dev", gold=own, judges=OFFLINE, out=tmp_path / "out")
        awaited = await check_judges_async(options)
        return check_judges(options).record, awaited.record

    waited, awaited = asyncio.run(notebook())
    assert waited.judges == awaited.judges
    assert waited.check_id != awaited.check_id


def test_a_check_stopped_from_python_names_the_folder_to_resume(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")

    async def stopped() -> None:
        stop = Stop()
        stop.ask()
        await check_judges_async(CheckOptions(split="dev", gold=own, judges=OFFLINE, out=tmp_path / "out"), stop=stop)

    with pytest.raises(IncompleteRun, match="To continue: medicare-eval judge-check --resume ") as error:
        asyncio.run(stopped())
    folder = newest(tmp_path / "out")
    assert error.value.run == folder
    assert check_judges(CheckOptions(gold=own, resume=folder)).record.replies == 2


@pytest.mark.slow
def test_the_example_of_check_judges_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder().find(check_judges, globs={**vars(check_module)})
    assert len(example.examples) == 3
    assert doctest.DocTestRunner().run(example).failed == 0
