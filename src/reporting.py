"""Records in, tables and text out. Needs no SDK, no key and no model: a run folder is enough.

Results are streamed: what is kept of a trial is its scores, its outcome and, for a few, its gravest wrong claim.
What a model wrote is data here too: escaped in Markdown, and defused in CSV where a spreadsheet would run it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from . import chain, storage
from .money import cost
from .schemas import FinalClaim, Manifest, RunPlan, Severity, TrialOutcome, TrialResult
from .stats.intervals import Estimate, mean_interval
from .study_table import CodesCsv, StudyTable, markdown_lines, question_csv
from .text import defused, inert, plain

SCORES = ("accuracy", "completeness", "safety_risk", "calibration")
OFFLINE_NOTICE = (
    "Judged by offline:rules, a judge made of rules. It is for trying out and for tests; its scores are not findings."
)
FAKE_NOTICE = "fake: targets are canned texts written for this project, not the words of any model."
ETHICS = (
    "This system evaluates AI-generated information for research purposes only. "
    "It does not provide medical, legal, or insurance advice."
)
WORDING_NOTICE = "Questions reworded: same topics as the published study, our own words."
EXAMPLES = 5
_GRAVITY: tuple[Severity, ...] = get_args(Severity)


def read_results(folder: Path) -> Iterator[TrialResult]:
    """The results of a run, complete or not; a broken chain is an integrity error."""
    path = folder / storage.RESULTS
    if not path.exists():
        return
    for line in chain.ChainReader(path, chain.GENESIS):
        yield TrialResult.model_validate_json(line.payload)


@dataclass
class Tally:
    """What is kept of the trials of one target, or of one scenario and target."""

    trials: int = 0
    outcomes: Counter[TrialOutcome] = field(default_factory=Counter)
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    fabricated: int = 0
    review: int = 0

    def add(self, result: TrialResult) -> None:
        self.trials += 1
        self.outcomes[result.outcome] += 1
        self.errors.update(result.error_categories)
        self.refusals += result.flags.refusal
        self.fabricated += result.flags.hallucinated_specifics
        self.review += result.needs_manual_review
        if result.final_scores:
            for name in SCORES:
                value = getattr(result.final_scores, name)
                if value is not None:
                    self.values[name].append(value)

    def estimate(self, name: str) -> Estimate:
        return mean_interval(self.values[name])


@dataclass(frozen=True)
class Example:
    """A contradicted claim with all that shows it."""

    trial_id: str
    question: str
    quote: str
    claim: FinalClaim


@dataclass
class Service:
    """What a model was asked for, and what it really was."""

    called: str
    served: set[str] = field(default_factory=set)
    not_applied: set[str] = field(default_factory=set)
    differs: bool = False
    """Whether another model than the one called has answered."""


@dataclass
class Summary:
    by_target: dict[str, Tally]
    by_scenario: dict[tuple[str, str], Tally]
    examples: list[Example]
    services: dict[str, Service]
    study: StudyTable
    planned: int
    offline: bool
    fake: bool
    told: tuple[str, ...]
    """What the plan itself makes every reader be told: an expired key, the wording used."""

    @property
    def done(self) -> int:
        return sum(tally.trials for tally in self.by_target.values())


def summarise(folder: Path, manifest: Manifest, codes: CodesCsv | None = None) -> Summary:
    plan = manifest.plan
    by_target = {target: Tally() for target in plan.targets}
    by_scenario = {(p.scenario.scenario_id, target): Tally() for p in plan.scenarios for target in plan.targets}
    examples: list[Example] = []
    services = {name: Service(api_id) for name, api_id in plan.api_ids.items()}
    study = StudyTable.of(plan)
    for result in read_results(folder):
        study.add(result)
        if codes:
            codes.add(result)
        by_target[result.target.name].add(result)
        by_scenario[result.scenario_id, result.target.name].add(result)
        _add_services(services, result)
        examples = sorted([*examples, *_examples(result)], key=lambda e: -_GRAVITY.index(e.claim.severity))[:EXAMPLES]
    return Summary(
        by_target=by_target,
        by_scenario=by_scenario,
        examples=examples,
        services=services,
        study=study,
        planned=len(plan.scenarios) * len(plan.targets) * plan.repeats,
        offline=any(model.startswith("offline:") for model in plan.judge_models()),
        fake=any(target.startswith("fake:") for target in plan.targets),
        told=_told(plan),
    )


def _told(plan: RunPlan) -> tuple[str, ...]:
    told = [f"Expired key, allowed by the user: {reason}." for reason in plan.expired]
    if plan.wording:
        turns = "; ".join(f"{name} {', '.join(ids)}" for name, ids in plan.wording.turns.items())
        told.append(f"Wording of {plan.wording.title} (sha256 {plan.wording.sha256[:16]}) in {turns}.")
    if any(turn.question_group for planned in plan.scenarios for turn in planned.scenario.scripted_turns):
        told.append(WORDING_NOTICE if not plan.wording else "All other questions reworded by this project.")
    return tuple(told)


def _add_services(services: dict[str, Service], result: TrialResult) -> None:
    target = services[result.target.name]
    target.served.update(result.target.served_models)
    target.not_applied.update(result.target.not_applied)
    target.differs |= result.target.served_as_requested is False
    for judge in result.judge_services:
        services[judge.model].served.update(judge.served_models)
        services[judge.model].not_applied.update(judge.not_applied)
        services[judge.model].differs |= judge.served_as_requested is False


def _examples(result: TrialResult) -> Iterable[Example]:
    exchanges = {exchange.turn_id: exchange for exchange in result.conversation}
    spans = {claim.claim_id: claim.quote_spans for claim in result.claims}
    for claim in result.final_claims:
        if claim.label == "CONTRADICTED":
            exchange = exchanges[claim.turn_id]
            reply = exchange.reply or ""
            quote = " … ".join(reply[span.start : span.end] for span in spans[claim.claim_id])
            yield Example(result.trial_id, exchange.user_message, quote, claim)


def notices(summary: Summary) -> list[str]:
    """What every reader must be told before the numbers."""
    found = [OFFLINE_NOTICE] if summary.offline else []
    if summary.fake:
        found.append(FAKE_NOTICE)
    found += summary.told
    found += [
        f"{name} was answered by another model than the one called: {plain(', '.join(sorted(service.served)))}."
        for name, service in summary.services.items()
        if service.differs
    ]
    if summary.done < summary.planned:
        found.append(f"Incomplete: {summary.done} of {summary.planned} planned trials are here.")
    return found


@dataclass
class Spending:
    """What one model's calls in one role came to."""

    part: str
    """target or judges (the questioner's calls are its own part)"""
    model: str
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    without_usage: int = 0
    """Attempts whose tokens the provider did not state."""
    cost: float | None = 0.0
    """None where the model's price is unknown."""


def spending(folder: Path, manifest: Manifest) -> list[Spending]:
    """Attempts, tokens and cost by model, the target's apart from the judges'."""
    rows: dict[tuple[str, str], Spending] = {}
    for head in storage.call_heads(folder):
        stage = head.call.split("|")[1]
        part = stage if stage in ("target", "questioner") else "judges"
        row = rows.setdefault((part, head.model), Spending(part, head.model))
        row.attempts += 1
        row.input_tokens += head.usage.input_tokens or 0
        row.output_tokens += head.usage.output_tokens or 0
        row.without_usage += head.usage.output_tokens is None
        price = manifest.prices.get(head.model)
        paid = cost(price, head.usage) if price else None
        row.cost = None if price is None or row.cost is None else row.cost + (paid or 0.0)
    order = {"questioner": 0, "target": 1, "judges": 2}
    return sorted(rows.values(), key=lambda row: (order[row.part], row.model))


def estimate_text(estimate: Estimate, *, two_lines: bool = False) -> str:
    """0.93 (0.78–1.00); where the spread is unknown, the number of values instead of an interval."""
    if estimate.mean is None:
        return "–"
    interval = f"n={estimate.n}" if estimate.low is None else f"{estimate.low:.2f}–{estimate.high:.2f}"
    return f"{estimate.mean:.2f}\n{interval}" if two_lines else f"{estimate.mean:.2f} ({interval})"


def summary_json(summary: Summary) -> dict[str, object]:
    return {
        "planned": summary.planned,
        "done": summary.done,
        "notices": notices(summary),
        "services": {
            name: {
                "called_as": service.called,
                "served_by": sorted(service.served),
                "differs": service.differs,
                "not_applied": sorted(service.not_applied),
            }
            for name, service in summary.services.items()
        },
        "targets": {target: _tally_json(tally) for target, tally in summary.by_target.items()},
    }


def _tally_json(tally: Tally) -> dict[str, object]:
    scores = {}
    for name in SCORES:
        estimate = tally.estimate(name)
        scores[name] = {"mean": estimate.mean, "low": estimate.low, "high": estimate.high, "n": estimate.n}
    return {
        "trials": tally.trials,
        "outcomes": dict(sorted(tally.outcomes.items())),
        "scores": scores,
        "refusals": tally.refusals,
        "fabricated_specifics": tally.fabricated,
        "needs_manual_review": tally.review,
    }


def write_report(folder: Path, manifest: Manifest, out: Path) -> list[Path]:
    """CSV files by scenario, by question and by code, and a Markdown report. Derived, so made anew each time."""
    codes = CodesCsv()
    summary = summarise(folder, manifest, codes)
    files = {
        "per_scenario.csv": scenario_csv(summary),
        "per_question.csv": question_csv(summary.study),
        "codes.csv": codes.buffer.getvalue(),
        "report.md": markdown(summary, manifest),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise storage.storage_error(out, error) from None
    return [out / name for name in files]


def scenario_csv(summary: Summary) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns = [f"{name}{part}" for name in SCORES for part in ("", "_low", "_high", "_n")]
    writer.writerow(["scenario_id", "target", "trials", "scored", *columns])
    for (scenario_id, target), tally in summary.by_scenario.items():
        cells: list[object] = []
        for name in SCORES:
            estimate = tally.estimate(name)
            cells += [_number(estimate.mean), _number(estimate.low), _number(estimate.high), estimate.n]
        writer.writerow([defused(scenario_id), defused(target), tally.trials, tally.outcomes["scored"], *cells])
    return buffer.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def markdown(summary: Summary, manifest: Manifest) -> str:
    plan = manifest.plan
    lines = [f"# AI Medicare evaluation: run {manifest.run_id}", ""]
    lines += [f"> **{inert(notice)}**" for notice in notices(summary)]
    lines += ["", "## What was run", ""]
    lines += [
        f"- Targets: {', '.join(inert(target) for target in plan.targets)}",
        f"- Scenarios: {', '.join(inert(p.name) for p in plan.scenarios)}; repeats: {plan.repeats}",
        f"- Plan year {plan.plan_year}; {_keys_text(plan)}",
        f"- Judges: {', '.join(inert(model) for model in plan.verifiers)}; ties: {inert(plan.adjudicator)}",
        f"- Seed {plan.seed}; plan {manifest.plan_sha256[:16]}; begun {manifest.created}",
        f"- Asked of the target: temperature {plan.target_parameters.temperature}, "
        f"at most {plan.target_parameters.max_tokens} tokens; of judges: {plan.judge_parameters.temperature}, "
        f"{plan.judge_parameters.max_tokens}",
        "",
        "### Requested, applied, served",
        "",
        *_service_table(summary),
        "",
        "## Flow",
        "",
    ]
    lines += [*_flow(summary), "", "## Scores", "", "Mean over scored trials with its 95% interval.", ""]
    rows = [
        [inert(t), str(y.outcomes["scored"]), *(estimate_text(y.estimate(n)) for n in SCORES)]
        for t, y in summary.by_target.items()
    ]
    lines += [*_table(["target", "scored", *SCORES], rows), "", "## Distribution of accuracy", ""]
    lines += [*_distribution(summary), "", *markdown_lines(summary.study), "## Common failure modes", ""]
    rows = [[inert(t), *(str(y.errors[name]) for name in _error_names(summary))] for t, y in summary.by_target.items()]
    lines += [*_table(["trials with", *_error_names(summary)], rows), "", "## Exemplary incorrect responses", ""]
    lines += [*_example_lines(summary, manifest), "", "## Ethics", "", ETHICS, ""]
    return "\n".join(lines)


def _keys_text(plan: RunPlan) -> str:
    """How sure the keys are, and from which files they were filled."""
    facts = {
        (p.scenario.scenario_id, f.fact_id): f for p in plan.scenarios for f in p.scenario.answer_key.canonical_facts
    }
    count = Counter(fact.confirmed_by or "not stated" for fact in facts.values())
    how = ", ".join(f"{number} {name}" for name, number in sorted(count.items()))
    files = ", ".join(f"{inert(name)} {digest[:16]}" for name, digest in plan.references.items())
    return f"{len(facts)} facts in the keys ({how}){f'; filled from {files}' if files else ''}"


def _service_table(summary: Summary) -> list[str]:
    rows = [
        [
            inert(name),
            inert(service.called),
            ", ".join(inert(model) for model in sorted(service.served)) or "not stated",
            "**no**" if service.differs else "yes" if service.served else "not known",
            ", ".join(sorted(service.not_applied)) or "none",
        ]
        for name, service in summary.services.items()
    ]
    return _table(["model", "called as", "served by", "as requested", "parameters not applied"], rows)


def _error_names(summary: Summary) -> list[str]:
    return sorted({name for tally in summary.by_target.values() for name in tally.errors})


def _flow(summary: Summary) -> list[str]:
    """Planned trials and where each went; every row sums to what was planned."""
    outcomes: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
    planned = summary.planned // max(1, len(summary.by_target))
    rows = [
        [inert(target), str(planned), *(str(tally.outcomes[o]) for o in outcomes), str(planned - tally.trials)]
        for target, tally in summary.by_target.items()
    ]
    return _table(["target", "planned", *(o.replace("_", " ") for o in outcomes), "not yet run"], rows)


def _distribution(summary: Summary) -> list[str]:
    """How many scored trials fall into each fifth of the accuracy scale."""
    labels = ["0.0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1.0"]
    rows = []
    for target, tally in summary.by_target.items():
        values = tally.values["accuracy"]
        counts = Counter(min(4, int(value * 5)) for value in values)
        rows.append(
            [inert(target), *(str(counts[fifth]) for fifth in range(5)), str(tally.outcomes["scored"] - len(values))]
        )
    return _table(["target", *labels, "nothing to check"], rows)


def _example_lines(summary: Summary, manifest: Manifest) -> list[str]:
    keys = {p.name: p.scenario.answer_key for p in manifest.plan.scenarios}
    lines: list[str] = []
    for example in summary.examples:
        key = keys[example.trial_id.partition(".")[0]]
        facts = {fact.fact_id: f"{fact.statement} ({fact.source})" for fact in key.canonical_facts}
        facts |= {claim.claim_id: f"Disallowed: {claim.statement}" for claim in key.disallowed()}
        lines += [
            f"- `{example.trial_id}`, claim {example.claim.claim_id}, severity {example.claim.severity}",
            f"  - Asked: {inert(example.question)}",
            f"  - Answered: “{inert(example.quote)}”",
            *(f"  - Key {cited}: {inert(facts[cited])}" for cited in example.claim.evidence),
        ]
    return lines or ["None: no claim was found to contradict the key."]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
