"""The guides (docs/scoring.md, judging.md, authoring.md and the decisions) say what the code does.

Outputs marked `<!-- output: ... -->` are checked by `tests.docs`. Here: the worked example of authoring.md, which needs
files that the guide itself shows, numbers in tables, error messages, and paths.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from src.adapters import local_adapters
from src.agents.scorer import ScoredClaim, score
from src.findings.judge_agreement import SEED as REPORT_SEED
from src.findings.read_run import REVIEWS_SHOWN
from src.judge_check.gold import load_gold
from src.planning import judges
from src.planning.library import Library
from src.planning.rubrics import load_rubric
from src.planning.scenario_files import read_scenario
from src.records.judge_check import Split
from src.schemas import Label
from src.scoring.points import AskedConversation, missing_points, owed_points
from src.stats.agreement import cohen_kappa, krippendorff_alpha, percent_agreement
from src.stats.confusion import (
    DRAWS,
    LEAST_GOLD_CLAIMS,
    LEAST_GOLD_REPLIES,
    MOST_AMPLIFIED,
    JudgedGold,
    Labels,
    corrected_accuracy,
    true_counts,
)
from src.stats.confusion import table as label_table
from src.storage import read_manifest
from src.store.package_data import DataKind, data_folder
from tests.cases import each_case
from tests.docs import fits
from tests.helpers import ROOT
from tests.runs import call
from tests.test_golden_codes import golden
from tests.test_lint import Change, Document, asks, field, good, persona, second_fact, turn, variant, without

DOCS = ROOT / "docs"
GUIDES = [
    DOCS / "scoring.md",
    DOCS / "judging.md",
    DOCS / "authoring.md",
    DOCS / "library.md",
    DOCS / "plan_years.md",
    DOCS / "states.md",
    *sorted((DOCS / "decisions").glob("*.md")),
]
RUBRIC = load_rubric("v1").rubric
LABELS: tuple[Label, Label, Label] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def block(text: str, marker: str) -> str:
    """The fenced block after a marker."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)\n?```\n", text, re.DOTALL)
    assert found, marker
    return found[1]


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the table whose header line starts so."""
    lines = text[text.index(f"\n| {heading}") + 1 :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" |")])
    assert rows, heading
    return rows


# authoring.md: the worked example


EXAMPLE_OUTPUT = re.compile(r"<!-- example output: (.+?) -->\n```\n(.*?)\n?```\n", re.DOTALL)
EXAMPLE_FILE = re.compile(r"<!-- example file: (.+?) -->\n```json\n(.*?)\n```\n", re.DOTALL)
WITHOUT_REPLIES = "medicare-eval run --scenario drafts/part_b_basics.json --target fake:careful"
"""The one example that is run before the canned replies are written."""


@pytest.fixture
def example_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the guide shows; canned replies are read from it, not from the project."""

    def folder_of(kind: DataKind) -> Path:
        return tmp_path / "fakes" if kind == "fakes" else data_folder(kind)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for module in (local_adapters, judges):
        monkeypatch.setattr(module, "data_folder", folder_of)
    for name, text in EXAMPLE_FILE.findall(text_of("authoring.md")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def printed(command: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    words = shlex.split(command)
    with monkeypatch.context() as patch:
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            patch.setenv(name, value)
        assert words.pop(0) == "medicare-eval"
        _, out, err = call(*words)
    return [line.rstrip() for line in (out or err).rstrip("\n").splitlines()]


def test_every_example_output_is_what_the_command_prints(example_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = dict(EXAMPLE_OUTPUT.findall(text_of("authoring.md")))
    assert len(shown) == 8
    for command, text in shown.items():
        if command != WITHOUT_REPLIES:
            lines = printed(command, monkeypatch)
            assert fits(tuple(text.splitlines()), lines), "\n".join([command, *lines])
    (example_folder / "fakes" / "part_b_basics.json").unlink()
    lines = printed(WITHOUT_REPLIES, monkeypatch)
    assert fits(tuple(shown[WITHOUT_REPLIES].splitlines()), lines), "\n".join(lines)


@pytest.mark.usefixtures("example_folder")
def test_the_wording_file_of_the_example_is_accepted() -> None:
    arguments = ("--scenario", "drafts/part_b_basics.json", "--target", "fake:careful", "--wording", "wording.json")
    code, _, err = call("run", *arguments, "--out", "worded", "--quiet")
    assert code == 0, err
    (folder,) = Path("worded").iterdir()
    wording = read_manifest(folder).plan.wording
    assert wording is not None
    assert (wording.title, wording.turns) == ("Shorter wording, for a trial", {"part_b_basics": ("Q1",)})


def test_the_figure_shown_is_the_one_in_the_facts_file() -> None:
    shown = json.loads("{" + block(text_of("authoring.md"), "example: figure") + "}")
    stored = json.loads((ROOT / "facts" / "2026.json").read_text(encoding="utf-8"))["figures"]
    assert shown == {"part_b_premium": stored["part_b_premium"]}


def test_the_figure_shown_as_not_published_is_the_one_in_the_facts_file() -> None:
    shown = json.loads("{" + block(text_of("plan_years.md"), "example: unpublished figure") + "}")
    figures = json.loads((ROOT / "facts" / "2027.json").read_text(encoding="utf-8"))["figures"]
    assert shown == {"part_b_premium": figures["part_b_premium"]}
    published = sum(one.get("status") != "not_published" for one in figures.values())
    assert f"{published} of the {len(figures)} figures are published" in text_of("plan_years.md")


def test_the_guide_to_the_states_names_every_state_and_shows_a_fact_of_one() -> None:
    text = text_of("states.md")
    files = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "facts" / "states").glob("*.json"))
    ]
    named = [state for row in table(text, "states | what their files have") for state in row[0].strip("| ").split(", ")]
    assert sorted(named) == sorted(one["name"] for one in files)
    assert json.loads(block(text, "example: state fact")) in [fact for one in files for fact in one["facts"]]
    assert f"{50 - len(files)} states and the District of Columbia have no file" in text


def test_the_guide_to_the_library_counts_its_files_and_facts() -> None:
    rows = {row[0].strip("| "): row[1] for row in table(text_of("library.md"), "files | facts")}
    counted = {}
    for folder, name, what in (("library", "<theme>", "themes"), ("states", "<code>", "states")):
        files = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "facts" / folder).glob("*.json")]
        facts = sum(len(one["facts"]) for one in files)
        counted[f"`facts/{folder}/{name}.json`, {len(files)} {what}"] = f"about {round(facts, -1):,}"
    assert rows == counted


def test_the_invented_plans_have_the_names_and_end_of_the_guide() -> None:
    plans = json.loads((ROOT / "plans" / "invented.json").read_text(encoding="utf-8"))
    text = " ".join(text_of("authoring.md").split())
    assert f"whose plans are valid until {plans['valid_until']}." in text
    for one in (*plans["plans"].values(), *plans["doctors"].values()):
        assert one["name"] in text
    for place in plans["places"].values():
        assert "{city}, {county}, {state} {zip_code}".format(**place) in text


# authoring.md: the messages of validate


def unknown_plan(made: Document) -> None:
    made["plan_file"] = "invented"
    made["variants"][0]["plan"] = "nobody"


def library_fact(name: str) -> Change:
    def refer(made: Document) -> None:
        made["answer_key"]["library_facts"] = {"F3": name}

    return refer


FAULTS: dict[str, Change | str] = {
    "invalid JSON: Expecting ':' delimiter (line 3, column 13)": '{\n "a": 1,\n "scenario" 3}',
    "field title: required but missing": lambda made: made.pop("title"),
    "field titel: unknown field (did you mean title?)": field("titel", "A title"),
    "'huge' is not allowed; use 'low', 'medium' or 'high'": second_fact(severity_if_wrong="huge"),
    "'D1' is not an id": second_fact(fact_id="D1"),
    "fictional must be true": persona(fictional=False),
    "turn Q1 required_points names 'F9', which is not a fact of this key": turn(required_points=["F1", "F9"]),
    "variant other names turn 'Q9'; the turns are Q1": variant(turns={"Q9": "What is it?"}),
    "unknown slot {{persona.town}}": asks("What is it in {{persona.town}}?"),
    "unbalanced {{ or }}": asks("What is it in {{persona.city?"),
    "the library has no fact 'B-part-b-premum'": library_fact("B-part-b-premum"),
    "no state has a fact 'B-{{state}}-medigap'": library_fact("B-{{state}}-medigap"),
    "unknown slot {{plan.name}}": second_fact(statement="{{plan.name}} has a network."),
    "'nobody' is not in the file of invented plans": unknown_plan,
    "facts/2026.json has no figure 'part_b_premum'": second_fact(statement="It is {{figure.part_b_premum}}."),
    "is valid from 2026-01-01, after plan year 2025": field("effective_date", "2025-01-01"),
    "the placeholder REPLACE is still there": field("title", "REPLACE: a title"),
    "there is no rubric 'v9' (v0.1, v1), so v0.1 is used": field("rubric_version", "v9"),
    "there are none; add one or two": field("themes", []),
    "household is a field of your own": persona(household={"pets": 2}),
    "must be a whole number (got 'sixty')": persona(age="sixty"),
    "it is kept but changes nothing": field("variation_knobs", {"reading_level": 6}),
    "no turn says which facts it asks for": turn(required_points=[], background=[]),
    "no turn uses F2": turn(background=[]),
    "F1 is required, but no turn asks for it": turn(required_points=[], background=["F1", "F2"]),
    "group lookup-deductible is for questions that must be looked up": turn(question_group="lookup-deductible"),
    "F2 has no valid_from": without("valid_from"),
    "F2 has no confirmed_by": without("confirmed_by"),
    "F2 has a semicolon": second_fact(statement="Part A pays for hospitals; Part B pays for doctors."),
    "F2 states a dollar amount for one year": second_fact(statement="In 2026 the premium is $202.90 a month."),
    "'614-234-5678' looks like a phone number": asks("Call 614-234-5678?"),
    "F2 expired on 2026-06-30": second_fact(valid_until="2026-06-30"),
    "F2 is not valid until 2027-01-01": second_fact(valid_from="2027-01-01"),
    "'Be sure to' tells the target how to answer": asks("What is Part B? Be sure to say how much."),
    "the question gives away $283 from F1": asks("Is the Part B deductible $283?"),
    "the question says $500, which no fact of the key states": asks("Is the Part B deductible $500 a year?"),
}


def shown_messages(*tables: str) -> list[str]:
    headings = tables or ("message | how to fix it", "house rule | how to fix it")
    return [
        row[0].split("` (")[0].strip("`") for heading in headings for row in table(text_of("authoring.md"), heading)
    ]


def test_every_message_in_the_table_has_a_fault_that_causes_it() -> None:
    assert sorted(shown_messages()) == sorted([*FAULTS, "no scenario file found"])


@each_case("message", FAULTS)
def test_validate_prints_the_message_in_the_table(message: str, tmp_path: Path) -> None:
    fault, path = FAULTS[message], tmp_path / "planted.json"
    made = good()
    if not isinstance(fault, str):
        fault(made)
    path.write_text(fault if isinstance(fault, str) else json.dumps(made), encoding="utf-8")
    code, out, err = call("validate", "--strict", path)
    assert (code, out) == (2, "")
    assert message in err
    assert (call("validate", path).code == 0) == (message in shown_messages("house rule | how to fix it"))


def test_validate_prints_the_message_about_files(tmp_path: Path) -> None:
    assert "no scenario file found" in call("validate", tmp_path / "none.json")[2]


# scoring.md


def test_the_recompute_example_prints_what_the_guide_says() -> None:
    text, out = text_of("scoring.md"), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block(text, "example: recompute"), "scoring.md", "exec"), {})
    assert out.getvalue() == block(text, "example: recomputed") + "\n"


def test_the_points_that_count_are_as_many_as_the_guide_says() -> None:
    rows = table(text_of("scoring.md"), "scenario and variant")
    counted = {}
    for name in ("medicare_only", "dual_eligible"):
        for planned in read_scenario(ROOT / "scenarios" / "v1" / "study" / f"{name}.json").planned(2026, Library()):
            points = (len(planned.scenario.all_required_points()), len(owed_points(planned.scenario, RUBRIC)))
            counted[f"{name}, {planned.variant}" if name == "medicare_only" else f"{name}, either variant"] = points
    assert {row[0]: (int(row[1]), int(row[2])) for row in rows} == counted


def test_the_scores_of_the_golden_transcripts_are_those_of_the_guide() -> None:
    for name, *shown, _ in table(text_of("scoring.md"), "transcript | accuracy"):
        given = golden(ROOT / "tests" / "golden" / name.strip("`"))
        claims = [ScoredClaim(one.label, one.evidence, one.severity, "high") for one in given.verdicts]
        points = len(owed_points(given.scenario, RUBRIC))
        missing = missing_points(
            AskedConversation(given.scenario, RUBRIC, given.exchanges, given.claims), given.verdicts
        )
        scores = score(points, missing, RUBRIC.weights, claims, []).scores
        assert [float(cell) for cell in shown] == list(scores.model_dump().values()), name


def test_the_table_of_groups_says_how_many_points_of_our_own_stand_beside_the_study_s() -> None:
    rows = {row[0]: row for row in table(text_of("scoring.md"), "group | topic")}
    with_two_sets = {name for name, rule in RUBRIC.groups.items() if rule.study_points}
    said = {name: re.findall(r"our own (\d+) points", row[4]) for name, row in rows.items()}
    assert with_two_sets - {"g8"} == {name for name, found in said.items() if found}
    for name in ("medicare_only", "dual_eligible"):
        planned = next(
            iter(read_scenario(ROOT / "scenarios" / "v1" / "study" / f"{name}.json").planned(2026, Library()))
        )
        for turn_ in planned.scenario.scripted_turns:
            if found := said.get(turn_.question_group or ""):
                assert found == [str(len(turn_.required_points))], turn_.question_group


def test_the_last_transcript_has_the_counts_of_the_guide() -> None:
    given = golden(ROOT / "tests" / "golden" / "medicare_only_wrong.json")
    labels = Counter(one.label for one in given.verdicts)
    grades = Counter(one.severity for one in given.verdicts if one.label == "CONTRADICTED")
    said = (
        f"{labels['SUPPORTED']} supported, {labels['CONTRADICTED']} contradicted ({grades['high']} high, "
        f"{grades['medium']} medium, {grades['low']} low) and {labels['NOT_IN_KEY']} NOT_IN_KEY claims"
    )
    assert said in " ".join(text_of("scoring.md").split())


def test_the_table_of_groups_has_every_group_of_the_rubric() -> None:
    rows = {row[0]: row[3] for row in table(text_of("scoring.md"), "group | topic")}
    rules = {"default": RUBRIC.default, **{name: rule for name, rule in RUBRIC.groups.items() if name != "lookup"}}
    assert {name: said == "yes" for name, said in rows.items() if name != "lookup, lookup-..."} == {
        name: rule.lookup_dependent for name, rule in rules.items()
    }
    for name, rule in RUBRIC.groups.items():
        if name == "lookup":
            assert rule.fabricated == "incorrect"
        else:
            assert rule.fabricated == ("incorrect_unless_complete" if rule.lookup_dependent else "noted"), name


# judging.md


def test_the_agreement_table_is_computed_correctly() -> None:
    skewed = [("S", "S")] * 94 + [("S", "C")] * 3 + [("C", "S")] * 3
    even = [("S", "S")] * 47 + [("C", "C")] * 47 + [("S", "C")] * 3 + [("C", "S")] * 3
    measures: list[Callable[..., float | None]] = [percent_agreement, cohen_kappa, krippendorff_alpha]
    for row, ratings in zip(table(text_of("judging.md"), "labels of the two judges"), (skewed, even), strict=True):
        assert row[1:] == [f"{measure(ratings):.2f}" for measure in measures]


@pytest.mark.slow
@each_case("split", get_args(Split))
def test_the_gold_set_has_the_counts_of_the_guide(split: Split) -> None:
    (row,) = (row for row in table(text_of("judging.md"), "split | replies") if row[0] == split)
    gold = load_gold(split)
    labels = Counter(claim.label for item in gold.items for claim in item.reply.claims)
    assert [int(cell) for cell in row[1:6]] == [len(gold.items), gold.claims, *(labels[label] for label in LABELS)]


def gold_of_the_example(text: str) -> list[JudgedGold]:
    """The claims of the guide's table, dealt out to 40 replies in turn."""
    dealt: list[Counter[tuple[str, str]]] = [Counter() for _ in range(40)]
    cells = [
        (row[0], given, int(n or 0))
        for row in table(text, "gold label | SUPPORTED")
        for given, n in zip((*LABELS, "open", "missed"), row[1:], strict=True)
    ]
    claims = [(gold, given) for gold, given, n in cells for _ in range(n)]
    for number, claim in enumerate(claims):
        dealt[number % 40][claim] += 1
    return [
        JudgedGold(
            {cell: n for cell, n in one.items() if cell[0] != "spurious"},
            {given: n for (gold, given), n in one.items() if gold == "spurious"},
        )
        for one in dealt
    ]


def test_the_corrected_estimate_is_computed_correctly() -> None:
    text = text_of("judging.md")
    roles, gold = Labels(*LABELS), gold_of_the_example(text)
    said = " ".join(text.split())
    assert "24/4/12, 28/0/12, 20/8/12 and 26/2/12 claims of a scenario" in said
    kinds = ((24, 4, 12), (28, 0, 12), (20, 8, 12), (26, 2, 12))
    scenarios = [dict(zip(roles.all, kinds[n % 4], strict=True)) for n in range(10)]
    observed = [float(sum(one[label] for one in scenarios)) for label in LABELS]
    true = true_counts(observed, label_table(gold, roles))
    found = corrected_accuracy(scenarios, gold, roles, seed=REPORT_SEED)
    assert found.raw and found.value and found.low and found.high
    judged, corrected = table(text, "| SUPPORTED | CONTRADICTED | NOT_IN_KEY | accuracy")
    assert judged[1:] == [*(f"{n / sum(observed):.3f}" for n in observed), f"{found.raw:.3f}"]
    interval = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    assert corrected[1:] == [*(f"{n / sum(true):.3f}" for n in true), interval]
    alone = corrected_accuracy([{"SUPPORTED": 6}] * 6, gold, roles, seed=REPORT_SEED)
    assert alone.low is not None and alone.low < 0.9
    for limit in (
        f"comes from {DRAWS:,} draws",
        f"fewer than {LEAST_GOLD_REPLIES} replies, or fewer than {LEAST_GOLD_CLAIMS} gold claims of a label",
        f"by more than a factor of {MOST_AMPLIFIED:.0f}",
    ):
        assert limit in said


def test_the_report_shows_as_many_reviews_as_the_guide_says() -> None:
    assert f"The report shows up to {REVIEWS_SHOWN} such trials per run" in text_of("judging.md")


# All guides


@each_case("path", GUIDES, ids=lambda path: path.name)
def test_every_path_and_link_of_a_guide_exists(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = re.findall(r"`((?:src|tests|docs|scenarios|rubrics|plans|facts|gold|prompts|baseline)/[\w./-]+\w)`", text)
    missing = [name for name in named if "<" not in name and not (ROOT / name).exists()]
    assert missing == []
    for file, names in re.findall(r"`(src/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", text):
        source = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(?:async )?(?:def|class) {name}\b", source, re.MULTILINE), (file, name)
    for target, _, anchor in (
        link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link
    ):
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, anchor


# decisions


def test_a_decision_that_is_superseded_says_by_which_in_its_second_paragraph_and_in_the_list() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    superseded = 0
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title, second, *_ = path.read_text(encoding="utf-8").split("\n\n")
        number, _, name = title.removeprefix("# ").partition(": ")
        assert path.name.startswith(f"{number}-")
        by = sorted(re.findall(r"\[(\d{4})\]", second)) if second.startswith("**Status.** Superseded") else []
        superseded += bool(by)
        note = f" (superseded in part by {' and '.join(by)})" if by else ""
        assert f"| [{number}]({path.name}) | {name}{note} |\n" in listed
        for replaced in re.findall(r"record \[?(\d{4})", second) if second.startswith("Replaces") else []:
            assert f"[{number}]" in next((DOCS / "decisions").glob(f"{replaced}-*.md")).read_text(encoding="utf-8")
    assert superseded >= 8
