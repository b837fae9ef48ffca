"""Who judges a study, and the rules that keep targets, judges and the questioner apart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from ..adapters.models import check_not_retired
from ..adapters.registry import PROVIDERS, canonical_name, check_exists, check_settings
from ..errors import ConfigError, about
from ..records.model_name import family, family_of_id, is_person, split_name
from ..records.study import JudgeOptions
from ..schemas import RunPlan
from ..store.package_data import data_folder

OFFLINE_JUDGE = "offline:rules"
NO_ADJUDICATOR = "none"
"""How a study says that ties stay open for a person, whichever keys are set."""


def judge_models(options: JudgeOptions, targets: Sequence[str], systems: Sequence[str] = ()) -> tuple[str, ...]:
    """The judge models given, or the defaults: rules for fake targets, other providers' models for real ones.

    Without targets, as in a judge check, the rules are the last resort. `systems`: what answered in recorded
    conversations.
    """
    if options.judges:
        with about("judges"):
            return tuple(dict.fromkeys(canonical_name(judge.model) for judge in options.judges))
    if targets and all(split_name(target).provider == "fake" for target in targets):
        return (OFFLINE_JUDGE,)
    answering = [*targets, *systems]
    usable = _default_judges(answering, with_key=True)
    if not usable and not targets:
        return (OFFLINE_JUDGE,)
    if not usable:
        others = _default_judges(answering, with_key=False)
        keys = ", ".join(str(PROVIDERS[split_name(name).provider].key_variable) for name in others)
        raise ConfigError(
            f"no judge is available for {', '.join(targets)}. A judge must come from a different provider than the "
            f"target, and no such provider has an API key. Set {keys or 'the key of another provider'} (two providers "
            f"are best), or name judges with `judges`. To try it without a key, use {OFFLINE_JUDGE}.",
            field="judges",
        )
    return usable[:2]


def _default_judges(targets: Sequence[str], *, with_key: bool) -> tuple[str, ...]:
    """Default judges of providers that have no target in the study, in the order of the registry's table."""
    families = {family(target) for target in targets}
    return tuple(
        f"{provider.name}:{provider.default_judge}"
        for provider in PROVIDERS.values()
        if provider.default_judge
        and family(f"{provider.name}:{provider.default_judge}") not in families
        and (provider.key_is_set() or not with_key)
    )


def reader_model(options: JudgeOptions, models: Sequence[str]) -> str:
    """Who splits replies into claims and reads them: the model given, or the first judge that is no person."""
    if options.reader:
        with about("reader"):
            reader = canonical_name(options.reader)
            if is_person(reader):
                raise ConfigError(f"{reader} is a person. People verify claims and settle ties; name a model here.")
            return reader
    found = next((model for model in models if not is_person(model)), None)
    if found is None:
        raise ConfigError(
            "people verify claims, and a model must find the claims in a reply. Name it, or judge a run again.",
            field="reader",
        )
    return found


def adjudicator_model(
    options: JudgeOptions, verifiers: Sequence[str], targets: Sequence[str], systems: Sequence[str] = ()
) -> str | None:
    """The model given; else one of a third family, among the judges given, then among those with a key; else None."""
    if options.adjudicator == NO_ADJUDICATOR:
        return None
    if options.adjudicator:
        with about("adjudicator"):
            return canonical_name(options.adjudicator)
    if OFFLINE_JUDGE in verifiers:
        return None  # a demo or test: it calls no model that was not asked for
    used = {family(model) for model in verifiers}
    given = [canonical_name(judge.model) for judge in options.judges]
    offered = (*given, *_default_judges([*targets, *systems], with_key=True))
    return next((model for model in offered if family(model) not in used), None)


def check_roles(plan: RunPlan) -> None:
    """Questioner, target and judge are different models; a judge is never from the target's family."""
    if plan.questioner in plan.judge_models():
        raise ConfigError(f"{plan.questioner} is a judge. The questioner must be another model.", field="questioner")
    fields = _fields(plan)
    for target in plan.targets:
        recorded = plan.settings_of(target).recorded
        served = {family(target)} | ({family_of_id(recorded.system)} if recorded else set())
        for name in (*plan.judge_models(), *filter(None, [plan.questioner])):
            if family(name) in served:
                task = "reword questions for" if name == plan.questioner else "judge"
                raise ConfigError(
                    f"{name} cannot {task} {target} because both are from the {family(name)} model family. "
                    "Name a model from another family.",
                    field=fields[name],
                )
    check_adjudicator(plan.adjudicator, plan.verifiers)


def check_adjudicator(adjudicator: str | None, verifiers: Sequence[str]) -> None:
    """Whoever settles ties is of another family than the verifiers."""
    if adjudicator and family(adjudicator) in {family(model) for model in verifiers}:
        raise ConfigError(
            f"{adjudicator} cannot settle ties of {' and '.join(dict.fromkeys(verifiers))} because it "
            "is from the same model family as one of them. Name a model of a third family, or leave it out: ties then "
            "stay open for a person.",
            field="adjudicator",
        )


def _fields(plan: RunPlan) -> dict[str, str]:
    """Each model of a plan, with the field of a study that names it."""
    fields = dict.fromkeys(plan.api_ids, "judges") | dict.fromkeys(plan.targets, "targets")
    fields |= dict.fromkeys(plan.judge_models(), "judges")
    if plan.adjudicator and plan.adjudicator not in (*plan.verifiers, plan.extractor, plan.scorer):
        fields[plan.adjudicator] = "adjudicator"
    return fields | ({plan.questioner: "questioner"} if plan.questioner else {})


def check_is_judge(judge: str) -> None:
    if split_name(judge).provider == "fake":
        raise ConfigError(f"{judge} is a canned target, not a judge. To try it without a key use {OFFLINE_JUDGE}.")
    if judge == "offline:rephrase":
        raise ConfigError(f"{judge} rewords questions and judges nothing. Use {OFFLINE_JUDGE}.")


def check_judges(plan: RunPlan, judges: Sequence[str], *, today: date, allow_retired: bool) -> None:
    """Raise now, before anything is spent, where a judge cannot be used."""
    for judge in judges:
        _check_model(judge, _fields(plan)[judge], today=today, allow_retired=allow_retired)


def check_models(plan: RunPlan, *, today: date, allow_retired: bool) -> None:
    """Raise now, before anything is spent, where a model cannot be used in its role."""
    for name, field in _fields(plan).items():
        _check_model(name, field, today=today, allow_retired=allow_retired)
    for target in plan.targets:
        if split_name(target).provider == "fake":
            _check_canned_replies(plan, target)


def _check_model(name: str, field: str, *, today: date, allow_retired: bool) -> None:
    with about(field):
        check_not_retired(name, today=today, allow_retired=allow_retired)
        check_exists(name)
        if field in ("judges", "adjudicator"):
            check_is_judge(name)
        elif field == "targets" and split_name(name).provider == "offline":
            raise ConfigError(f"{name} is a judge, not a target. To try it without a key use a fake: target.")
    check_settings(name)  # keys and SDKs are no part of a study


def _check_canned_replies(plan: RunPlan, target: str) -> None:
    for planned in plan.scenarios:
        name = f"{planned.scenario.scenario_id}.json"
        if not (data_folder("fakes") / name).is_file():
            raise ConfigError(
                f"{planned.path}: {target} has no canned replies for scenario {planned.scenario.scenario_id!r}. "
                f"Use a real target, or write them in {Path('fakes') / name}.",
                field="targets",
            )
