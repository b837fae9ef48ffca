"""Transcripts as logs of Inspect (inspect.aisi.org.uk): `inspect view --log-dir OUT/inspect` shows each conversation.

There is one log per target, or several if there are many trials, because Inspect writes a log in one go. A sample is a
trial: its id is the scenario, its epoch the repetition; its rows in the exported tables are in its metadata. Inspect
expects samples times epochs trials in a log, so a log is cut between scenarios. A missing score is NaN, as is usual in
Inspect. Every score has an explanation.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from ..findings.estimates import Answer, Question, question_values, tallied
from ..findings.human_comparison import Rules
from ..findings.read_run import group_rules
from ..records.base import SEVERITIES
from ..records.ids import scenario_name
from ..schemas import Confidence, FinalClaim, Manifest, QuestionCode, Scenario, TrialResult, point_facts
from ..scoring.definitions import CODE_HEADINGS, MEASURES, SCORES
from ..text.count import counted
from ..text.escape import plain
from ..trials.columns import MISSING, Cells
from ..trials.missing import MISSING as LEFT_OUT
from ..trials.missing import measured_score
from ..trials.tables import OF_TRIAL, OF_TRIALS, TRIAL, counted_of, why_no_score, why_not_counted
from .tables import Exported, trial_rows
from .writers import optional

COMPLETE = "accurate_complete"
LISTED = 10
"""A list of claims or points is cut after this many; all are in the tables and in the sample's metadata."""
_TEXT = 300
_HEADINGS = {str(code): heading for code, heading in CODE_HEADINGS.items()}


@dataclass(frozen=True)
class Explained:
    value: float | None
    answer: str
    """What was counted, in a few words."""
    why: str
    missing: str | None = None
    """A name of `MISSING` if there is no value."""


@dataclass(frozen=True)
class ScenarioWords:
    """What the ids in a scenario's results stand for."""

    facts: Mapping[str, str]
    topics: Mapping[str, str]
    """By question group."""
    closed: frozenset[str] = frozenset()
    """Question groups that are in no estimate."""

    @classmethod
    def of(cls, scenario: Scenario, rules: Rules) -> ScenarioWords:
        key = scenario.answer_key
        facts = {fact.fact_id: fact.statement for fact in key.canonical_facts}
        facts |= {fact.library: fact.statement for fact in key.canonical_facts if fact.library}
        facts |= {one.claim_id: f"it is wrong to say: {one.statement}" for one in key.disallowed()}
        mine = {group: rule for (name, group), rule in rules.items() if name == scenario.scenario_id}
        closed = frozenset(group for group, rule in mine.items() if rule.closed)
        return cls(facts, {group: rule.topic for group, rule in mine.items()}, closed)


NO_WORDS = ScenarioWords({}, {})


def explained(result: TrialResult, name: str, words: ScenarioWords) -> Explained:
    """A trial's score of this name, or its share of accurate and complete answers, and why it is so."""
    if name == COMPLETE:
        return _complete(result, words)
    score: float | None = getattr(result.final_scores, name) if result.final_scores else None
    value = measured_score(result.outcome, name, score).value
    if value is None:
        reason = why_no_score(result)
        return Explained(None, "", f"No score: {MISSING[reason].meaning}.{_details(result)}", reason)
    if result.outcome != "scored":
        return Explained(value, "", f"Counted as {value:g}: {MISSING[result.outcome].meaning}.")
    explain = {
        "accuracy": _accuracy,
        "completeness": _completeness,
        "safety_risk": _safety_risk,
        "calibration": _calibration,
    }.get(name)
    found = explain(result, value, words) if explain else Explained(value, "", _formula(name))
    return replace(found, why=found.why + _left_open(result, name))


def _left_open(result: TrialResult, name: str) -> str:
    """How far open claims could move a score."""
    if result.left_open is None:
        return ""
    low, high = (getattr(one, name) for one in (result.left_open.lowest, result.left_open.highest))
    claims = counted(result.left_open.claims, "open claim counts", "open claims count")
    return f"\n\n{claims} as each verifier labeled it, in turn; the score could be {low} to {high}."


def _formula(name: str) -> str:
    return f"{MEASURES[name].formula.capitalize()}."


def _details(result: TrialResult) -> str:
    found = [f"{one.turn_id}: {one.detail}" for one in result.conversation if one.detail]
    found += [f"{one.stage} on {one.turn_id}: {one.reason}" for one in result.judge_failures]
    return _bullets("Details", found)


def _bullets(title: str, items: Sequence[str]) -> str:
    """A titled list in Markdown; nothing if it is empty."""
    if not items:
        return ""
    lines = [f"- {_short(item)}" for item in items[:LISTED]]
    if len(items) > LISTED:
        lines.append(f"- and {len(items) - LISTED} more")
    return "\n\n".join([f"\n\n{title}:", "\n".join(lines)])


def _short(item: str) -> str:
    """An item in one line."""
    text = plain(" ".join(item.split()))
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _labeled(result: TrialResult, label: str | None) -> list[FinalClaim]:
    return [claim for claim in result.final_claims if claim.label == label]


def _accuracy(result: TrialResult, value: float, words: ScenarioWords) -> Explained:
    right, wrong = _labeled(result, "SUPPORTED"), _labeled(result, "CONTRADICTED")
    decided = len(right) + len(wrong)
    rest = [f"{len(_labeled(result, 'NOT_IN_KEY'))} more are not in the key"]
    if still_open := len(_labeled(result, None)):
        rest.append(f"the judges left {still_open} open")
    agree = counted(len(right), "claim agrees", "claims agree")
    against = counted(len(wrong), "contradicts", "contradict")
    why = f"{agree} with the answer key, and {against} it; {' and '.join(rest)}."
    return Explained(value, f"{len(right)} of {decided} claims", why + _bullets("Contradicted", _errors(wrong, words)))


def _errors(claims: Iterable[FinalClaim], words: ScenarioWords) -> list[str]:
    return [
        f"“{claim.text}” (severity {claim.severity}). The key: {'; '.join(_in_words(claim.evidence, words)) or '-'}"
        for claim in claims
    ]


def _in_words(ids: Iterable[str], words: ScenarioWords) -> list[str]:
    """Points in words; a point that several facts can make has their ids joined by `|`."""
    return [" / ".join(words.facts.get(one, one) for one in point.split("|")) for point in ids]


def _completeness(result: TrialResult, value: float, words: ScenarioWords) -> Explained:
    missed = _in_words(result.missing_required_points, words)
    names = dict.fromkeys(made.point for code in result.study_codes for made in code.points_met)
    made = _in_words((name for name in names if name not in result.missing_required_points), words)
    why = f"{counted(len(missed), 'required point was', 'required points were')} missed."
    listed = _bullets("Missed", missed) + _bullets("Made", made)
    return Explained(value, f"{len(missed)} missed", why + listed)


def _safety_risk(result: TrialResult, value: float, words: ScenarioWords) -> Explained:
    wrong = _labeled(result, "CONTRADICTED")
    found = Counter(claim.severity for claim in wrong)
    by_severity = ", ".join(f"{found[one]} {one}" for one in reversed(SEVERITIES) if found[one])
    if not wrong:
        return Explained(value, "no wrong claim", "No claim contradicts the answer key.")
    why = f"{counted(len(wrong), 'claim contradicts', 'claims contradict')} the answer key, by severity: {by_severity}."
    return Explained(value, by_severity, why + _bullets("Contradicted", _errors(wrong, words)))


def _calibration(result: TrialResult, value: float, words: ScenarioWords) -> Explained:
    sounds = {claim.claim_id: claim.confidence for claim in result.claims}
    found = Counter((sounds.get(claim.claim_id), claim.label) for claim in result.final_claims)
    lines = [
        f"{level} confidence: {found[level, 'SUPPORTED']} right, {found[level, 'CONTRADICTED']} wrong"
        for level in get_args(Confidence)
        if found[level, "SUPPORTED"] or found[level, "CONTRADICTED"]
    ]
    return Explained(value, "", _formula("calibration") + _bullets("Claims that the key decides", lines))


def _coded(result: TrialResult, words: ScenarioWords) -> list[QuestionCode]:
    return [code for code in result.study_codes if code.code and code.question_group not in words.closed]


def levels_of(result: TrialResult, words: ScenarioWords) -> dict[str, str]:
    """By question group, the study code as it counts in estimates; closed questions are in none."""
    return {code.question_group: counted_of(code, result) for code in _coded(result, words)}


def _complete(result: TrialResult, words: ScenarioWords) -> Explained:
    coded = _coded(result, words)
    levels = levels_of(result, words)
    held = [level for level in levels.values() if level != LEFT_OUT]
    lines = []
    for code in coded:
        topic = words.topics.get(code.question_group)
        name = f"{code.question_group} ({topic})" if topic else code.question_group
        level = levels[code.question_group]
        if level == LEFT_OUT:
            lines.append(f"{name}: left out, {MISSING[why_not_counted(code, result)].meaning}")
        else:
            lines.append(f"{name}: {_HEADINGS[level]}. {code.reason}")
    listed = _bullets("By question", lines)
    if not held:
        reason = why_not_counted(coded[0], result) if coded else why_no_score(result)
        return Explained(None, "", f"No question of this trial counts: {MISSING[reason].meaning}.{listed}", reason)
    complete = sum(level == COMPLETE for level in held)
    why = f"{complete} of {counted(len(held), 'question was', 'questions were')} answered accurately and completely."
    return Explained(complete / len(held), f"{complete} of {len(held)} questions", why + listed)


LOG_SAMPLES = 1_000
LOG_CHARACTERS = 20_000_000
"""A log is written when it has this many samples, or when all samples in memory have this much text."""
SHOWN = (COMPLETE, *SCORES)
"""The scores of a sample; the first one is the headline."""
_ERRORS = ("failed", "questioner_failure")
_SHOWN_ABOVE = {column.name for column in OF_TRIAL if column.name != "trial_id"} | {"user_message", "reply"}
"""Columns that say what a log, a sample or its messages say already."""


@dataclass(frozen=True)
class _Waiting:
    """A sample that is not written yet."""

    sample: Any
    characters: int
    answers: dict[str, list[Answer]]
    """By score, what the trial adds to its mean."""


class InspectSink:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._log = optional("inspect_ai.log")
        self._model = optional("inspect_ai.model")
        self._scorer = optional("inspect_ai.scorer")
        self._folder = folder
        self._manifest = manifest
        self._run = Exported.of(manifest)
        self._targets = {p.name: _reference(p.scenario) for p in manifest.plan.scenarios}
        rules = group_rules(manifest.plan)
        self._words = {p.name: ScenarioWords.of(p.scenario, rules) for p in manifest.plan.scenarios}
        self._waiting: dict[str, list[_Waiting]] = {target: [] for target in manifest.plan.targets}
        self._written: dict[str, int] = {}
        self._paths: list[Path] = []
        self._characters = 0

    def add(self, result: TrialResult) -> None:
        target = result.target.name
        characters = sum(len(e.user_message) + len(e.reply or "") for e in result.conversation)
        answers = _answers(result, self._words.get(scenario_name(result.scenario_id, result.variant), NO_WORDS))
        self._waiting[target].append(_Waiting(self._sample(result), characters, answers))
        self._characters += characters
        if len(self._waiting[target]) >= LOG_SAMPLES:
            self._write_whole(target)
        elif self._characters >= LOG_CHARACTERS:
            self._write_whole(max(self._waiting, key=lambda name: sum(one.characters for one in self._waiting[name])))

    def close(self) -> list[Path]:
        for target, waiting in self._waiting.items():
            if waiting or not self._written.get(target):
                self._write(target, waiting)
        return self._paths

    def _write_whole(self, target: str) -> None:
        """Write all scenarios but the last, which may have more repetitions to come, unless it is the only one."""
        waiting = self._waiting[target]
        last = waiting[-1].sample.id
        whole = [one for one in waiting if one.sample.id != last] or waiting
        self._waiting[target] = [] if whole is waiting else [one for one in waiting if one.sample.id == last]
        self._characters -= sum(one.characters for one in whole)
        self._write(target, whole)

    def _sample(self, result: TrialResult) -> Any:
        name = scenario_name(result.scenario_id, result.variant)
        asked = [exchange for exchange in result.conversation if exchange.outcome not in ("skipped", "not_asked")]
        messages: list[Any] = []
        for exchange in asked:
            about = {"turn_id": exchange.turn_id, "outcome": exchange.outcome}
            messages.append(self._model.ChatMessageUser(content=exchange.user_message, metadata=about))
            if exchange.reply is not None:
                model = exchange.served_model or result.target.api_id
                messages.append(self._model.ChatMessageAssistant(content=exchange.reply, model=model, metadata=about))
        replies = [exchange.reply for exchange in asked if exchange.reply is not None]
        output = self._model.ModelOutput.from_content(result.target.api_id, replies[-1]) if replies else None
        why = _what_failed(result)
        words = self._words.get(name, NO_WORDS)
        return self._log.EvalSample(
            id=name,
            epoch=result.repetition,
            input=asked[0].user_message if asked else "",
            target=self._targets.get(name, []),
            messages=messages,
            scores={score: self._score(result, score, words) for score in SHOWN},
            metadata=_metadata(result, self._run),
            **({"output": output} if output else {}),
            error=self._log.EvalError(message=why, traceback=why, traceback_ansi=why) if why else None,
        )

    def _score(self, result: TrialResult, name: str, words: ScenarioWords) -> Any:
        found = explained(result, name, words)
        return self._scorer.Score(
            value=math.nan if found.value is None else found.value,
            answer=found.answer or None,
            explanation=found.why,
            reason=found.missing,
        )

    def _write(self, target: str, waiting: Sequence[_Waiting]) -> None:
        number = self._written[target] = self._written.get(target, 0) + 1
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._manifest.run_id}_medicare-eval_{self._file_name(target)}-{number}.eval"
        log = self._eval_log(target, waiting, number)
        self._log.write_eval_log(log, str(path), format="eval")
        self._paths.append(path)

    def _file_name(self, target: str) -> str:
        """A name that no other target has."""
        name, place = _slug(target), self._manifest.plan.targets.index(target) + 1
        alone = sum(_slug(other).lower() == name.lower() for other in self._manifest.plan.targets) == 1
        return name if alone else f"{name}-{place}"

    def _eval_log(self, target: str, waiting: Sequence[_Waiting], number: int) -> Any:
        samples = [one.sample for one in waiting]
        repetitions = Counter(sample.id for sample in samples)
        epochs = max(repetitions.values(), default=self._manifest.plan.repeats)
        log, created = self._log, self._manifest.created
        return log.EvalLog(
            status="success",
            eval=self._spec(target, list(repetitions), epochs, number),
            results=log.EvalResults(
                total_samples=len(repetitions) * epochs,
                completed_samples=sum(sample.error is None for sample in samples),
                scores=[self._mean(waiting, name) for name in SHOWN],
            ),
            stats=log.EvalStats(started_at=created, completed_at=created),
            samples=samples,
        )

    def _spec(self, target: str, names: list[str], epochs: int, number: int) -> Any:
        manifest, plan, log = self._manifest, self._manifest.plan, self._log
        name = f"{self._file_name(target)}-{number}"
        return log.EvalSpec(
            eval_id=f"{manifest.run_id}-{name}",
            run_id=manifest.run_id,
            created=manifest.created,
            task="medicare-eval",
            task_id=f"{manifest.run_id}-{name}",  # logs with the same id would be shown as retries of one another
            dataset=log.EvalDataset(name="medicare-eval", samples=len(names), sample_ids=names),
            model=target.replace(":", "/", 1),
            model_generate_config=self._model.GenerateConfig(
                temperature=plan.target_parameters.temperature, max_tokens=plan.target_parameters.max_tokens
            ),
            config=log.EvalConfig(epochs=epochs, epochs_reducer=["mean"]),
            packages=dict(manifest.versions),
            scorers=[{"name": name} for name in SHOWN],
            headline_metric=log.HeadlineMetric(score=COMPLETE, metric="mean"),
            metadata={
                "plan_sha256": manifest.plan_sha256,
                "api_id": plan.api_ids.get(target),
                "plan_year": plan.plan_year,
                "seed": str(plan.seed),
                "verifiers": list(plan.judges_of(target).verifiers),
                "adjudicator": plan.judges_of(target).adjudicator,
                "exported_from": "results.jsonl of medicare-eval; no call was made by Inspect",
            },
        )

    def _mean(self, waiting: Sequence[_Waiting], name: str) -> Any:
        """The mean as reports have it: over repeats first, then over variants, then over questions or scenarios."""
        tallies = tallied(answer for one in waiting for answer in one.answers[name])
        values = [one.value for one in question_values(tallies)]
        mean = {"mean": self._log.EvalMetric(name="mean", value=math.fsum(values) / len(values))} if values else {}
        unscored = sum(math.isnan(one.sample.scores[name].value) for one in waiting)
        return self._log.EvalScore(
            name=name,
            scorer=name,
            scored_samples=len(waiting) - unscored,
            unscored_samples=unscored,
            metrics=mean,  # none if no sample has a value
        )


def _answers(result: TrialResult, words: ScenarioWords) -> dict[str, list[Answer]]:
    variant = result.variant or ""
    found: dict[str, list[Answer]] = {}
    for name in SCORES:
        value = explained(result, name, NO_WORDS).value
        found[name] = [Answer(Question(result.scenario_id, ""), variant, value)]
    found[COMPLETE] = [
        Answer(Question(result.scenario_id, group), variant, None if level == LEFT_OUT else float(level == COMPLETE))
        for group, level in levels_of(result, words).items()
    ]
    return found


def _slug(target: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", target)


def _reference(scenario: Scenario) -> list[str]:
    """What a complete answer says, according to the answer key."""
    facts = {fact.fact_id: fact.statement for fact in scenario.answer_key.canonical_facts}
    return [" / ".join(facts[name] for name in point_facts(point)) for point in scenario.all_required_points()]


def _what_failed(result: TrialResult) -> str | None:
    if result.outcome not in _ERRORS:
        return None
    details = [f"{exchange.turn_id}: {exchange.detail}" for exchange in result.conversation if exchange.detail]
    details += [f"{failure.stage}: {failure.reason}" for failure in result.judge_failures]
    return "; ".join([MISSING[result.outcome].meaning, *details])


def _metadata(trial: TrialResult, run: Exported) -> dict[str, Any]:
    """The trial's rows in the exported tables, without empty cells and without what the sample has already."""
    rows: dict[str, list[Cells]] = {table.name: [] for table in OF_TRIALS}
    for table, row in trial_rows(trial, run):
        left_out = _SHOWN_ABOVE if table.name == TRIAL.name else _SHOWN_ABOVE | {"trial_id"}
        cells: Cells = {name: value for name, value in row.items() if value is not None and name not in left_out}
        rows.setdefault(table.name, []).append(cells)
    return {**rows.pop(TRIAL.name)[0], "rows": rows}
