"""Who judges a study, and the rules that keep targets, judges and the questioner apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from itertools import cycle, islice
from pathlib import Path

from ..adapters.models import check_not_retired
from ..adapters.registry import PROVIDERS, canonical_name, check_exists, check_settings
from ..errors import ConfigError, about
from ..records.model_name import family, family_of_id, is_person, split_name
from ..records.study import JudgeOptions
from ..records.target import TargetSettings
from ..schemas import Role, RunPlan, TargetJudges
from ..store.package_data import data_folder
from .trials import slug

OFFLINE_JUDGE = "offline:rules"
NO_ADJUDICATOR = "none"
"""How a study says that ties stay open for a person, whichever keys are set."""
NO_TARGET = ""
PAIR = 2
"""Different models that verify the replies of a target, if nobody says which."""


def families_of(target: str, settings: TargetSettings) -> frozenset[str]:
    """The model families of a target, and of what answered in its recorded conversations."""
    system = settings.recorded.system if settings.recorded else None
    recorded = {family_of_id(system), family(f"transcript:{slug(system)}")} if system else set()
    return frozenset({family(target), *recorded})


def judges_of_targets(
    options: JudgeOptions,
    families: Mapping[str, Collection[str]],
    readers: Mapping[str, Mapping[Role, str]] | None = None,
) -> dict[str, TargetJudges]:
    """Who judges each target: the judges given, or the defaults.

    Of the defaults, those that may judge more of the targets come first, and each target gets the first two that are
    not of its family. So two judges that may judge all targets do so, and otherwise targets have as many of their
    judges in common as can be. Of judges that are given, a target gets the first two that are not of its family if more
    are listed than verify; a list may repeat models to say so, which is how a study in full says who judges whom.

    `families`: those that may not judge a target. Without targets, as in a judge check, one entry without a name.
    `readers`: the extractor or the scorer of each target, where its work is taken from an earlier run.
    """
    ranked = judge_models(options, families)
    offered = tuple(dict.fromkeys((*ranked, *_default_judges(families, with_key=True))))
    needed = options.verifiers if options.judges else PAIR
    apart = not options.judges
    if len(options.judges) > needed and any(family(name) in own for own in families.values() for name in ranked):
        needed, apart = PAIR, True
    found = {}
    for target, own in (families or {NO_TARGET: ()}).items():
        others = [name for name in ranked if family(name) not in own] if apart else []
        models = others or ranked  # if none is left, `check_roles` says so
        verifiers = tuple(islice(cycle(models[:needed]), options.verifiers))
        reading = (readers or {}).get(target, {})
        found[target] = TargetJudges(
            verifiers=verifiers,
            extractor=reading.get("extractor") or reader_model(options, models),
            scorer=reading.get("scorer") or reader_model(options, models),
            adjudicator=adjudicator_model(options, verifiers, offered, own),
        )
    return found


def judge_models(options: JudgeOptions, families: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The judge models given, or the defaults: rules for fake targets, other providers' models for real ones.

    Without targets, as in a judge check, the rules are the last resort.
    """
    if options.judges:
        with about("judges"):
            return tuple(dict.fromkeys(canonical_name(judge.model) for judge in options.judges))
    if families and all(split_name(target).provider == "fake" for target in families):
        return (OFFLINE_JUDGE,)
    usable = _default_judges(families, with_key=True)
    if not usable and not families:
        return (OFFLINE_JUDGE,)
    without = [target for target, own in families.items() if all(family(name) in own for name in usable)]
    if without:
        others = _default_judges({target: families[target] for target in without}, with_key=False)
        keys = ", ".join(str(PROVIDERS[split_name(name).provider].key_variable) for name in others)
        raise ConfigError(
            f"no judge is available for {', '.join(without)}. A judge must come from a different provider than the "
            f"target, and no such provider has an API key. Set {keys or 'the key of another provider'} (two providers "
            f"are best), or name judges with `judges`. To try it without a key, use {OFFLINE_JUDGE}.",
            field="judges",
        )
    return usable


def _default_judges(families: Mapping[str, Collection[str]], *, with_key: bool) -> tuple[str, ...]:
    """Default judges, those that may judge more of the targets first, then in the order of the registry's table."""
    own = Counter(name for names in families.values() for name in names)
    models = {
        f"{provider.name}:{provider.default_judge}": own[family(f"{provider.name}:{provider.default_judge}")]
        for provider in PROVIDERS.values()
        if provider.default_judge and (provider.key_is_set() or not with_key)
    }
    return tuple(name for name in sorted(models, key=models.__getitem__) if models[name] < max(1, len(families)))


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
    options: JudgeOptions, verifiers: Sequence[str], offered: Sequence[str], own: Collection[str]
) -> str | None:
    """The model given; else the first of those offered that is of a third family; else None."""
    if options.adjudicator == NO_ADJUDICATOR:
        return None
    if options.adjudicator:
        with about("adjudicator"):
            return canonical_name(options.adjudicator)
    if OFFLINE_JUDGE in verifiers:
        return None  # a demo or test: it calls no model that was not asked for
    used = {*own, *(family(model) for model in verifiers)}
    return next((model for model in offered if family(model) not in used), None)


def check_roles(plan: RunPlan) -> None:
    """Questioner, target and judge are different models; a judge is never from the target's family."""
    if plan.questioner in plan.judge_models():
        raise ConfigError(f"{plan.questioner} is a judge. The questioner must be another model.", field="questioner")
    fields = _fields(plan)
    for target in plan.targets:
        served = families_of(target, plan.settings_of(target))
        judges = plan.judges_of(target)
        for name in (*judges.models, *filter(None, [plan.questioner])):
            if family(name) in served:
                task = "reword questions for" if name == plan.questioner else "judge"
                raise ConfigError(
                    f"{name} cannot {task} {target} because both are from the {family(name)} model family. "
                    "Name a model from another family.",
                    field=fields[name],
                )
        check_adjudicator(judges.adjudicator, judges.verifiers)


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
    groups = [judges for judges, _ in plan.groups_of_judges()]
    otherwise = {name for one in groups for name in (*one.verifiers, one.extractor, one.scorer)}
    fields |= dict.fromkeys(
        (one.adjudicator for one in groups if one.adjudicator and one.adjudicator not in otherwise), "adjudicator"
    )
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
