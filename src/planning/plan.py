"""From a study to a `RunPlan`: scenarios read, judges chosen, roles kept apart, everything checked.

Nothing is written and no call is made here. Whatever is wrong is said before anything is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ..adapters.models import resolve
from ..adapters.registry import canonical_name
from ..errors import InputError, about
from ..inputs.sources.snapshot import PAGES, bundled_folder, load_snapshot
from ..records.study import JudgeOptions, ModelSettings, Study
from ..records.target import TargetSettings
from ..schemas import (
    BackgroundFact,
    CallParameters,
    CallPolicy,
    CitationChecks,
    PlannedRubric,
    PlannedScenario,
    Role,
    RunPlan,
    Scenario,
    TargetJudges,
    UsedWording,
)
from ..storage import file_sha256
from . import clock
from .fill_facts import background_for, check_ids
from .fill_slots import is_coming, out_of_date, read_wording
from .house_rules import refuse_broken_rules
from .judges import check_judges, check_models, check_roles, families_of, judges_of_targets
from .library import Library
from .limits import check_prices_known, limits_of, prices_for
from .prompts import load_prompts
from .rubrics import check_study_points, load_rubrics
from .scenario_files import find_scenarios, read_found
from .targets import check_recorded, own_parameters, planned_targets
from .trials import slug

MAX_TRIALS = 1_000_000
AUDIT_SAMPLE = 0.1
"""Share of unmarked replies that are verified both ways with `flagged` isolation."""
JUDGE_TEMPERATURE = 0.0


def make_plan(study: Study, *, today: date | None = None) -> RunPlan:
    """Turn a study into a run plan. `today` decides which keys and models are out of date."""
    day = today or clock.today()
    parameters = CallParameters(temperature=study.temperature, max_tokens=study.max_tokens)
    named = planned_targets(study.targets, parameters)
    targets = tuple(one.name for one in named)
    asked = _scenarios(study, day)
    families = {one.name: families_of(one.name, one.settings) for one in named}
    judges = judges_of_targets(study, families)
    models = _models(study, judges.values())
    questioner = _questioner(study, asked.scenarios)
    judging = CallParameters(temperature=JUDGE_TEMPERATURE, max_tokens=study.judge_max_tokens)
    plan = RunPlan(
        scenarios=asked.scenarios,
        plan_year=asked.plan_year,
        references=asked.references,
        background=asked.background,
        wording=asked.wording,
        rubrics=asked.rubrics,
        expired=asked.expired,
        coming=is_coming(asked.plan_year, day),
        targets=targets,
        **_judge_fields(judges),
        questioner=questioner,
        api_ids={name: resolve(name) for name in (*targets, *models, *filter(None, [questioner]))},
        repeats=study.repeats,
        judge_repeats=study.judge_repeats,
        judge_sample=study.judge_sample,
        isolation=study.isolation,
        audit_sample=AUDIT_SAMPLE if study.isolation == "flagged" else 0.0,
        seed=study.seed,
        target_parameters=parameters,
        judge_parameters=judging,
        model_parameters={one.name: one.parameters for one in named if one.parameters != parameters}
        | _own("judges", study.judges, judging),
        target_settings={one.name: one.settings for one in named if one.settings != TargetSettings()},
        citation_checks=_citation_checks(study, searches=any(one.settings.search for one in named)),
        policy=call_policy(study.timeout, study.max_attempts),
        prompts=load_prompts(),
    )
    check_roles(plan)
    check_models(plan, today=day, allow_retired=study.allow_retired)
    check_recorded(plan)
    _check_size(plan)
    _check_execution(study, plan)
    return plan


def _models(options: JudgeOptions, judges: Collection[TargetJudges]) -> tuple[str, ...]:
    """Every judge that is named or takes part."""
    named = [canonical_name(judge.model) for judge in options.judges]
    verifiers = [name for one in judges for name in one.verifiers]
    readers = [name for one in judges for name in (one.extractor, one.scorer)]
    adjudicators = [one.adjudicator for one in judges if one.adjudicator]
    return tuple(dict.fromkeys((*named, *verifiers, *readers, *adjudicators)))


def _called(judges: Iterable[TargetJudges]) -> set[str]:
    """Those who verify claims or settle ties, which is never taken from an earlier run."""
    return {name for one in judges for name in (*one.verifiers, *filter(None, [one.adjudicator]))}


def _judge_fields(judges: Mapping[str, TargetJudges]) -> dict[str, Any]:
    """The fields of a plan that say who judges."""
    first = next(iter(judges.values()))
    differ = any(one != first for one in judges.values())
    return {**dict(first), "judges_by_target": dict(judges) if differ else {}}


def _citation_checks(study: Study, *, searches: bool) -> CitationChecks:
    if not study.sources and not searches:
        return CitationChecks()
    with about("sources"):
        folder = Path(study.sources) if study.sources else bundled_folder()
        return CitationChecks(sha256=file_sha256(folder / PAGES), pages=load_snapshot(folder).newest())


def call_policy(timeout_s: float, max_attempts: int = 5) -> CallPolicy:
    """A policy whose deadline leaves room for at least one attempt."""
    deadline_s = max(CallPolicy().deadline_s, timeout_s)
    return CallPolicy(max_attempts=max_attempts, timeout_s=timeout_s, deadline_s=deadline_s)


def _own(field: str, settings: Sequence[ModelSettings], shared: CallParameters) -> dict[str, CallParameters]:
    """The parameters of models that differ from the shared ones."""
    own: dict[str, CallParameters] = {}
    for one in settings:
        name, parameters = canonical_name(one.model), own_parameters(one, shared)
        if own.setdefault(name, parameters) != parameters:
            raise InputError(
                f"{name} is listed twice with different parameters. A model has one set of them.", field=field
            )
    return {name: parameters for name, parameters in own.items() if parameters != shared}


@dataclass(frozen=True)
class _Asked:
    """The scenarios of a run, made ready, and what they rest on."""

    scenarios: tuple[PlannedScenario, ...]
    plan_year: int
    references: dict[str, str]
    background: tuple[BackgroundFact, ...]
    wording: UsedWording | None
    rubrics: dict[str, PlannedRubric]
    expired: tuple[str, ...]


def _scenarios(study: Study, today: date) -> _Asked:
    with about("scenarios"):
        found = find_scenarios(study.scenarios)
    files = read_found(found)
    by_id = {file.scenario.scenario_id: file.scenario for file in files}
    _check_variants(study.variants, by_id.values())
    plan_year = study.plan_year or today.year
    library = Library(_path(study.facts), _path(study.invented_plans), today=today)
    if plan_year not in library.years and not study.plan_year:
        if not study.allow_expired:
            raise InputError(
                f"there are no figures for {plan_year} yet, the year of today's date. Add a file for it with `facts`, "
                f"or use the key of {max(library.years)} with `allow_expired`.",
                field="plan_year",
            )
        plan_year = max(library.years)
    with about("wording"):
        overlay = read_wording(Path(study.wording), by_id) if study.wording else None
    planned = tuple(one for file in files for one in file.planned(plan_year, library, study.variants, overlay))
    background = background_for(plan_year, library, {one.scenario.persona.state for one in planned})
    check_ids(planned, background)
    if study.strict:
        refuse_broken_rules(files, plan_year, Library(library.facts_file, library.invented_plans_file, today=today))
    used = None
    if overlay:
        turns = {name: tuple(turns) for name, turns in overlay.wording.scenarios.items() if name in by_id}
        used = UsedWording(title=overlay.wording.title, sha256=overlay.sha256, turns=turns)
    expired = _expired(planned, plan_year, study, today)
    asked = {one.scenario.scenario_id for one in planned}
    rubrics = load_rubrics(file for file in files if file.scenario.scenario_id in asked)
    for one in planned:
        check_study_points(one, rubrics[one.scenario.rubric_version].rubric)
    return _Asked(planned, plan_year, library.used, background.facts, used, rubrics, expired)


def _path(given: str | None) -> Path | None:
    return Path(given) if given else None


def _check_variants(names: Sequence[str], scenarios: Iterable[Scenario]) -> None:
    known = dict.fromkeys(variant.variant_id for scenario in scenarios for variant in scenario.variants)
    for name in names:
        if name not in known:
            there = f"Available: {', '.join(known)}" if known else "They have no variants"
            raise InputError(f"{name}: none of the scenarios has this variant. {there}.", field="variants")


def _expired(planned: Sequence[PlannedScenario], plan_year: int, study: Study, today: date) -> tuple[str, ...]:
    """Keys that are out of date: an error, or, where the user allows it, what every report must say."""
    why = {
        one.scenario.scenario_id: reason for one in planned if (reason := out_of_date(one.scenario, plan_year, today))
    }
    if why and not study.allow_expired:
        name, reason = next(iter(why.items()))
        more = f" ({len(why) - 1} more like it)" if len(why) > 1 else ""
        raise InputError(
            f"{name}: {reason}{more}; choose another `plan_year`, or add `allow_expired`.", field="plan_year"
        )
    return tuple(f"{name}: {reason}" for name, reason in why.items())


def replan(
    plan: RunPlan, options: JudgeOptions, *, keep_claims: bool, keep_readings: bool = False, today: date | None = None
) -> RunPlan:
    """The plan of a run that judges an earlier run's transcripts again: other judges, all else the same.

    With `keep_claims` the extractor's work is reused too, so that verdicts can be compared claim by claim; with
    `keep_readings` so is the scorer's, so that people need not do it.
    """
    kept: tuple[Role, ...] = (*(("extractor",) if keep_claims else ()), *(("scorer",) if keep_readings else ()))
    readers = {name: {role: dict(plan.judges_of(name))[role] for role in kept} for name in plan.targets}
    families = {name: families_of(name, plan.settings_of(name)) for name in plan.targets}
    judges = judges_of_targets(options, families, readers)
    prompts = load_prompts() | {role: plan.prompts[role] for role in kept}
    asked = [*plan.targets, *_models(options, judges.values()), *filter(None, [plan.questioner])]
    judging = plan.judge_parameters.model_copy(update={"max_tokens": options.judge_max_tokens})
    own = {name: own for name, own in plan.model_parameters.items() if name in asked}
    own |= _own("judges", options.judges, judging)
    reused = {model for one in readers.values() for model in one.values()}
    for model in sorted(reused):
        if plan.parameters_of(model) != own.get(model, judging):
            own[model] = plan.parameters_of(model)  # the calls that are reused had these
    again = plan.model_copy(
        update={
            **_judge_fields(judges),
            "api_ids": {name: plan.api_ids.get(name) or resolve(name) for name in asked},
            "judge_repeats": options.judge_repeats,
            "judge_sample": options.judge_sample,
            "isolation": options.isolation,
            "audit_sample": AUDIT_SAMPLE if options.isolation == "flagged" else 0.0,
            "judge_parameters": judging,
            "model_parameters": own,
            "prompts": prompts,
        }
    )
    check_roles(again)
    called = [name for name in again.judge_models() if name not in reused or name in _called(judges.values())]
    check_judges(again, called, today=today or clock.today(), allow_retired=options.allow_retired)
    return again


def _questioner(study: Study, scenarios: tuple[PlannedScenario, ...]) -> str | None:
    if not study.paraphrase:
        if study.questioner:
            raise InputError(
                f"{study.questioner} rewords questions only with `paraphrase`. Add `paraphrase`, or leave both out.",
                field="questioner",
            )
        return None
    if not any(planned.scenario.variation_knobs.paraphrase for planned in scenarios):
        raise InputError(
            "none of the scenarios allows it (variation_knobs.paraphrase). Leave it out.", field="paraphrase"
        )
    if not study.questioner:
        raise InputError(
            "a model is needed to reword the questions. Set `questioner` (offline:rephrase to try it without a key).",
            field="paraphrase",
        )
    with about("questioner"):
        return canonical_name(study.questioner)


def _check_size(plan: RunPlan) -> None:
    if plan.trial_count > MAX_TRIALS:
        raise InputError(
            f"the plan has {plan.trial_count:,} trials; {MAX_TRIALS:,} is the limit of one run. Use fewer repeats.",
            field="repeats",
        )
    slugs = [slug(target) for target in plan.targets]
    if len(set(slugs)) < len(slugs):
        raise InputError(
            f"two of them have the same short name ({', '.join(slugs)}). Run them separately.", field="targets"
        )


def _check_execution(study: Study, plan: RunPlan) -> None:
    """What is no part of the plan, but would stop the run before its first call."""
    limits_of(study)
    with about("prices"):
        prices = prices_for(plan.api_ids, _path(study.prices))
    check_prices_known(plan.api_ids, prices, study.max_cost, plan.most_searches)
