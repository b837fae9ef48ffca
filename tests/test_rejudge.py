"""`rejudge`, `--keep-claims`, `--judge-repeats`, and `compare` of two judgings of the same transcripts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.adapters.local_adapters import FakeAdapter
from src.findings.compare_judges import compare_judges, same_transcripts
from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.offline import rules
from src.schemas import VerifierInput
from src.text.fence import unwrap
from tests.cases import each_case
from tests.helpers import with_canary
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ONE, SCENARIOS, call, copied_run, make_run, newest, replays, resumes, shared_run, verifies
from tests.test_wire_runs import redirect, results, said, sensible

TWO = ("--scenario", ONE, "--scenario", SCENARIOS / "scenario_003.json")
JUDGE = "openai:gpt-4.1"
"""A judge over the wire: it judges by the offline rules, except where a test has it do otherwise."""


def again(old: Path, out: Path, *arguments: object) -> Path:
    """The old run's transcripts judged again: the new run's folder."""
    code, _, err = call("rejudge", old, *arguments, "--out", out, "--quiet")
    assert code == 0, err
    return newest(out)


def kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def calls(folder: Path, stage: str) -> dict[str, dict[str, Any]]:
    """The journal's calls of one stage, without their places in the chain."""
    lines = (folder / storage.JOURNAL).read_text(encoding="utf-8").splitlines()
    documents = [{k: v for k, v in json.loads(line).items() if k != "chain"} for line in lines]
    return {one["call"]: one for one in documents if "call" in one and one["call"].split("|")[1] == stage}


def labels(folder: Path) -> dict[tuple[str, str], str | None]:
    return {
        (one["trial_id"], claim["claim_id"]): claim["label"] for one in results(folder) for claim in one["final_claims"]
    }


def verdicts(request: Received, label: Mapping[str, str] | None = None) -> Scripted:
    """A verifier's answer by rule, with each label put for another; NOT_IN_KEY cites nothing and keeps the rules."""
    _, user = said(request)
    answer = rules.verify(VerifierInput.model_validate_json(unwrap(user)[1])).model_dump(mode="json")
    for one in answer["verdicts"]:
        if (label or {}).get(one["label"]) == "NOT_IN_KEY":
            one.update(label="NOT_IN_KEY", evidence=[], severity="none", notes="Nothing in the key on this.")
    return Scripted(text=with_canary(json.dumps(answer), user))


def is_verifier(request: Received) -> bool:
    return said(request)[0].startswith("You check claims")


def doubter(request: Received) -> Scripted:
    """A judge that never finds support."""
    return verdicts(request, {"SUPPORTED": "NOT_IN_KEY"}) if is_verifier(request) else sensible(request)


def moody(request: Received) -> Scripted:
    """A judge that finds support with even seeds only."""
    if is_verifier(request):
        return verdicts(request, {"SUPPORTED": "NOT_IN_KEY"} if request.body["seed"] % 2 else {})
    return sensible(request)


@pytest.fixture(scope="module")
def old() -> Path:
    return shared_run(*TWO, "--target", "fake:partial", "--target", "fake:careful")


@pytest.fixture
def wired(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        yield server


# --- judging again ---


@each_case("flags", [(), ("--keep-claims",)])
def test_rejudge_leaves_the_old_run_unchanged_and_the_new_one_verifies(
    flags: tuple[str, ...], old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a target was asked again")

    before = kept(old)
    monkeypatch.setattr(FakeAdapter, "complete", refuse)
    new = again(old, tmp_path, *flags)
    assert kept(old) == before
    verifies(new)
    replays(new)
    assert calls(new, "target") == calls(old, "target")
    manifest = storage.read_manifest(new)
    assert manifest.transcripts
    assert manifest.transcripts.run_id == old.name
    assert ("extractor" in manifest.transcripts.stages) == bool(flags)
    assert labels(new) == labels(old)  # the same judge by rule
    assert [one["conversation"] for one in results(new)] == [one["conversation"] for one in results(old)]


def test_a_run_judged_again_replays_and_verifies_without_the_old_one(tmp_path: Path) -> None:
    first = copied_run(tmp_path)
    new = again(first, tmp_path)
    shutil.rmtree(first)
    verifies(new)
    replays(new)
    code, _, err = call("report", new)
    assert code == 0, err
    report = (new / "report" / "report.md").read_text(encoding="utf-8")
    assert first.name in report.replace("\\", "")


def test_a_real_target_is_not_called_again_and_its_judge_is_not_of_its_family(wired: Loopback, tmp_path: Path) -> None:
    first = make_run(
        tmp_path / "old", "--scenario", ONE, "--target", "openai:gpt-4.1", "--judge-model", "offline:rules"
    )
    asked = wired.count
    assert asked
    new = again(first, tmp_path / "new", "--judge-model", "offline:rules")
    assert wired.count == asked
    assert calls(new, "target") == calls(first, "target")
    code, _, err = call(
        "rejudge", first, "--judge-model", "openai:gpt-4.1-mini", "--out", tmp_path / "families", "--quiet"
    )
    assert code == 3
    assert "openai:gpt-4.1-mini" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "families").exists()
    assert wired.count == asked


def test_kept_claims_are_the_old_ones_and_their_extractor_is_not_asked(
    wired: Loopback, old: Path, tmp_path: Path
) -> None:
    new = again(old, tmp_path / "kept", "--keep-claims", "--judge-model", JUDGE)
    assert [one["claims"] for one in results(new)] == [one["claims"] for one in results(old)]
    assert calls(new, "extractor") == calls(old, "extractor")
    assert not any(said(request)[0].startswith("You split an answer") for request in wired.requests)
    assert {one["judged_by"]["extractor"] for one in results(new)} == {"offline:rules"}
    assert {name for one in results(new) for name in one["judged_by"]["verifiers"].values()} == {JUDGE}
    verifies(new)
    replays(new)
    afresh = again(old, tmp_path / "afresh", "--judge-model", JUDGE)
    assert any(said(request)[0].startswith("You split an answer") for request in wired.requests)
    assert {one["judged_by"]["extractor"] for one in results(afresh)} == {JUDGE}


def test_a_run_judged_again_can_be_judged_once_more(tmp_path: Path) -> None:
    first = shared_run()
    third = again(again(first, tmp_path / "2"), tmp_path / "3")
    verifies(third)
    assert calls(third, "target") == calls(first, "target")
    assert labels(third) == labels(first)


@each_case(("isolation", "sample"), [("claim", 0.0), ("flagged", 0.1), ("reply", 0.0)])
def test_a_rejudging_may_divide_claims_into_calls_otherwise(
    isolation: str, sample: float, old: Path, tmp_path: Path
) -> None:
    new = again(old, tmp_path, "--keep-claims", "--isolation", isolation)
    plan = storage.read_manifest(new).plan
    assert (plan.isolation, plan.audit_sample) == (isolation, sample)
    assert labels(new) == labels(old), "the rules judge each claim by itself"
    asked = {name: len(calls(folder, "verifier")) for name, folder in (("old", old), ("new", new))}
    assert {
        "claim": asked["new"] > asked["old"],
        "flagged": asked["new"] == asked["old"],
        "reply": asked["new"] < asked["old"],
    }[isolation]
    verifies(new)
    replays(new)


@each_case("order", [("offline:rules", JUDGE), (JUDGE, "offline:rules")])
def test_ties_stay_open_where_no_third_family_judges(
    order: tuple[str, str], old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(doubter) as server:
        redirect(monkeypatch, server)
        new = again(old, tmp_path, "--keep-claims", "--judge-model", order[0], "--judge-model", order[1])
    assert storage.read_manifest(new).plan.adjudicator is None
    assert not calls(new, "adjudicator")
    before, after = labels(old), labels(new)
    assert {name for name, label in after.items() if label is None} == {
        n for n, v in before.items() if v == "SUPPORTED"
    }
    assert all(one["judged_by"]["adjudicator"] is None for one in results(new))
    kinds = {reason["kind"] for one in results(new) for reason in one["review_reasons"]}
    assert "open_claims" in kinds
    verifies(new)
    replays(new)


# --- what is refused ---


def test_a_verifier_never_settles_its_own_ties(old: Path, tmp_path: Path) -> None:
    code, out, err = call(
        "rejudge", old, "--adjudicator-model", "offline:rules", "--out", tmp_path / "new", "--quiet"
    )  # fmt: skip
    assert (code, out) == (3, "")
    assert err.startswith("medicare-eval: --adjudicator-model: offline:rules cannot settle ties of offline:rules ")
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_run_that_is_incomplete_or_missing_is_not_judged_again(tmp_path: Path) -> None:
    first = copied_run(tmp_path / "old")
    (first / storage.SEAL).unlink()
    code, _, err = call("rejudge", first, "--out", tmp_path / "new", "--quiet")
    assert code == 4
    assert f"resume {first}" in err
    code, _, err = call("rejudge", tmp_path / "nowhere", "--out", tmp_path / "new", "--quiet")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_run_whose_journal_was_changed_is_not_judged_again(tmp_path: Path) -> None:
    first = copied_run(tmp_path / "old")
    journal = first / storage.JOURNAL
    journal.write_bytes(journal.read_bytes().replace(b"Medicare", b"Medicaid"))
    code, _, err = call("rejudge", first, "--out", tmp_path / "new", "--quiet")
    assert code == 5
    assert len(err.strip().splitlines()) == 1


def unfinished(tmp_path: Path) -> tuple[Path, Path]:
    """A run, and one that judges it again and was stopped right before its seal and results."""
    first = copied_run(tmp_path)
    new = again(first, tmp_path)
    (new / storage.SEAL).unlink()
    (new / storage.RESULTS).unlink()
    return first, new


def test_an_interrupted_rejudge_is_resumed_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, new = unfinished(tmp_path)
    journal = (new / storage.JOURNAL).read_bytes()
    monkeypatch.setattr(FakeAdapter, "complete", None)
    resumes(new)
    assert (new / storage.JOURNAL).read_bytes() == journal


@each_case("name", [storage.JOURNAL, storage.MANIFEST])
def test_resume_of_a_rejudge_refuses_an_old_run_that_was_changed_or_is_gone(name: str, tmp_path: Path) -> None:
    first, new = unfinished(tmp_path)
    path = first / name
    path.write_bytes(path.read_bytes().replace(b"2026", b"2027", 1))
    code, _, err = call("resume", new, "--quiet")
    assert code == 5
    assert f"{first} is not, or is no longer, the run" in err
    shutil.rmtree(first)
    code, _, err = call("resume", new, "--quiet")
    assert code == 2
    assert str(first) in err


def test_a_rejudge_into_another_folder_can_be_resumed(tmp_path: Path) -> None:
    first = copied_run(tmp_path / "old")
    new = again(first, tmp_path / "new")
    (new / storage.SEAL).unlink()
    resumes(new)


def test_rejudge_records_the_old_run_s_folder_name_even_if_given_as_a_dot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = copied_run(tmp_path / "old")
    monkeypatch.chdir(first)
    new = again(Path(), tmp_path / "new")
    transcripts = storage.read_manifest(new).transcripts
    assert transcripts
    assert transcripts.run_id == first.name


@each_case(
    ("flags", "option"),
    [
        (("--judges", "1"), "--judges"),
        (("--isolation", "turn"), "--isolation"),
        (("--judge-max-tokens", "0"), "--judge-max-tokens"),
        (("--judge-repeats", "-1"), "--judge-repeats"),
        (("--judge-repeats", "1000"), "--judge-repeats"),
        (("--judge-repeats", "1", "--judge-sample", "0"), "--judge-sample"),
        (("--judge-repeats", "1", "--judge-sample", "1.5"), "--judge-sample"),
    ],
)
def test_rejudge_refuses_impossible_options_before_anything_is_written(
    flags: tuple[str, ...], option: str, old: Path, tmp_path: Path
) -> None:
    code, _, err = call("rejudge", old, *flags, "--out", tmp_path / "new", "--quiet")
    assert code == 2
    assert f"{option}: " in err
    assert flags[-1] in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_rejudge_refuses_a_fake_target_as_judge(old: Path, tmp_path: Path) -> None:
    code, _, err = call("rejudge", old, "--judge-model", "fake:wrong", "--out", tmp_path / "new", "--quiet")
    assert code == 3
    assert "fake:wrong cannot judge" in err
    assert not (tmp_path / "new").exists()


# --- comparing two judgings ---


@pytest.fixture(scope="module")
def doubted(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Loopback(doubter) as server, pytest.MonkeyPatch.context() as monkeypatch:
        redirect(monkeypatch, server)
        return again(old, tmp_path_factory.mktemp("doubted"), "--keep-claims", "--judge-model", JUDGE)


def test_compare_lists_each_changed_claim_with_both_reasons(old: Path, doubted: Path) -> None:
    assert same_transcripts(old, doubted)
    assert same_transcripts(doubted, old)
    before, after = labels(old), labels(doubted)
    assert set(before) == set(after)
    differing = {name for name in before if before[name] != after[name]}
    assert differing == {name for name, label in before.items() if label == "SUPPORTED"}
    found = compare_judges(old, doubted)
    assert found.trials == len(results(old))
    assert (found.gone, found.new) == (0, 0)
    assert len(found.changed) == len(differing) > 0
    assert found.same == len(before) - len(differing)
    assert found.moves == Counter((before[name], after[name]) for name in before)
    code, out, err = call("compare", old, doubted, "--show", 1000)
    assert code == 0, err
    assert f"{len(before)} claims in both runs: {found.same} labels same, {len(differing)} changed." in out
    assert out.count("SUPPORTED -> NOT_IN_KEY") == len(differing)
    for change in found.changed:
        assert len(change.before.reasons) == len(change.after.reasons) == 2
        assert all("SUPPORTED, " in reason for reason in change.before.reasons)
        assert all("NOT_IN_KEY, Nothing in the key on this." in reason for reason in change.after.reasons)
        assert change.before.evidence
        assert change.after.evidence == ()
        said_ = next(one for one in results(old) if one["trial_id"] == change.trial_id)["conversation"]
        reply = next(one["reply"] for one in said_ if one["turn_id"] == change.turn_id)
        assert all(part in reply for part in change.quote.split(" … "))
        for reason in (*change.before.reasons, *change.after.reasons):
            assert " ".join(reason.split())[:60] in out
    assert call("compare", old, doubted, "--show", 0)[1].count("SUPPORTED -> NOT_IN_KEY") == 0


def test_comparing_two_judgings_in_reverse_reverses_every_change(old: Path, doubted: Path) -> None:
    there, back = compare_judges(old, doubted), compare_judges(doubted, old)
    assert back.moves == Counter({(b, a): n for (a, b), n in there.moves.items()})
    assert back.same == there.same
    assert [(one.trial_id, one.quote) for one in back.changed] == [(one.trial_id, one.quote) for one in there.changed]


def test_two_judgings_by_the_same_rules_do_not_differ(old: Path, tmp_path: Path) -> None:
    new = again(old, tmp_path)
    found = compare_judges(old, new)
    assert (found.changed, found.gone, found.new) == ([], 0, 0)
    assert found.same == len(labels(old))
    assert not found.codes_changed


def test_compare_prints_two_judgings_as_json(old: Path, doubted: Path) -> None:
    code, out, err = call("compare", old, doubted, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["trials"] == len(results(old))
    assert len(found["changed"]) == len(compare_judges(old, doubted).changed)


def test_other_transcripts_are_not_compared_as_judgings(old: Path) -> None:
    other = shared_run("--scenario", ONE, "--target", "fake:wrong")
    assert not same_transcripts(old, other)
    code, _, err = call("compare", old, other, "--by", "judges")
    assert code == 2
    assert "same transcripts" in err
    assert len(err.strip().splitlines()) == 1


# --- judges asked again: their noise ---


def test_a_rule_based_judge_has_no_noise() -> None:
    folder = shared_run(*TWO, "--target", "fake:partial", "--judge-repeats", 2, "--judge-sample", 1)
    plain = shared_run(*TWO, "--target", "fake:partial")
    assert labels(folder) == labels(plain)
    for one in results(folder):
        assert set(one["repeat_verdicts"]) == {"judge_1", "judge_2"}
        for judge, repeats in one["repeat_verdicts"].items():
            assert len(repeats) == 2
            first = {verdict["claim_id"]: verdict["label"] for verdict in one["verdicts"][judge]}
            assert all({v["claim_id"]: v["label"] for v in repeat} == first for repeat in repeats)
    found = judging(gather(folder))
    assert found.noise_floor == 0
    assert {one.changed.n for one in found.noise} == {2 * len(labels(folder))}
    assert judging(gather(plain)).noise_floor is None
    verifies(folder)
    replays(folder)


@pytest.mark.slow
def test_a_judge_that_changes_its_mind_with_the_seed_has_a_noise_floor(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(moody) as server:
        redirect(monkeypatch, server)
        new = again(old, tmp_path, "--judge-model", JUDGE, "--judge-repeats", 3, "--judge-sample", 1)
    found = judging(gather(new))
    assert found.noise_floor is not None
    assert 0 < found.noise_floor < 1
    changed: Counter[str] = Counter()
    for one in results(new):
        for judge, repeats in one["repeat_verdicts"].items():
            first = {verdict["claim_id"]: verdict["label"] for verdict in one["verdicts"][judge]}
            changed[judge] += sum(v["label"] != first[v["claim_id"]] for repeat in repeats for v in repeat)
    assert {one.judge: one.changed.count for one in found.noise} == dict(changed)
    verifies(new)
    replays(new)
    code, _, err = call("report", new, "--out", tmp_path / "report")
    assert code == 0, err
    report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "Noise floor" in report


def test_only_the_sample_is_judged_again_and_it_is_drawn_by_the_seed(old: Path, tmp_path: Path) -> None:
    runs = [again(old, tmp_path / name, "--judge-repeats", 1, "--judge-sample", 0.5) for name in "ab"]
    drawn = [{one["trial_id"] for one in results(run) if one.get("repeat_verdicts")} for run in runs]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) < len(results(old))
    assert labels(runs[0]) == labels(old)


# --- metamorphic: the order and number of judges change nothing ---


def test_the_order_of_judges_changes_no_final_label(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(doubter) as server:
        redirect(monkeypatch, server)
        found = [
            again(
                old, tmp_path / str(place), "--keep-claims", "--adjudicator-model", "compatible:llama-3",
                "--judge-model", first, "--judge-model", second,
            )
            for place, (first, second) in enumerate([("offline:rules", JUDGE), (JUDGE, "offline:rules")])
        ]  # fmt: skip
    assert labels(found[0]) == labels(found[1])
    decided = {claim["decided_by"] for run in found for one in results(run) for claim in one["final_claims"]}
    assert decided > {"unanimous"}


@each_case("judges", [3, 5])
def test_more_judges_by_rule_change_no_final_label(judges: int, old: Path, tmp_path: Path) -> None:
    new = again(old, tmp_path, "--judges", judges)
    assert labels(new) == labels(old)
    assert all(len(one["judged_by"]["verifiers"]) == judges for one in results(new))
