"""What a run knows for the reporting checklist: the values for the {placeholders} of checklist.json, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ... import storage
from ...records.preregistration import Registration
from ...schemas import CODES, RunPlan
from ...stats.agreement import Agreement
from ...stats.clustered import ClusteredShare
from ...stats.intervals import Share, mean_interval, wilson
from ...text.count import counted
from ...text.escape import inert
from ..analysis.cost import CallTimes, read_calls
from ..analysis.judge_agreement import judging
from ..analysis.key_coverage import key_coverage
from ..analysis.pairs import values_of
from ..analysis.read_run import LABELS, OUTCOMES, Findings, software_version
from ..analysis.rule_judge import offline_notices
from ..analysis.trial_row import SCORES, Row
from .run_section import NO_ADJUDICATOR, confirmed_text, key_facts, parameters_text, roles_of
from .score_section import knows_tampered

Value = str | list[str] | None
"""None leaves out every line with this placeholder, a list repeats the line; an empty text just keeps it."""
AUTHOR = "**AUTHOR:**"


def facts_of(found: Findings, registration: Registration | None) -> dict[str, Value]:
    return (
        _run_facts(found)
        | _model_facts(found)
        | _question_facts(found)
        | _key_facts(found.manifest.plan)
        | _judge_facts(found)
        | _result_facts(found)
        | _registration_facts(registration)
    )


def _run_facts(found: Findings) -> dict[str, Value]:
    manifest, plan = found.manifest, found.manifest.plan
    done = len(found.rows)
    transcripts = manifest.transcripts
    names = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)
    return {
        "author": AUTHOR,
        "version": inert(software_version(manifest) or "(version not recorded)"),
        "versions": ", ".join(f"{inert(name)} {inert(version)}" for name, version in manifest.versions.items()),
        "run_id": inert(manifest.run_id),
        "created": inert(manifest.created),
        "transcripts": f"{inert(transcripts.run_id)} (manifest sha256 `{transcripts.manifest_sha256}`)"
        if transcripts
        else None,
        "offline_notice": next(map(inert, offline_notices([manifest])), None),
        "planned": counted(found.planned, "trial"),
        "done": str(done),
        "repeats": counted(plan.repeats, "time"),
        "models": counted(len(plan.targets), "model"),
        "size": f"{counted(len(plan.scenarios), 'conversation')} × {counted(len(plan.targets), 'model')} × "
        f"{counted(plan.repeats, 'repeat')}",
        "plan_sha256": manifest.plan_sha256,
        "head": found.head,
        "sealed": "sealed" if found.sealed else "not sealed: the run is not complete",
        "files": [
            f"{name}: sha256 `{storage.file_sha256(found.folder / name)}`"
            for name in names
            if (found.folder / name).is_file()
        ],
    }


def _model_facts(found: Findings) -> dict[str, Value]:
    plan = found.manifest.plan
    times = read_calls(found.folder, found.manifest).times
    of_targets = CallTimes.spanning([times[target] for target in plan.targets if target in times])
    left_out = [
        f"{inert(name)}: {inert(', '.join(sorted(service.not_applied)))}"
        for name, service in found.services.items()
        if service.not_applied
    ]
    return {
        "models_table": _models_table(found),
        "days_by_model": [f"{inert(name)}: {_days(one)}" for name, one in times.items()],
        "days_of_targets": (f"from {days}" if " to " in (days := _days(of_targets)) else f"on {days}")
        if of_targets
        else None,
        "target_parameters": parameters_text(plan.target_parameters),
        "judge_parameters": parameters_text(plan.judge_parameters),
        "own_parameters": [f"{inert(name)}: {parameters_text(own)}" for name, own in plan.model_parameters.items()],
        "not_applied": "; ".join(left_out) or "none",
        "seed": str(plan.seed),
        "max_attempts": str(plan.policy.max_attempts),
        "deadline": f"{plan.policy.deadline_s:g}",
        "max_asks": str(plan.policy.max_asks),
        "prompt_files": [f"{role}: `{prompt.sha256}`" for role, prompt in plan.prompts.items()],
    }


def _models_table(found: Findings) -> str:
    rows = []
    for name, service in found.services.items():
        roles = ", ".join("under test" if role == "target" else role for role in roles_of(found.manifest.plan, name))
        served = ", ".join(inert(one) for one in sorted(service.served)) or "not stated"
        same = "**no**" if service.differs else "yes" if service.served else "unknown"
        not_applied = inert(", ".join(sorted(service.not_applied))) or "none"
        rows.append([inert(name), roles, inert(service.called), served, same, not_applied])
    return _table(
        ["model", "role", "called as", "served by", "as requested", "parameters not applied"], rows, numbers=False
    )


def _question_facts(found: Findings) -> dict[str, Value]:
    plan = found.manifest.plan
    scenarios = [planned.scenario for planned in plan.scenarios]
    turns = [turn for scenario in scenarios for turn in scenario.scripted_turns]
    study_groups = sum(rule.study_group is not None for rule in found.rules.values())
    conditional = sum(turn.condition is not None for turn in turns)
    several = sum(len(scenario.scripted_turns) > 1 for scenario in scenarios)
    languages = {str(scenario.persona.language) for scenario in scenarios if scenario.persona.language}
    wording = "the scenarios' own wording; Q1 names their files"
    if plan.wording:
        wording = f"the wording of {inert(plan.wording.title)} (sha256 `{plan.wording.sha256}`), otherwise {wording}"
    return {
        "wording": wording,
        "questioner": inert(plan.questioner) if plan.questioner else None,
        "conversations": counted(len(scenarios), "conversation"),
        "turns": counted(len(turns), "turn"),
        "study_groups": counted(study_groups, "question group") if study_groups else None,
        "scenario_files": [f"{inert(planned.name)}: `{planned.sha256}`" for planned in plan.scenarios],
        "several_questions": f"{several} of {len(scenarios)}",
        "conditional_turns": f"{counted(conditional, 'turn')} {_was(conditional)}" if conditional else None,
        "languages": inert(", ".join(sorted(map(str, languages)))) if languages else None,
    }


def _key_facts(plan: RunPlan) -> dict[str, Value]:
    facts = key_facts(plan)
    return {
        "facts": counted(len(facts), "fact"),
        "plan_year": str(plan.plan_year),
        "confirmed": confirmed_text(facts),
        "sources": counted(len({fact.source for fact in facts}), "source"),
        "expired": [inert(reason) for reason in plan.expired],
        "reference_files": [f"{inert(name)}, sha256 `{digest}`" for name, digest in plan.references.items()],
        "codes": ", ".join(code.replace("_", " ") for code in CODES),
        "rubric_files": [f"{inert(name)}, sha256 `{rubric.sha256}`" for name, rubric in plan.rubrics.items()],
    }


def _judge_facts(found: Findings) -> dict[str, Value]:
    plan, measured = found.manifest.plan, judging(found)
    rejected, reviews = found.rejected_claims, sum(row.review for row in found.rows)
    return {
        "verifiers": f"{counted(len(plan.verifiers), 'verifier')}: {inert(', '.join(plan.verifiers))}",
        "extractor": inert(plan.extractor),
        "adjudicator": inert(plan.adjudicator or NO_ADJUDICATOR),
        "claims": counted(measured.claims, "claim"),
        "agreement": [f"{name}: {_agreement(value)}" for name, value in measured.coefficients.items()],
        "noise": [
            f"{judge.judge} ({inert(judge.model)}), asked again, changed its label: {_share(judge.changed)}"
            for judge in measured.noise
        ],
        "judge_failures": counted(sum(found.judge_failures.values()), "time"),
        "rejected_claims": f"{counted(rejected, 'claim')} {_was(rejected)}",
        "reviews": f"{counted(reviews, 'trial')} {_was(reviews)}",
    }


def _result_facts(found: Findings) -> dict[str, Value]:
    each = found.planned // max(1, len(found.plan_targets))
    ends = [outcome for outcome in OUTCOMES if outcome != "tampered" or knows_tampered(found)]
    flow, results, harm = [], [], []
    for target in found.plan_targets:
        rows, name = found.of_target(target), inert(target)
        outcomes = Counter(row.outcome for row in rows)
        flow.append([name, str(each), *(str(outcomes[outcome]) for outcome in ends), str(each - len(rows))])
        codes = [one.value for row in rows for one in row.codes]
        complete = wilson(codes.count("accurate_complete"), len(codes))
        accuracy, *others = (_mean(rows, score) for score in SCORES)
        results.append([name, accuracy, _share(key_coverage(rows)), *others, _share(complete)])
        harm.append(f"{name}: {_harm([row for row in rows if row.outcome == 'scored'])}")
    return {
        "flow_table": _table(["model", "planned", *map(_spaced, ends), "not yet run"], flow),
        "result_table": _table(
            ["model", "accuracy", "key coverage", *map(_spaced, SCORES[1:]), "answers accurate and complete"], results
        ),
        "harm": harm,
        "examples": ", ".join(inert(name) for name in found.example_ids) or None,
    }


def _harm(scored: Sequence[Row]) -> str:
    wrong = sum(row.labels[LABELS.index("CONTRADICTED")] > 0 for row in scored)
    fabricated = sum(row.fabricated for row in scored)
    return (
        f"at least one claim contradicts the key in {_share(wilson(wrong, len(scored)))} of scored trials; specifics "
        f"that cannot be known without a lookup in {_share(wilson(fabricated, len(scored)))}"
    )


def _registration_facts(kept: Registration | None) -> dict[str, Value]:
    return {
        "primary_outcome": inert(kept.primary_outcome) if kept else None,
        "planned_tests": [inert(test) for test in kept.tests] if kept else None,
        "registration": registration_lines(kept)
        if kept
        else ["- This run was started without a pre-registration (`medicare-eval freeze`)."],
    }


def registration_lines(kept: Registration) -> list[str]:
    """What the checklist says about a pre-registration, in Markdown."""
    lines = [
        f"- Pre-registration of {inert(kept.created)}, sha256 `{kept.sha256}`",
        f"- Primary outcome: {inert(kept.primary_outcome)}",
        *(f"- Planned test: {inert(test)}" for test in kept.tests),
    ]
    if kept.notes:
        lines.append(f"- Notes: {inert(kept.notes)}")
    if not kept.deviations:
        return [*lines, "- Deviations from the pre-registration: none"]
    return [
        *lines,
        f"- **Deviations from the pre-registration: {len(kept.deviations)}**",
        *(f"  - {inert(deviation)}" for deviation in kept.deviations),
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    rule = ["---", *(["---:" if numbers else "---"] * (len(headings) - 1))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headings, rule, *rows))


def _days(times: CallTimes) -> str:
    first, last = times.first[:10], times.last[:10]
    return first if first == last else f"{first} to {last}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _mean(rows: Sequence[Row], name: str) -> str:
    found = mean_interval(values_of(rows, name))
    if found.mean is None:
        return "–"
    spread = "no interval" if found.low is None else f"{found.low:.2f} to {found.high:.2f}"
    return f"{found.mean:.2f} ({spread}; n={found.n})"


def _share(share: Share | ClusteredShare) -> str:
    if share.value is None:
        return "–"
    return f"{share.count}/{share.n} = {share.value:.2f} ({share.low:.2f} to {share.high:.2f})"


def _agreement(value: Agreement) -> str:
    if value.value is None:
        return "not defined"
    spread = "no interval" if value.low is None else f"{value.low:.2f} to {value.high:.2f}"
    return f"{value.value:.2f} ({spread})"
