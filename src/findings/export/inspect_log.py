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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...schemas import Manifest, Scenario, TrialResult, point_facts
from ...scoring.definitions import SCORES
from ...trials.columns import MISSING, Row
from ...trials.missing import MISSING as LEFT_OUT
from ...trials.tables import OF_TRIAL, OF_TRIALS, TRIAL
from ..analysis.estimates import Answer, Question, question_values, tallied
from ..analysis.read_run import group_rules
from .explanations import COMPLETE, NO_WORDS, Words, explained, levels_of
from .tables import Exported, trial_rows
from .writers import optional

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
        self._words = {p.name: Words.of(p.scenario, rules) for p in manifest.plan.scenarios}
        self._waiting: dict[str, list[_Waiting]] = {target: [] for target in manifest.plan.targets}
        self._written: dict[str, int] = {}
        self._paths: list[Path] = []
        self._characters = 0

    def add(self, result: TrialResult) -> None:
        target = result.target.name
        characters = sum(len(e.user_message) + len(e.reply or "") for e in result.conversation)
        answers = _answers(result, self._words.get(_name(result), NO_WORDS))
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
        name = _name(result)
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

    def _score(self, result: TrialResult, name: str, words: Words) -> Any:
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
                "verifiers": list(plan.verifiers),
                "adjudicator": plan.adjudicator,
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


def _name(result: TrialResult) -> str:
    return f"{result.scenario_id}@{result.variant}" if result.variant else result.scenario_id


def _answers(result: TrialResult, words: Words) -> dict[str, list[Answer]]:
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
    rows: dict[str, list[Row]] = {table.name: [] for table in OF_TRIALS}
    for table, row in trial_rows(trial, run):
        left_out = _SHOWN_ABOVE if table.name == TRIAL.name else _SHOWN_ABOVE | {"trial_id"}
        cells: Row = {name: value for name, value in row.items() if value is not None and name not in left_out}
        rows.setdefault(table.name, []).append(cells)
    return {**rows.pop(TRIAL.name)[0], "rows": rows}
