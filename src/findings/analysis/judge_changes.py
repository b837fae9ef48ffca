"""What differs between the judging of two runs: models, prompts, rubrics and rules, as their manifests have it."""

from __future__ import annotations

from collections.abc import Iterator

from ...schemas import Manifest, RunPlan
from .read_run import software_version


def judge_changes(old: Manifest, new: Manifest) -> Iterator[str]:
    """One clause for each difference."""
    before, after = old.plan, new.plan
    if before.verifiers != after.verifiers:
        yield f"judges: {', '.join(before.verifiers)} before, {', '.join(after.verifiers)} now"
    for what, was, now in (
        ("adjudicator", before.adjudicator or "none", after.adjudicator or "none"),
        ("extractor", before.extractor, after.extractor),
        ("scorer", before.scorer, after.scorer),
        ("claims per verifier call", before.isolation, after.isolation),
        ("background facts", str(len(before.background)), str(len(after.background))),
        ("judge parameters", _parameters(before), _parameters(after)),
    ):
        if was != now:
            yield f"{what}: {was} before, {now} now"
    for version, rubric in before.rubrics.items():
        if version in after.rubrics and rubric.sha256 != after.rubrics[version].sha256:
            yield f"rubric {version} changed"
    for role, prompt in before.prompts.items():
        if prompt.sha256 != after.prompts[role].sha256:
            yield f"prompt of the {role} changed"
    was_version, now_version = software_version(old), software_version(new)
    if was_version != now_version:
        yield f"medicare-eval {was_version} before, {now_version} now"
    if old.format != new.format:
        yield f"run format {old.format} before, {new.format} now: the rules that turn verdicts into results changed"


def _parameters(plan: RunPlan) -> str:
    limits = plan.judge_parameters
    return f"temperature {limits.temperature}, at most {limits.max_tokens} tokens"
