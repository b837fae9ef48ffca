"""A Methods section and a Table 1 that a paper can start from, with the run's own numbers, in Markdown.

`INTERVALS`, `MISSING_RULE` and `DIFFERENCES` say how estimates are made; the reporting checklists quote them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..findings.cost import CallTimes
from ..findings.judge_agreement import Judging
from ..findings.read_run import Findings, Service, software_version
from ..records.target import KIND_NAMES
from ..schemas import Manifest, RunPlan
from ..scoring.definitions import IF_REFUSED_TEXT, MEASURES, SCORES
from ..stats.bounded import LEAST_IN_STRATA, LEAST_UNITS
from ..text.count import counted
from ..text.escape import inert
from ..text.rounded import rounded
from .markdown import notice_lines
from .notices import notices_of
from .run_section import confirmed_text, key_facts, parameters_text
from .series import Run, Runs
from .table_one import NOTE, Part, markdown_lines, table_one

METHODS_MD = "methods.md"
AUTHOR = "**AUTHOR:**"
STUDY = "Dugan and others (JAMA Network Open 2025;8(4):e252834)"
INTERVALS = (
    "Answers to one question were first averaged over repeats and then over variants, so that neither adds to the "
    "sample size; every different question has the same weight. Scenarios are the independent units. For question "
    "groups of the published study, the questions are fixed and the units are the scripts in which they were asked. "
    "Intervals are 95% intervals: mid-P limits of a proportion with an effective sample size, which follows from the "
    "cluster-robust variance (CR2) by the method of Korn and Graubard, adjusted for its degrees of freedom. If all "
    f"units have the same value, the limits are exact bounds. With fewer than {LEAST_UNITS} scenarios, or fewer than "
    f"{LEAST_IN_STRATA} scripts of a fixed question, no interval is given."
)
MISSING_RULE = (
    "Questions that were refused, blocked by a content filter or left without text count as answered without "
    "substance, because the person got nothing. Questions that failed, were cut off or were not asked, and those on "
    "which a judge or the questioner failed, are missing. Missing answers are left out of estimates; beside them are "
    "the lowest and the highest value that the estimate would have if all missing answers had been wrong, or right. "
    f"A trial in which every question was refused has {IF_REFUSED_TEXT}; other trials that could not "
    "be scored are missing in means of scores."
)
DIFFERENCES = (
    "Differences from counselors are computed from both sides’ limits (MOVER, Newcombe’s hybrid method). The primary "
    "comparison pools the question groups that are compared like for like. The other differences are marked if they "
    "still exclude zero after Bonferroni’s adjustment. For several groups together, one visit to a counselor counts as "
    "one observation."
)
_ISOLATION = {
    "claim": "one claim per call",
    "reply": "all claims of a reply in one call",
    "flagged": (
        "several claims per call, and one per call in replies that were marked or badly covered; a random sample of "
        "replies was verified both ways"
    ),
}


def methods_markdown(runs: Runs) -> str:
    """The whole file: notices, one Methods section per run, and Table 1."""
    blocks = ["# Methods and Table 1", "\n".join(notice_lines(one.cells for one in notices_of(runs)))]
    blocks.append(f"A draft: every number is from the run. Everything marked {AUTHOR} is for you to write.")
    for run in runs.runs:
        blocks.append(f"## Methods{f', run {inert(run.name)}' if runs.several else ''}")
        blocks += paragraphs(run)
    study, targets = table_one(runs)
    blocks += ["## Table 1", *_table("A", study), *_table("B", targets), NOTE]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _table(letter: str, part: Part) -> tuple[str, str]:
    return f"**{letter}. {part.title}**", "\n".join(markdown_lines(part))


def paragraphs(run: Run) -> list[str]:
    """The Methods of one run, one paragraph per topic."""
    found, plan = run.found, run.found.manifest.plan
    return [
        f"**Models and calls.** {' '.join(_models(run))}",
        f"**Questions.** {' '.join(_questions(found))}",
        f"**Answer key.** {' '.join(_answer_key(plan))}",
        f"**Judging.** {' '.join(_judging(plan, run.judging))}",
        f"**Outcomes.** {' '.join(_outcomes(found.manifest))}",
        f"**Statistical analysis.** {' '.join(_analysis(found))}",
        f"**Pre-registration.** {' '.join(_registration(found.manifest))}",
    ]


def _models(run: Run) -> Iterator[str]:
    found, plan = run.found, run.found.manifest.plan
    listed = _list([_served(target, found.services.get(target)) for target in plan.targets])
    what = counted(len(plan.targets), "target" if found.fake or plan.target_settings else "language model")
    yield f"We evaluated {what}: {listed}.{' Targets named fake return canned text.' if found.fake else ''}"
    days = _days(run)
    if found.manifest.transcripts:
        source = inert(found.manifest.transcripts.run_id)
        yield f"The replies are those of run {source}, judged again; {AUTHOR} take their dates from that run."
    elif days:
        yield f"They were {'asked' if found.fake else 'called through their APIs'} {days} (UTC)."
    requested = parameters_text(plan.target_parameters)
    yield f"Settings requested: {requested} per reply, and seeds derived from {plan.seed}."
    for model, own in plan.model_parameters.items():
        yield f"For {inert(model)}: {parameters_text(own)}."
    left_out = [
        f"{inert(target)} ({inert(', '.join(sorted(service.not_applied)))})"
        for target in plan.targets
        if (service := found.services.get(target)) and service.not_applied
    ]
    if left_out:
        yield f"Parameters that a model does not accept were left out: {_list(left_out)}."
    yield from _settings(plan)


def _settings(plan: RunPlan) -> Iterator[str]:
    """What the targets got from us, by kind."""
    others = [target for target in plan.targets if plan.settings_of(target).kind != "bare"]
    if not others:
        yield (
            "They got no system prompt, no documents, no tools and no web search from us, and kept no memory between "
            "conversations."
        )
        return
    for target in others:
        settings = plan.settings_of(target)
        what = KIND_NAMES[settings.kind]
        if settings.recorded:
            number = sum(map(len, settings.recorded.conversations.values()))
            with_whom = inert(settings.recorded.system)
            yield f"{inert(target)} is {counted(number, 'recorded conversation')} with {with_whom}."
        else:
            prompt = settings.system_prompt
            digest = f" (prompt: {inert(prompt.file)}, sha256 {prompt.sha256[:16]})" if prompt else ""
            yield f"{inert(target)} was called with {what}{digest}."
    yield (
        "All other targets got no system prompt, no documents, no tools and no web search from us. None kept a memory "
        "between conversations."
    )


def _served(target: str, service: Service | None) -> str:
    versions = sorted(service.served) if service else []
    return f"{inert(target)} ({f'served as {inert(_list(versions))}' if versions else 'version served not stated'})"


def _days(run: Run) -> str:
    plan, times = run.found.manifest.plan, run.calls.times
    called = [target for target in plan.targets if not plan.settings_of(target).recorded]
    spanned = CallTimes.spanning([times[target] for target in called if target in times])
    if spanned is None:
        return ""
    first, last = spanned.first[:10], spanned.last[:10]
    return f"on {first}" if first == last else f"from {first} to {last}"


def _questions(found: Findings) -> Iterator[str]:
    plan = found.manifest.plan
    scripts = [planned.scenario for planned in plan.scenarios]
    scenarios = len({scenario.scenario_id for scenario in scripts})
    if found.incomplete:
        yield f"{AUTHOR} the run is not complete, so what follows is what was planned. {found.incomplete}"
    yield (
        f"We asked {counted(found.coded_questions, 'different question')} that get a code, in "
        f"{counted(scenarios, 'scenario')} about invented people, which with their variants make "
        f"{counted(len(scripts), 'script')} (Table 1)."
    )
    if found.study_groups:
        groups = counted(found.study_groups, "question group")
        yield f"The questions include {groups} of {STUDY}, in our own words."
    if plan.wording:
        yield f"Some were asked in the words of {inert(plan.wording.title)}."
    if plan.questioner:
        yield f"The model {inert(plan.questioner)} reworded questions where a scenario allows it."
    often = "once" if plan.repeats == 1 else counted(plan.repeats, "time")
    yield (
        f"Each script was run {often} with each model{_besides(plan)}: {counted(found.planned, 'trial')} "
        f"planned, {len(found.rows):,} with results. Every trial was a new conversation, in which each question "
        "followed the model's actual replies."
    )


def _besides(plan: RunPlan) -> str:
    recorded = any(plan.settings_of(target).recorded for target in plan.targets)
    return ", and recorded conversations count as often as there are" if recorded else ""


def _answer_key(plan: RunPlan) -> Iterator[str]:
    facts = key_facts(plan)
    yield (
        f"Answers were checked against {counted(len(facts), 'fact')} for plan year {plan.plan_year}, written with "
        f"their sources before the first call; by kind of confirmation: {confirmed_text(facts) or 'none'}."
    )
    dates = sorted(planned.scenario.effective_date for planned in plan.scenarios)
    ends = sorted(fact.valid_until for fact in facts if fact.valid_until)
    when = dates[0].isoformat() if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    yield f"The keys may be used from {when} on."
    if ends:
        yield f"Their first facts expire on {ends[0]}."
    if plan.background:
        background = counted(len(plan.background), "further fact")
        yield f"Where the key of a scenario was silent, {background} of a shared library could decide a claim."
    if plan.expired:
        yield f"Some keys had expired: {inert('; '.join(plan.expired))}."


def _judging(plan: RunPlan, measured: Judging | None) -> Iterator[str]:
    verifiers = _list([inert(name) for name in plan.verifiers])
    yield (
        f"Replies were split into claims by {inert(plan.extractor)}. Each claim was labeled by "
        f"{counted(len(plan.verifiers), 'verifier')} ({verifiers}) as supported by the key, contradicted by it, or not "
        f"in it, with {_ISOLATION[plan.isolation]}. They saw neither the name of the model nor each other's labels, "
        "and no judge is from the model family of a target that it judged."
    )
    if plan.adjudicator:
        yield f"Ties were resolved by {inert(plan.adjudicator)}."
    else:
        yield "Ties stayed open and were marked for review by a person."
    if measured is None:
        return
    alpha = measured.coefficients.get("Krippendorff's alpha")
    if alpha and alpha.value is not None:
        one_model = len(set(plan.verifiers)) == 1 and len(plan.verifiers) > 1
        alike = ", which says nothing, because all verifiers are one model" if one_model else ""
        yield f"On {counted(measured.claims, 'claim')}, Krippendorff's alpha was {rounded(alpha.value)}{alike}."
    for one in measured.noise:
        changed = f"{one.changed.count} of {counted(one.changed.n, 'label')}"
        yield f"Asked again about the same claims, {inert(one.model)} changed {changed}."
    if measured.check:
        yield (
            f"The same judges were checked on {counted(measured.check.replies, 'reply', 'replies')} with "
            f"{counted(measured.check.claims, 'labeled claim')} (judge check {inert(measured.check.check_id)}), and "
            "estimates are also given corrected for their error, where the check allows it. "
            f"{AUTHOR} say who labeled these replies."
        )
    else:
        yield f"{AUTHOR} the judges were not checked against labeled replies (`judge-check`); say so, or check them."


def outcomes_text() -> str:
    """What the outcomes are."""
    scores = "; ".join(f"{MEASURES[name].heading} {MEASURES[name].methods}" for name in SCORES)
    return (
        "Each question got one of four study codes (accurate and complete, accurate but incomplete, incorrect, or not "
        f"substantive), or is incomplete data. {scores.capitalize()}."
    )


def _outcomes(manifest: Manifest) -> Iterator[str]:
    yield outcomes_text()
    if manifest.registration:
        yield f"The primary outcome, registered before the run, was: {inert(manifest.registration.primary_outcome)}."
    else:
        yield f"{AUTHOR} name the primary outcome."


def _analysis(found: Findings) -> Iterator[str]:
    yield INTERVALS
    yield MISSING_RULE
    if any(rule.study_group is not None for rule in found.rules.values()):
        yield DIFFERENCES
    version = software_version(found.manifest) or "(version not recorded)"
    yield f"Scores were computed with medicare-eval {inert(version)}."


def _registration(manifest: Manifest) -> Iterator[str]:
    kept = manifest.registration
    if kept is None:
        yield "The study was not pre-registered."
        return
    yield f"The study was pre-registered on {inert(kept.created)} (sha256 `{kept.sha256}`)."
    for test in kept.tests:
        yield f"Planned test: {inert(test)}."
    if not kept.deviations:
        yield "There was no deviation."
    for deviation in kept.deviations:
        yield f"Deviation: {inert(deviation)}."


def _list(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
