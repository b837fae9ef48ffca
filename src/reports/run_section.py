"""The report's sections on the runs, their models, scenarios and files, and on what the targets are.

Targets are bare models, with a system prompt, with search, or recorded conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..findings.cost import CallTimes
from ..findings.rule_judge import by_targets
from ..records.target import KIND_NAMES, Kind, SystemPrompt
from ..schemas import CallParameters, CanonicalFact, RunPlan
from ..store.strict_json import fingerprint
from ..text.rounded import percent
from . import read_sections
from .document import Section
from .series import Runs

SHORT_HASH = 16


def run_sections(runs: Runs) -> tuple[Section, ...]:
    """The targets, if any is more than a bare model with the study's own parameters; and what was run."""
    given = [one for run in runs.runs for one in run.found.manifest.plan.target_settings.values()]
    prompts: dict[str, SystemPrompt] = {}
    for prompt in (one.system_prompt for one in given if one.system_prompt):
        prompts.setdefault(prompt.sha256, prompt)
    return read_sections.sections(
        "run",
        runs=runs,
        lead=runs.lead_columns(target=False),
        settings_given=given,
        kind_names=KIND_NAMES,
        prompts=prompts.values(),
        spanning=CallTimes.spanning,
        percent=percent,
        key_facts=key_facts,
        confirmed_text=confirmed_text,
        parameters_text=parameters_text,
        own_parameters=own_parameters,
        by_targets=by_targets,
        roles_of=roles_of,
        fingerprint=fingerprint,
        files=[(run, *file) for run in runs.runs for file in _files(run.found.manifest.plan)],
    )


def _files(plan: RunPlan) -> Iterator[tuple[str, str, str]]:
    """Kind, name and sha256 of every file behind a run."""
    yield from (("prompt", role, prompt.sha256) for role, prompt in plan.prompts.items())
    yield from (("rubric", name, rubric.sha256) for name, rubric in plan.rubrics.items())
    yield from (("figures and invented plans", name, digest) for name, digest in plan.references.items())
    if plan.wording:
        yield "wording", plan.wording.title, plan.wording.sha256


def key_facts(plan: RunPlan) -> list[CanonicalFact]:
    """The facts of all answer keys; one that several variants share counts once."""
    facts = {
        (p.scenario.scenario_id, f.fact_id): f for p in plan.scenarios for f in p.scenario.answer_key.canonical_facts
    }
    return list(facts.values())


def confirmed_text(facts: Sequence[CanonicalFact]) -> str:
    """How many facts were confirmed in which way: `9 derived, 40 primary`."""
    count = Counter(fact.confirmed_by or "not stated" for fact in facts)
    return ", ".join(f"{number} {name}" for name, number in sorted(count.items()))


def parameters_text(parameters: CallParameters) -> str:
    temperature = "the model's default" if parameters.temperature is None else f"{parameters.temperature:g}"
    return f"temperature {temperature}, at most {parameters.max_tokens} tokens"


def own_parameters(plan: RunPlan) -> list[str]:
    return [f"{model}: {parameters_text(own)}" for model, own in plan.model_parameters.items()]


def roles_of(plan: RunPlan, name: str) -> list[str]:
    """Every role that a model has in a run."""
    judges = [one for one, _ in plan.groups_of_judges()]
    models = {
        "target": plan.targets,
        "verifier": plan.all_verifiers,
        "extractor": [one.extractor for one in judges],
        "scorer": [one.scorer for one in judges],
        "adjudicator": [one.adjudicator for one in judges],
        "questioner": (plan.questioner,),
    }
    return [role for role, listed in models.items() if name in listed]


def kinds_of(plan: RunPlan) -> list[Kind]:
    """The kinds of a plan's targets, each once, in the order of their names' table."""
    found = {plan.settings_of(target).kind for target in plan.targets}
    return [kind for kind in KIND_NAMES if kind in found]
