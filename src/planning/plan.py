"""From what the user asked to a `RunPlan`: scenarios read, judges chosen, roles kept apart, everything checked.

Nothing is written and no call is made here; whatever is wrong is said before anything is spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import cycle, islice
from pathlib import Path
from re import sub

from ..adapters.models import check_not_retired, resolve
from ..adapters.registry import PROVIDERS, canonical_name, check_usable
from ..errors import ConfigError, InputError
from ..records.model_name import family, split_name
from ..schemas import (
    CallParameters,
    CallPolicy,
    PlannedScenario,
    RunPlan,
    Scenario,
    UsedWording,
)
from ..store.package_data import data_folder
from ..store.strict_json import derive_seed
from .clock import today
from .fill_slots import Library, out_of_date, read_wording
from .prompts import load_prompts
from .rubrics import load_rubrics
from .scenario_files import read_scenarios

OFFLINE_JUDGE = "offline:rules"
MAX_TRIALS = 1_000_000
MAX_JUDGES = 25
MAX_REPEATS = 20
DEFAULT_POLICY = CallPolicy()


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line gives."""

    scenarios: list[str]
    targets: list[str]
    judges: int = 2
    judge_models: list[str] = field(default_factory=list)
    adjudicator_model: str | None = None
    paraphrase: bool = False
    questioner_model: str | None = None
    seed: int = 42
    repeats: int = 1
    temperature: float | None = 0.0
    max_tokens: int = 2_048
    policy: CallPolicy = DEFAULT_POLICY
    allow_retired: bool = False
    judge_repeats: int = 0
    judge_sample: float = 0.25
    plan_year: int | None = None
    """None: the year of `today`."""
    allow_expired: bool = False
    variants: list[str] = field(default_factory=list)
    wording: Path | None = None
    facts_file: Path | None = None
    plan_file: Path | None = None
    today: date = field(default_factory=today)


@dataclass(frozen=True)
class Trial:
    """One scenario put to one target once."""

    trial_id: str
    planned: PlannedScenario
    target: str
    repetition: int

    @property
    def questions_id(self) -> str:
        """Names the wording that all targets of one scenario and repetition share."""
        return f"{self.planned.name}.r{self.repetition}"

    def question_seed(self, run_seed: int) -> int:
        """The same for every target and variant, so that all are asked the same."""
        return derive_seed(run_seed, self.planned.scenario.scenario_id, self.repetition, "questioner")

    def seed(self, run_seed: int, *use: object) -> int:
        return derive_seed(run_seed, self.planned.name, self.target, self.repetition, *use)


def make_plan(options: RunOptions) -> RunPlan:
    targets = _unique([canonical_name(name) for name in options.targets], "--target")
    _check_judges(options)
    asked = _scenarios(options)
    scenarios = asked.scenarios
    models = _judge_models(options, targets)
    adjudicator = (
        canonical_name(options.adjudicator_model) if options.adjudicator_model else _adjudicator(models, targets)
    )
    questioner = _questioner(options, scenarios)
    verifiers = tuple(islice(cycle(models), options.judges))
    plan = RunPlan(
        scenarios=scenarios,
        plan_year=asked.plan_year,
        references=asked.references,
        wording=asked.wording,
        rubrics=load_rubrics(scenarios),
        expired=asked.expired,
        targets=targets,
        verifiers=verifiers,
        extractor=models[0],
        scorer=models[0],
        adjudicator=adjudicator,
        questioner=questioner,
        api_ids={name: resolve(name) for name in (*targets, *models, adjudicator, *filter(None, [questioner]))},
        repeats=options.repeats,
        judge_repeats=options.judge_repeats,
        judge_sample=options.judge_sample,
        seed=options.seed,
        target_parameters=CallParameters(temperature=options.temperature, max_tokens=options.max_tokens),
        judge_parameters=CallParameters(temperature=0.0, max_tokens=16_000),
        policy=options.policy,
        prompts=load_prompts(),
    )
    _keep_roles_apart(plan)
    _check_models(plan, options)
    _check_third_family(plan, options)
    _check_size(plan)
    return plan


@dataclass(frozen=True)
class _Asked:
    """The scenarios of a run, made ready, and what they rest on."""

    scenarios: tuple[PlannedScenario, ...]
    plan_year: int
    references: dict[str, str]
    wording: UsedWording | None
    expired: tuple[str, ...]


def _scenarios(options: RunOptions) -> _Asked:
    files = read_scenarios(options.scenarios)
    by_id = {file.scenario.scenario_id: file.scenario for file in files}
    _check_variants(options.variants, by_id.values())
    plan_year = options.plan_year or options.today.year
    library = Library(options.facts_file, options.plan_file)
    if plan_year not in library.years and not options.plan_year and options.allow_expired:
        plan_year = max(library.years)
    overlay = read_wording(options.wording, by_id) if options.wording else None
    planned = tuple(one for file in files for one in file.planned(plan_year, library, options.variants, overlay))
    if not planned:
        raise InputError(f"--variant {', '.join(options.variants)}: leaves no scenario to ask.")
    used = None
    if overlay:
        turns = {name: tuple(turns) for name, turns in overlay.wording.scenarios.items() if name in by_id}
        used = UsedWording(title=overlay.wording.title, sha256=overlay.sha256, turns=turns)
    return _Asked(planned, plan_year, library.used, used, _expired(planned, plan_year, options))


def _check_variants(names: list[str], scenarios: Iterable[Scenario]) -> None:
    known = dict.fromkeys(variant.variant_id for scenario in scenarios for variant in scenario.variants)
    for name in names:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "these scenarios have none"
            raise InputError(f"--variant {name}: no scenario given has it; {there}.")


def _expired(planned: Sequence[PlannedScenario], plan_year: int, options: RunOptions) -> tuple[str, ...]:
    """Keys that are out of date: an error, or, where the user allows it, what every report must say."""
    why = {
        one.scenario.scenario_id: reason
        for one in planned
        if (reason := out_of_date(one.scenario, plan_year, options.today))
    }
    if why and not options.allow_expired:
        name, reason = next(iter(why.items()))
        more = f" ({len(why) - 1} more like it)" if len(why) > 1 else ""
        raise InputError(f"{name}: {reason}{more}; choose another --plan-year, or add --allow-expired.")
    return tuple(f"{name}: {reason}" for name, reason in why.items())


def replan(plan: RunPlan, options: RunOptions, *, keep_claims: bool) -> RunPlan:
    """The plan of a run that judges an earlier run's transcripts again: other judges, all else the same.

    With `keep_claims` the extractor's work is taken over too, so that verdicts can be compared claim by claim.
    """
    models = _judge_models(options, plan.targets)
    adjudicator = (
        canonical_name(options.adjudicator_model) if options.adjudicator_model else _adjudicator(models, plan.targets)
    )
    prompts = load_prompts()
    extractor = models[0]
    if keep_claims:
        extractor, prompts = plan.extractor, {**prompts, "extractor": plan.prompts["extractor"]}
    asked = [*plan.targets, *models, adjudicator, extractor, *filter(None, [plan.questioner])]
    again = plan.model_copy(
        update={
            "verifiers": tuple(islice(cycle(models), options.judges)),
            "extractor": extractor,
            "scorer": models[0],
            "adjudicator": adjudicator,
            "api_ids": {name: plan.api_ids.get(name) or resolve(name) for name in asked},
            "judge_repeats": options.judge_repeats,
            "judge_sample": options.judge_sample,
            "prompts": prompts,
        }
    )
    _check_judges(options)
    _keep_roles_apart(again)
    _check_third_family(again, options)
    for judge in again.judge_models():
        if not (keep_claims and judge == extractor):
            check_not_retired(judge, today=options.today, allow_retired=options.allow_retired)
            check_usable(judge)
            check_is_judge(judge)
    return again


def _check_judges(options: RunOptions) -> None:
    if options.judges < 2:
        raise InputError(f"--judges {options.judges}: at least two independent verifiers are needed; give 2 or more.")
    if options.judges > MAX_JUDGES:
        raise InputError(f"--judges {options.judges}: {MAX_JUDGES} is the most a run takes.")
    if not 0 <= options.judge_repeats <= MAX_REPEATS:
        raise InputError(f"--judge-repeats {options.judge_repeats}: give 0 to {MAX_REPEATS}.")
    if not 0 < options.judge_sample <= 1:
        raise InputError(f"--judge-sample {options.judge_sample}: give a share above 0 and up to 1.")


def _check_third_family(plan: RunPlan, options: RunOptions) -> None:
    """Where three makers could judge, ties are settled by the one that is no verifier's."""
    families = {family(model) for model in plan.verifiers}
    if len(families) < 2 or family(plan.adjudicator) not in families:
        return
    others = [*options.judge_models, *_default_judges(plan.targets, with_key=True)]
    third = next((name for name in map(canonical_name, others) if family(name) not in families), None)
    if third:
        raise ConfigError(
            f"{plan.adjudicator} may not settle ties between {', '.join(dict.fromkeys(plan.verifiers))}: it is of the "
            f"family of one of them, and a third is at hand; use --adjudicator-model {third}."
        )


def _unique(names: list[str], flag: str) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{flag} {name}: stands more than once; use --repeats for repeated trials.")
    return tuple(names)


def _judge_models(options: RunOptions, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The judge models given, or the defaults: rules for fakes, other makers' models for real targets."""
    if options.judge_models:
        return tuple(dict.fromkeys(canonical_name(name) for name in options.judge_models))
    if all(split_name(target).provider == "fake" for target in targets):
        return (OFFLINE_JUDGE,)
    usable = _default_judges(targets, with_key=True)
    if not usable:
        keys = ", ".join(
            str(PROVIDERS[split_name(name).provider].key_variable) for name in _default_judges(targets, with_key=False)
        )
        raise ConfigError(
            f"No judge for {', '.join(targets)}: a judge must be of another maker than the target, and none has a key. "
            f"Set {keys or 'a key of another maker'} (two makers are best), or name judges with --judge-model; "
            f"to try out without a key: --judge-model {OFFLINE_JUDGE}"
        )
    return usable[:2]


def _default_judges(targets: tuple[str, ...], *, with_key: bool) -> tuple[str, ...]:
    """Default judges of makers that no target is of, in the order of the registry's table."""
    families = {family(target) for target in targets}
    return tuple(
        f"{provider.name}:{provider.default_judge}"
        for provider in PROVIDERS.values()
        if provider.default_judge
        and family(f"{provider.name}:{provider.default_judge}") not in families
        and (provider.key_is_set() or not with_key)
    )


def _adjudicator(models: tuple[str, ...], targets: tuple[str, ...]) -> str:
    """A third maker's model where there is one: among those given, else among those with a key."""
    used = {family(model) for model in models[:2]}
    if models[0] == OFFLINE_JUDGE:
        return OFFLINE_JUDGE
    for model in (*models[2:], *_default_judges(targets, with_key=True)):
        if family(model) not in used:
            return model
    return models[0]


def _questioner(options: RunOptions, scenarios: tuple[PlannedScenario, ...]) -> str | None:
    if not options.paraphrase:
        if options.questioner_model:
            raise InputError("--questioner-model: is used only with --paraphrase; add it or leave both out.")
        return None
    if not any(planned.scenario.variation_knobs.paraphrase for planned in scenarios):
        raise InputError("--paraphrase: no scenario given allows it (variation_knobs.paraphrase); leave the flag out.")
    if not options.questioner_model:
        raise InputError(
            "--paraphrase: name the model that rewords with --questioner-model (offline:rephrase to try out)."
        )
    return canonical_name(options.questioner_model)


def _keep_roles_apart(plan: RunPlan) -> None:
    """Questioner, responder and judge are different models; a judge is never of the target's family."""
    for target in plan.targets:
        for judge in plan.judge_models():
            if family(judge) == family(target):
                raise ConfigError(
                    f"{judge} may not judge {target}: both are of the {family(target)} family; "
                    "name a judge of another maker with --judge-model (or --adjudicator-model)."
                )
        if plan.questioner and family(plan.questioner) == family(target):
            raise ConfigError(f"{plan.questioner} may not reword questions for {target}: both are of one family.")
    if plan.questioner in plan.judge_models():
        raise ConfigError(f"{plan.questioner} is a judge; the questioner must be another model.")


def _check_models(plan: RunPlan, options: RunOptions) -> None:
    for name in plan.api_ids:
        check_not_retired(name, today=options.today, allow_retired=options.allow_retired)
        check_usable(name)
    for judge in plan.judge_models():
        check_is_judge(judge)
    for target in plan.targets:
        if split_name(target).provider == "offline":
            raise ConfigError(f"{target}: is a judge, not a target; use one of the fake: targets to try out.")
        if split_name(target).provider == "fake":
            for planned in plan.scenarios:
                if not (data_folder("fakes") / f"{planned.scenario.scenario_id}.json").is_file():
                    raise ConfigError(
                        f"{planned.path}: {target} has no canned replies to scenario {planned.scenario.scenario_id!r}; "
                        f"use a real target, or write them in fakes/{planned.scenario.scenario_id}.json."
                    )


def check_is_judge(judge: str) -> None:
    if split_name(judge).provider == "fake":
        raise ConfigError(f"{judge}: is a canned target, not a judge; to try out without a key use {OFFLINE_JUDGE}.")
    if judge == "offline:rephrase":
        raise ConfigError("offline:rephrase rewords questions and judges nothing; use --judge-model offline:rules.")


def _check_size(plan: RunPlan) -> None:
    count = len(plan.scenarios) * len(plan.targets) * plan.repeats
    if count > MAX_TRIALS:
        raise InputError(f"The plan has {count:,} trials; {MAX_TRIALS:,} is the most one run takes. Lower --repeats.")
    slugs = [_slug(target) for target in plan.targets]
    if len(set(slugs)) < len(slugs):
        raise InputError(f"Two targets have the same short name ({', '.join(slugs)}); run them apart.")


def _slug(name: str) -> str:
    return sub(r"[^A-Za-z0-9_-]+", "-", name)


def trials(plan: RunPlan) -> list[Trial]:
    """All trials in plan order: by scenario, then repetition, then target, so that targets are asked close together."""
    return [
        Trial(f"{planned.name}.{_slug(target)}.r{repetition}", planned, target, repetition)
        for planned in plan.scenarios
        for repetition in range(1, plan.repeats + 1)
        for target in plan.targets
    ]


def rejudged(plan: RunPlan, trial: Trial) -> bool:
    """Whether a trial is of the sample that is judged again: drawn by the seed, whatever else is in the plan."""
    if not plan.judge_repeats:
        return False
    return derive_seed(plan.seed, "rejudged", trial.trial_id) % 10_000 < 10_000 * plan.judge_sample


def planned_calls(plan: RunPlan) -> dict[str, int]:
    """Calls by role if every turn is asked, every first answer is fit, and no claim is tied."""
    turns = sum(len(planned.scenario.scripted_turns) for planned in plan.scenarios) * plan.repeats * len(plan.targets)
    reworded = sum(planned.scenario.variation_knobs.paraphrase for planned in plan.scenarios)
    return {
        "questioner": reworded * plan.repeats if plan.questioner else 0,
        "target": turns,
        "extractor": turns,
        "verifier": round(turns * len(plan.verifiers) * (1 + plan.judge_repeats * plan.judge_sample)),
        "scorer": turns,
        "adjudicator": 0,
    }
