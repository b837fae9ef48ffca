"""The report's sections on the runs, their models, scenarios and files, and on what the targets are.

Targets are bare models, with a system prompt, with search, or recorded conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..findings.cost import CallTimes
from ..findings.read_run import Findings
from ..records.target import KIND_NAMES, Kind, SearchOptions, TargetSettings
from ..schemas import CallParameters, CanonicalFact, Manifest, RunPlan
from ..store.strict_json import fingerprint
from ..text.count import counted
from ..text.rounded import percent
from .document import Block, Cell, Column, Paragraph, Section, Table, code_cell, count_cell, say, text_cell, words
from .series import Run, Runs

SHORT_HASH = 16
NO_ADJUDICATOR = "none: ties stay open for a person"


def run_section(runs: Runs) -> Section:
    return Section(
        words("What was run"), (_run_table(runs), _service_table(runs), _scenario_list(runs), _file_table(runs))
    )


def _run_table(runs: Runs) -> Table:
    def plan(run: Run) -> RunPlan:
        return run.found.manifest.plan

    fields: list[tuple[str, Callable[[Run], Cell]]] = [
        ("run", lambda run: text_cell(run.name)),
        ("started", lambda run: text_cell(run.found.manifest.created)),
        ("calls made", lambda run: Cell(_calls(run))),
        ("state", lambda run: Cell(_state(run.found))),
        ("targets", lambda run: text_cell(", ".join(plan(run).targets))),
        ("verifiers", lambda run: text_cell(", ".join(plan(run).verifiers))),
        ("extractor", lambda run: text_cell(plan(run).extractor)),
        ("scorer", lambda run: text_cell(plan(run).scorer)),
        ("adjudicator", lambda run: text_cell(plan(run).adjudicator or NO_ADJUDICATOR)),
        ("claims per verifier call", lambda run: Cell(_isolation(plan(run)))),
        ("questions reworded by", lambda run: text_cell(plan(run).questioner or "no model")),
        ("scenarios and variants", lambda run: count_cell(len(plan(run).scenarios))),
        ("trials per scenario and target", lambda run: count_cell(plan(run).repeats)),
        ("judged again", lambda run: Cell(_again(plan(run)))),
        ("plan year", lambda run: Cell(str(plan(run).plan_year))),
        ("facts in the answer keys", lambda run: Cell(_facts(plan(run)))),
        ("background facts", lambda run: count_cell(len(plan(run).background))),
        ("answer keys valid until", lambda run: Cell(_until(plan(run)))),
        ("wording", lambda run: text_cell(_wording(plan(run)))),
        ("target parameters", lambda run: Cell(parameters_text(plan(run).target_parameters))),
        ("judge parameters", lambda run: Cell(parameters_text(plan(run).judge_parameters))),
        ("parameters of single models", lambda run: text_cell(_own_parameters(plan(run)))),
        ("pre-registered", lambda run: text_cell(_registered(run.found.manifest))),
        ("seed", lambda run: Cell(str(plan(run).seed))),
        ("versions", lambda run: text_cell(", ".join(f"{k} {v}" for k, v in run.found.manifest.versions.items()))),
        ("sha256 of the plan", lambda run: code_cell(run.found.manifest.plan_sha256)),
        ("results hash", lambda run: code_cell(run.found.head)),
    ]
    columns = (Column("item", "text"), *(Column("value", "text") for _ in runs.runs))
    rows = tuple((Cell(name), *(value(run) for run in runs.runs)) for name, value in fields)
    return Table("The run and its plan.", columns, rows)


def _state(found: Findings) -> str:
    done = f"{len(found.rows)} of {counted(found.planned, 'trial')}"
    return f"complete and sealed, {done}" if found.sealed else f"not sealed, {done}"


def _calls(run: Run) -> str:
    times = CallTimes.spanning(list(run.calls.times.values()))
    return f"from {times.first[:19]} to {times.last[:19]}" if times else "none"


def _registered(manifest: Manifest) -> str:
    kept = manifest.registration
    if not kept:
        return "no"
    tests = f"; tests: {', '.join(kept.tests)}" if kept.tests else ""
    return f"{kept.created}, sha256 {kept.sha256[:SHORT_HASH]}; primary outcome: {kept.primary_outcome}{tests}"


def _again(plan: RunPlan) -> str:
    return f"{plan.judge_repeats}×, {percent(plan.judge_sample)}% of trials" if plan.judge_repeats else "no"


def _isolation(plan: RunPlan) -> str:
    if plan.isolation != "flagged":
        return {"claim": "one", "reply": "all of a reply"}[plan.isolation]
    audit = f" and in the audit sample, {percent(plan.audit_sample)}% of the others" if plan.audit_sample else ""
    return f"several; one in replies that are marked or badly covered{audit} (flagged)"


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


def _facts(plan: RunPlan) -> str:
    facts = key_facts(plan)
    return f"{len(facts)} ({confirmed_text(facts)})"


def _until(plan: RunPlan) -> str:
    ends = [fact.valid_until for fact in key_facts(plan) if fact.valid_until]
    return min(ends).isoformat() if ends else "no end date"


def _wording(plan: RunPlan) -> str:
    return plan.wording.title if plan.wording else "this project's own"


def parameters_text(parameters: CallParameters) -> str:
    temperature = "the model's default" if parameters.temperature is None else f"{parameters.temperature:g}"
    return f"temperature {temperature}, at most {parameters.max_tokens} tokens"


def _own_parameters(plan: RunPlan) -> str:
    return "; ".join(f"{model}: {parameters_text(own)}" for model, own in plan.model_parameters.items()) or "none"


def _service_table(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(name),
            text_cell(_roles(run.found.manifest.plan, name)),
            text_cell(service.called),
            text_cell(", ".join(sorted(service.served)) or "not stated"),
            Cell(service.as_requested, "strong" if service.differs else "words"),
            text_cell(", ".join(sorted(service.fingerprints)) or "none"),
            text_cell(", ".join(sorted(service.not_applied)) or "none"),
        )
        for run in runs.runs
        for name, service in run.found.services.items()
    )
    names = ("model", "role", "called as", "served by", "as requested", "fingerprints", "parameters not applied")
    columns = (*runs.lead_columns(target=False), *(Column(name, "text") for name in names))
    return Table("Models requested and served, and requested parameters that a model does not accept.", columns, rows)


def _roles(plan: RunPlan, name: str) -> str:
    return ", ".join(roles_of(plan, name)) or "none"


def roles_of(plan: RunPlan, name: str) -> list[str]:
    """Every role that a model has in a run."""
    models = {
        "target": plan.targets,
        "verifier": plan.verifiers,
        "extractor": (plan.extractor,),
        "scorer": (plan.scorer,),
        "adjudicator": (plan.adjudicator,) if plan.adjudicator else (),
        "questioner": (plan.questioner,),
    }
    return [role for role, listed in models.items() if name in listed]


def _scenario_list(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(planned.name),
            text_cell(planned.scenario.title),
            Cell(planned.scenario.effective_date.isoformat()),
            count_cell(len(planned.scenario.scripted_turns)),
            count_cell(len(planned.scenario.answer_key.canonical_facts)),
            text_cell(planned.scenario.rubric_version),
            code_cell(fingerprint(planned.scenario.answer_key.model_dump(mode="json"))[:SHORT_HASH]),
            code_cell(planned.sha256[:SHORT_HASH]),
        )
        for run in runs.runs
        for planned in run.found.manifest.plan.scenarios
    )
    columns = (
        *runs.lead_columns(target=False),
        Column("scenario", "text"),
        Column("title", "text"),
        Column("effective", "word"),
        Column("turns"),
        Column("facts"),
        Column("rubric", "text"),
        Column("answer key", "word"),
        Column("file", "word"),
    )
    caption = "Scenarios, with fingerprints of their answer keys as filled for this plan year and of their files."
    return Table(caption, columns, rows)


def _file_table(runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        plan = run.found.manifest.plan
        files: dict[str, dict[str, str]] = {
            "prompt": {role: prompt.sha256 for role, prompt in plan.prompts.items()},
            "rubric": {name: rubric.sha256 for name, rubric in plan.rubrics.items()},
            "figures and invented plans": dict(plan.references),
            "wording": {plan.wording.title: plan.wording.sha256} if plan.wording else {},
        }
        rows += [
            (*runs.lead(run), Cell(kind), text_cell(name), code_cell(digest[:SHORT_HASH]))
            for kind, listed in files.items()
            for name, digest in listed.items()
        ]
    columns = (*runs.lead_columns(target=False), *(Column(name, "text") for name in ("kind", "name", "sha256")))
    caption = f"Files used by the run: the first {SHORT_HASH} digits of their sha256; manifest.json has all of them."
    return Table(caption, columns, tuple(rows))


KINDS_NOTICE = (
    "Targets of different kinds are in this report: {kinds}. Their names say which is which: transcript: is recorded, "
    "and # comes before settings. They are never pooled: every figure is of one target."
)
SEARCH_NOTICE = (
    "Targets with search read pages of the web on the days of the run. Their answers cannot be asked for again; the "
    "journal keeps them as they were."
)


def kinds_of(plan: RunPlan) -> list[Kind]:
    """The kinds of a plan's targets, each once, in the order of their names' table."""
    found = {plan.settings_of(target).kind for target in plan.targets}
    return [kind for kind in KIND_NAMES if kind in found]


def target_sections(runs: Runs) -> Iterator[Section]:
    """One section, if any target is more than a bare model with the study's own parameters."""
    if not any(run.found.manifest.plan.target_settings for run in runs.runs):
        return
    blocks: list[Block] = [_table(runs)]
    shown: set[str] = set()
    for run in runs.runs:
        for settings in run.found.manifest.plan.target_settings.values():
            prompt = settings.system_prompt
            if prompt and prompt.sha256 not in shown:
                shown.add(prompt.sha256)
                lead = say("System prompt ", text_cell(prompt.file), " (sha256 ", code_cell(prompt.sha256), "):")
                blocks += [Paragraph(lead), Paragraph((text_cell(prompt.text),))]
    yield Section(words("Targets and their settings"), tuple(blocks), short="Targets")


def _table(runs: Runs) -> Table:
    rows = tuple(
        (*runs.lead(run), text_cell(target), *_cells(run, target))
        for run in runs.runs
        for target in run.found.manifest.plan.targets
    )
    names = ("target", "what it is", "system prompt", "temperature", "longest reply", "reasoning", "search or source")
    columns = (*runs.lead_columns(target=False), *(Column(name, "text") for name in names))
    return Table("The targets, and what was asked of each model.", columns, rows)


def _cells(run: Run, target: str) -> Iterator[Cell]:
    plan = run.found.manifest.plan
    settings, parameters = plan.settings_of(target), plan.parameters_of(target)
    prompt = settings.system_prompt
    yield Cell(KIND_NAMES[settings.kind])
    yield text_cell(f"{prompt.file}, {prompt.sha256[:SHORT_HASH]}") if prompt else Cell("none")
    if settings.recorded:
        yield from (Cell("none"),) * 3
    else:
        yield Cell("the model's default" if parameters.temperature is None else f"{parameters.temperature:g}")
        yield Cell(f"{parameters.max_tokens:,} tokens")
        yield Cell(_reasoning(settings))
    yield text_cell(_source(settings))


def _reasoning(settings: TargetSettings) -> str:
    effort = settings.reasoning_effort or "the model's default"
    return f"{effort}, up to {settings.reasoning_tokens:,} tokens more" if settings.reasoning_tokens else effort


def _source(settings: TargetSettings) -> str:
    if settings.recorded:
        number = sum(map(len, settings.recorded.conversations.values()))
        return f"{counted(number, 'conversation')} with {settings.recorded.system}"
    return _search(settings.search) if settings.search else "none"


def _search(search: SearchOptions) -> str:
    parts = [f"up to {counted(search.max_searches, 'search', 'searches')} per reply"]
    parts += [f"only {', '.join(search.allowed_domains)}"] if search.allowed_domains else []
    parts += [f"not {', '.join(search.blocked_domains)}"] if search.blocked_domains else []
    parts += [f"from {search.country}"] if search.country else []
    parts += [f"{search.context_size} context"] if search.context_size else []
    return "; ".join(parts)
