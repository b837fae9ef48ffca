"""From what runs found to the whole report as plain data. Nothing is formatted here for any one rendering.

Several runs make one report: every target of every run is a row of its own. What holds of one run only (its files,
prices, judges) is told run by run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ... import storage
from ...schemas import (
    CallParameters,
    Manifest,
    RunPlan,
    TrialOutcome,
)
from ...stats.intervals import mean_interval
from ...store.strict_json import fingerprint
from ..analysis.cost import call_dates, spending
from ..analysis.judge_agreement import Judging
from ..analysis.read_run import (
    OUTCOMES,
    SCORES,
    Findings,
    Row,
)
from .charts import (
    BINS,
    Dot,
    DotChart,
    Histogram,
)
from .document import (
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
    Count,
    Figure,
    Mean,
    Money,
    Of,
    Paragraph,
    Section,
    Table,
    Text,
    Words,
    estimate_text,
    say,
    words,
)
from .exhibits import example_section, review_section
from .judge_section import judging_section
from .series import (
    Run,
    Runs,
    Series,
    runs_of,
)
from .study_section import (
    Counted,
    count_codes,
    question_table,
    study_section,
    topic_section,
)

OFFLINE_NOTICE = (
    "Judged by offline:rules, a judge made of rules. It is for trying out and for tests; its scores are not findings."
)
FAKE_NOTICE = "fake: targets are canned texts written for this project, not the words of any model."
WORDING_NOTICE = "Questions reworded: same topics as the published study, our own words."
ETHICS = (
    "This system evaluates AI-generated information for research purposes only. "
    "It does not provide medical, legal, or insurance advice."
)
PEOPLE = (
    "Personas, doctors and plans in the scenarios are invented. For help with Medicare call 1-800-MEDICARE or your "
    "State Health Insurance Assistance Program."
)
LIMITS = (
    "A result is a snapshot of one model, on these dates, with these words and this key. It says nothing of another.",
    "Judge models err. Read the quotes and reasons before believing a single verdict.",
    "Intervals of means are Student's t over trials; intervals of shares are Wilson's; intervals of differences are "
    "Newcombe's. All take trials as independent. Repeats of one question to one model are more alike than that, so "
    "they show how steady a model is rather than how it would fare on other questions.",
    "Where all values are equal, or there is one, no interval is given: nothing is known of the spread.",
    "Not measured: intent, tone, user experience, persuasion, answers with live web access or retrieval, and whether "
    "any person acted on an answer.",
    "Counselors could look things up; a bare model cannot. The study's questions, plans, doctors and places were other "
    "ones than these.",
    "Answer keys were written from the sources they name, some read in a secondary source, and can be wrong.",
)
ANSWERED: tuple[TrialOutcome, ...] = ("tampered", "judge_failure", "scored")
UNANSWERED: tuple[TrialOutcome, ...] = ("questioner_failure", "failed", "refused", "blocked", "truncated", "empty")
NAMES = {outcome: outcome.replace("_", " ") for outcome in OUTCOMES} | {"truncated": "cut off"}
SCORE_NAMES = {name: name.replace("_", " ") for name in SCORES}
SHORT_HASH = 16
MOST_INCORRECT = 10


def contents(findings: Sequence[Findings], judgings: Sequence[Judging | None]) -> Contents:
    """The whole report of these runs; `judgings` holds one entry a run, None where judges were not compared."""
    runs = runs_of(findings, judgings)
    counted = count_codes(runs)
    per_scenario = _scenario_table(runs)
    names = say(*_between(", ", [Text(run.name) for run in runs.runs]))
    return Contents(
        title=(*say(f"AI Medicare evaluation: {'runs' if runs.several else 'run'} "), *names),
        notices=tuple(notices(runs)),
        sections=(
            _run_section(runs),
            _flow_section(runs),
            _score_section(runs, per_scenario),
            _distribution_section(runs),
            study_section(runs, counted),
            topic_section(runs, counted),
            _failure_section(runs, counted),
            example_section(runs),
            review_section(runs),
            judging_section(runs),
            _cost_section(runs),
            Section(words("Limits"), (Bullets(tuple(words(limit) for limit in LIMITS)),)),
            Section(words("Ethics and framing"), (Paragraph(words(ETHICS)), Paragraph(words(PEOPLE)))),
        ),
        per_scenario=per_scenario,
        per_question=question_table(runs, counted),
    )


def _between(gap: str, cells: Sequence[Cell]) -> Iterator[str | Cell]:
    for place, cell in enumerate(cells):
        if place:
            yield gap
        yield cell


def notices(runs: Runs) -> Iterator[tuple[Cell, ...]]:
    """What every reader must be told before the numbers."""
    if not runs.runs:
        yield words("There is no run in this report.")
    told: dict[tuple[Cell, ...], list[str]] = {}
    for run in runs.runs:
        for notice in _told(run.found):
            told.setdefault(notice, []).append(run.name)
    for notice, names in told.items():
        which = "" if len(names) == len(runs.runs) else ", ".join(names)
        yield (*say(Text(which), ": "), *notice) if which else notice


def _told(found: Findings) -> Iterator[tuple[Cell, ...]]:
    plan = found.manifest.plan
    if found.offline:
        yield words(OFFLINE_NOTICE)
    if found.fake:
        yield words(FAKE_NOTICE)
    for reason in plan.expired:
        yield say("Expired key, allowed by the user: ", Text(reason), ".")
    if plan.wording:
        turns = "; ".join(f"{name} {', '.join(ids)}" for name, ids in plan.wording.turns.items())
        digest = plan.wording.sha256[:SHORT_HASH]
        yield say("Wording of ", Text(plan.wording.title), f" (sha256 {digest}) in ", Text(turns), ".")
    if any(turn.question_group for planned in plan.scenarios for turn in planned.scenario.scripted_turns):
        yield words(WORDING_NOTICE if not plan.wording else "All other questions reworded by this project.")
    for name, service in found.services.items():
        if service.differs:
            served = Text(", ".join(sorted(service.served)))
            yield say(Text(name), " was answered by another model than the one called: ", served, ".")
    if found.manifest.transcripts:
        source = Text(found.manifest.transcripts.run_id)
        yield say("Judged again: the replies are those of run ", source, ", not new ones.")
    for deviation in found.manifest.registration.deviations if found.manifest.registration else ():
        yield say("Departs from its pre-registration: ", Text(deviation))
    done = len(found.rows)
    if done < found.planned:
        yield words(f"Incomplete: {done} of {found.planned} planned trials are here.")
    if done > found.planned:
        yield words(f"More trials are here than were planned: {done} instead of {found.planned}.")


def _run_section(runs: Runs) -> Section:
    fields: list[tuple[str, Callable[[Run], Cell]]] = [
        ("run", lambda run: Text(run.name)),
        ("begun", lambda run: Text(run.found.manifest.created)),
        ("calls made", lambda run: Words(_calls(run.found))),
        ("state", lambda run: Words(_state(run.found))),
        ("targets", lambda run: Text(", ".join(run.found.plan_targets))),
        ("verifiers", lambda run: Text(", ".join(run.found.manifest.plan.verifiers))),
        ("extractor", lambda run: Text(run.found.manifest.plan.extractor)),
        ("scorer", lambda run: Text(run.found.manifest.plan.scorer)),
        ("ties", lambda run: Text(run.found.manifest.plan.adjudicator)),
        ("paraphrase by", lambda run: Text(run.found.manifest.plan.questioner or "nobody")),
        ("scenarios and variants", lambda run: Count(len(run.found.manifest.plan.scenarios))),
        ("trials of each", lambda run: Count(run.found.manifest.plan.repeats)),
        ("judged again", lambda run: Words(_again(run.found.manifest.plan))),
        ("plan year", lambda run: Words(str(run.found.manifest.plan.plan_year))),
        ("facts in the keys", lambda run: Words(_facts(run.found.manifest.plan))),
        ("keys hold until", lambda run: Words(_until(run.found.manifest.plan))),
        ("wording", lambda run: Text(_wording(run.found.manifest.plan))),
        ("asked of targets", lambda run: Words(_parameters(run.found.manifest.plan.target_parameters))),
        ("asked of judges", lambda run: Words(_parameters(run.found.manifest.plan.judge_parameters))),
        ("pre-registered", lambda run: Text(_registered(run.found.manifest))),
        ("seed", lambda run: Words(str(run.found.manifest.plan.seed))),
        ("versions", lambda run: Text(", ".join(f"{k} {v}" for k, v in run.found.manifest.versions.items()))),
        ("plan, sha256", lambda run: Text(run.found.manifest.plan_sha256, code=True)),
        ("results, head of the chain", lambda run: Text(run.found.head, code=True)),
    ]
    columns = (Column("what", "text"), *(Column("as planned", "text") for _ in runs.runs))
    rows = tuple((Words(name), *(told(run) for run in runs.runs)) for name, told in fields)
    return Section(
        words("What was run"),
        (Table("The run and its plan.", columns, rows), _service_table(runs), _scenario_list(runs), _file_table(runs)),
    )


def _state(found: Findings) -> str:
    sealed = (found.folder / storage.SEAL).is_file()
    done = f"{len(found.rows)} of {found.planned} trials"
    return f"complete and sealed, {done}" if sealed else f"not sealed, {done}"


def _calls(found: Findings) -> str:
    dates = call_dates(found.folder)
    return f"from {dates[0][:19]} to {dates[1][:19]}" if dates else "none"


def _registered(manifest: Manifest) -> str:
    frozen = manifest.registration
    if not frozen:
        return "no"
    tests = f"; tests: {', '.join(frozen.tests)}" if frozen.tests else ""
    return f"{frozen.created}, sha256 {frozen.sha256[:SHORT_HASH]}; primary outcome: {frozen.primary_outcome}{tests}"


def _again(plan: RunPlan) -> str:
    return f"{plan.judge_repeats}×, {plan.judge_sample:.0%} of trials" if plan.judge_repeats else "no"


def _facts(plan: RunPlan) -> str:
    """How sure the keys are."""
    facts = {
        (p.scenario.scenario_id, f.fact_id): f for p in plan.scenarios for f in p.scenario.answer_key.canonical_facts
    }
    count = Counter(fact.confirmed_by or "not stated" for fact in facts.values())
    return f"{len(facts)} ({', '.join(f'{number} {name}' for name, number in sorted(count.items()))})"


def _until(plan: RunPlan) -> str:
    ends = [f.valid_until for p in plan.scenarios for f in p.scenario.answer_key.canonical_facts if f.valid_until]
    return min(ends).isoformat() if ends else "no end is stated"


def _wording(plan: RunPlan) -> str:
    return plan.wording.title if plan.wording else "this project's own"


def _parameters(parameters: CallParameters) -> str:
    temperature = "the model's own" if parameters.temperature is None else f"{parameters.temperature:g}"
    return f"temperature {temperature}, at most {parameters.max_tokens} tokens"


def _service_table(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            Text(name),
            Text(_roles(run.found.manifest.plan, name)),
            Text(service.called),
            Text(", ".join(sorted(service.served)) or "not stated"),
            Words("no", strong=True) if service.differs else Words("yes" if service.served else "not known"),
            Text(", ".join(sorted(service.fingerprints)) or "none"),
            Text(", ".join(sorted(service.not_applied)) or "none"),
        )
        for run in runs.runs
        for name, service in run.found.services.items()
    )
    names = ("model", "role", "called as", "served by", "as requested", "fingerprints", "parameters not applied")
    columns = (*runs.lead_columns(target=False), *(Column(name, "text") for name in names))
    return Table("Models requested, called and served; parameters asked for but not applied.", columns, rows)


def _roles(plan: RunPlan, name: str) -> str:
    roles = {
        "target": plan.targets,
        "verifier": plan.verifiers,
        "extractor": (plan.extractor,),
        "scorer": (plan.scorer,),
        "ties": (plan.adjudicator,),
        "questioner": (plan.questioner,),
    }
    return ", ".join(role for role, models in roles.items() if name in models) or "none"


def _scenario_list(runs: Runs) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            Text(planned.name),
            Text(planned.scenario.title),
            Words(planned.scenario.effective_date.isoformat()),
            Count(len(planned.scenario.scripted_turns)),
            Count(len(planned.scenario.answer_key.canonical_facts)),
            Text(planned.scenario.rubric_version),
            Text(fingerprint(planned.scenario.answer_key.model_dump(mode="json"))[:SHORT_HASH], code=True),
            Text(planned.sha256[:SHORT_HASH], code=True),
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
        Column("key, filled", "word"),
        Column("file", "word"),
    )
    return Table(
        "Scenarios, with fingerprints of their keys as filled for this plan year and of their files.", columns, rows
    )


def _file_table(runs: Runs) -> Table:
    rows = []
    for run in runs.runs:
        plan = run.found.manifest.plan
        files: list[tuple[str, str, str]] = [("prompt", role, prompt.sha256) for role, prompt in plan.prompts.items()]
        files += [("rubric", name, rubric.sha256) for name, rubric in plan.rubrics.items()]
        files += [("figures and plans", name, digest) for name, digest in plan.references.items()]
        files += [("wording", plan.wording.title, plan.wording.sha256)] if plan.wording else []
        rows += [
            (*runs.lead(run), Words(kind), Text(name), Text(digest[:SHORT_HASH], code=True))
            for kind, name, digest in files
        ]
    columns = (*runs.lead_columns(target=False), *(Column(name, "text") for name in ("kind", "name", "sha256")))
    return Table("Files behind the run: the first 16 digits; manifest.json has them in full.", columns, tuple(rows))


def _flow_section(runs: Runs) -> Section:
    """Planned trials and where each went: what was not answered, then what became of the answers."""
    beyond = any(len(series.rows) > series.planned for series in runs.series)
    columns = (
        *runs.lead_columns(),
        Column("planned"),
        *((Column("beyond the plan"),) if beyond else ()),
        Column("not yet run"),
        *(Column(NAMES[outcome]) for outcome in UNANSWERED),
        Column("answered"),
        *(Column(NAMES[outcome]) for outcome in ANSWERED),
    )
    rows = []
    for series in runs.series:
        outcomes = Counter(row.outcome for row in series.rows)
        done = len(series.rows)
        rows.append(
            (
                *runs.lead(series),
                Count(series.planned),
                *((Count(max(0, done - series.planned)),) if beyond else ()),
                Count(max(0, series.planned - done)),
                *(Count(outcomes[outcome]) for outcome in UNANSWERED),
                Count(sum(outcomes[outcome] for outcome in ANSWERED)),
                *(Count(outcomes[outcome]) for outcome in ANSWERED),
            )
        )
    note = (
        f"Planned{' and beyond the plan' if beyond else ''} is the sum of all columns from not yet run to answered; "
        "answered is the sum of those after it. Only scored trials have scores. Tampered: a reply spoke to its judges."
    )
    table = Table("Trials planned, and what became of them.", columns, tuple(rows))
    return Section(words("Flow"), (Paragraph(words(note)), table, _turn_table(runs)))


def _turn_table(runs: Runs) -> Table:
    kinds = list(dict.fromkeys(kind for run in runs.runs for _, kind in sorted(run.found.turns)))
    kinds.sort(key=lambda kind: (kind != "answered", kind))
    rows = []
    for series in runs.series:
        counts = {kind: series.run.found.turns[series.target, kind] for kind in kinds}
        rows.append((*runs.lead(series), Count(sum(counts.values())), *(Count(counts[kind]) for kind in kinds)))
    columns = (*runs.lead_columns(), Column("turns"), *(Column(kind.replace("_", " ")) for kind in kinds))
    return Table("Turns of these trials: each question, and what came back.", columns, tuple(rows))


def _mean(rows: Sequence[Row], name: str) -> Mean:
    return Mean(mean_interval([value for row in rows if (value := row.score(name)) is not None]))


def _scored(rows: Sequence[Row]) -> int:
    return sum(row.outcome == "scored" for row in rows)


def _score_columns() -> tuple[Column, ...]:
    return tuple(Column(heading, "mean", name) for name, heading in SCORE_NAMES.items())


def _scenario_table(runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        mine = [series for series in runs.series if series.run is run]
        planned = [one.scenario.scenario_id for one in run.found.manifest.plan.scenarios]
        for scenario_id in dict.fromkeys((*planned, *(row.scenario_id for row in run.found.rows))):
            for series in mine:
                trials = [row for row in series.rows if row.scenario_id == scenario_id]
                cells = [*runs.lead(series), Text(scenario_id), Count(len(trials)), Count(_scored(trials))]
                rows.append((*cells, *(_mean(trials, name) for name in SCORES)))
    columns = (
        *runs.lead_columns(),
        Column("scenario", "text", "scenario_id"),
        Column("trials", key="trials"),
        Column("scored", key="scored"),
        *_score_columns(),
    )
    return Table("Scores by scenario: mean over scored trials (95% interval).", columns, tuple(rows))


def _score_section(runs: Runs, per_scenario: Table) -> Section:
    rows = tuple(
        (*runs.lead(series), Count(_scored(series.rows)), *(_mean(series.rows, name) for name in SCORES))
        for series in runs.series
    )
    columns = (*runs.lead_columns(), Column("scored"), *_score_columns())
    note = (
        "Mean over scored trials with its 95% interval; n instead, where all values are equal or there is one. "
        "Accuracy, completeness, calibration: higher is better; safety risk: lower is better. docs/scoring.md defines "
        "them."
    )
    blocks: list[Block] = [Paragraph(words(note)), Table("Scores by target.", columns, rows)]
    if any(_scored(series.rows) for series in runs.series):
        panels = tuple((SCORE_NAMES[name], tuple(_dot(series, name) for series in runs.series)) for name in SCORES)
        blocks.append(
            Figure(DotChart("scores", "Scores with 95% intervals", panels), "The numbers stand in the table above.")
        )
    return Section(words("Scores"), (*blocks, per_scenario))


def _dot(series: Series, name: str) -> Dot:
    estimate = _mean(series.rows, name).estimate
    return Dot(series.chart_label, estimate.mean, estimate.low, estimate.high, estimate_text(estimate))


def _distribution_section(runs: Runs) -> Section:
    """How many scored trials fall into each tenth of the accuracy scale."""
    rows, bars = [], []
    for series in runs.series:
        values = [value for row in series.rows if (value := row.score("accuracy")) is not None]
        tenths = Counter(min(BINS - 1, int(round(value * BINS, 9))) for value in values)
        counts = tuple(tenths[place] for place in range(BINS))
        empty = _scored(series.rows) - len(values)
        rows.append((*runs.lead(series), *(Count(count) for count in counts), Count(empty)))
        remarks = (f"n={len(values)}", *((f"nothing to check: {empty}",) if empty else ()))
        bars.append((series.chart_label, counts, remarks))
    headings = [f"{place / BINS:.1f}–{(place + 1) / BINS:.1f}" for place in range(BINS)]
    columns = (*runs.lead_columns(), *(Column(heading) for heading in headings), Column("nothing to check"))
    blocks: list[Block] = [
        Table("Scored trials by accuracy; a value on a border counts above it.", columns, tuple(rows))
    ]
    if any(sum(counts) for _, counts, _ in bars):
        chart = Histogram("accuracy", "Scored trials by accuracy", tuple(bars))
        blocks.append(Figure(chart, "The numbers stand in the table above."))
    return Section(words("Distribution of accuracy"), tuple(blocks))


def _failure_section(runs: Runs, counted: Counted) -> Section:
    names = Counter(error for series in runs.series for row in series.rows for error in row.errors)
    order = sorted(names, key=lambda name: (-names[name], name))
    rows = []
    for series in runs.series:
        errors = Counter(error for row in series.rows for error in row.errors)
        scored, done = _scored(series.rows), len(series.rows)
        rows.append(
            (
                *runs.lead(series),
                *(Of(errors[name], scored) for name in order),
                Of(sum(row.refusal for row in series.rows), done),
                Of(sum(row.fabricated for row in series.rows), done),
            )
        )
    columns = (
        *runs.lead_columns(),
        *(Column(name.replace("_", " "), "other") for name in order),
        Column("any refusal", "other"),
        Column("any fabricated specific", "other"),
    )
    note = words("Error categories are counted over scored trials; the two flags at the end over all trials run.")
    blocks: list[Block] = [Paragraph(note), Table("Trials with each kind of failure.", columns, tuple(rows))]
    blocks.append(_incorrect_table(runs, counted))
    return Section(words("Common failure modes"), tuple(blocks))


def _incorrect_table(runs: Runs, counted: Counted) -> Table:
    wrong = [
        (series, scenario_id, group, counts)
        for (series, scenario_id, group), counts in counted.items()
        if counts.codes["incorrect"]
    ]
    wrong.sort(key=lambda one: (-one[3].codes["incorrect"], -one[3].codes["incorrect"] / one[3].n))
    rows = []
    for series, scenario_id, group, counts in wrong[:MOST_INCORRECT]:
        rule = series.run.found.rules.get((scenario_id, group))
        named = (Text(scenario_id), Text(group), Text(rule.topic if rule else ""))
        rows.append((*runs.lead(series), *named, Of(counts.codes["incorrect"], counts.n)))
    columns = (
        *runs.lead_columns(),
        *(Column(name, "text") for name in ("scenario", "question group", "topic")),
        Column("incorrect", "other"),
    )
    more = f"; {len(wrong) - MOST_INCORRECT} more are in per_question.csv" if len(wrong) > MOST_INCORRECT else ""
    return Table(f"Questions most often answered incorrectly{more}.", columns, tuple(rows))


def _cost_section(runs: Runs) -> Section:
    rows: list[tuple[Cell, ...]] = []
    silent = 0
    for run in runs.runs:
        spent = spending(run.found.folder, run.found.manifest)
        silent += sum(one.without_usage for one in spent)
        rows += [
            (
                *runs.lead(run),
                Words(one.part),
                Text(one.model),
                Count(one.attempts),
                Count(one.input_tokens),
                Count(one.output_tokens),
                Count(one.without_usage),
                Money(one.cost),
            )
            for one in spent
        ]
    columns = (
        *runs.lead_columns(target=False),
        Column("part", "text"),
        Column("model", "text"),
        Column("attempts"),
        Column("tokens in"),
        Column("tokens out"),
        Column("without usage"),
        Column("cost", "other"),
    )
    dates = ", ".join(dict.fromkeys(run.found.manifest.prices_as_of for run in runs.runs))
    note = say("At list prices of ", Text(dates), ". ", _silent(silent))
    return Section(words("Cost"), (Paragraph(note), Table("Calls, tokens and cost.", columns, tuple(rows))))


def _silent(silent: int) -> str:
    return (
        f"{silent:,} attempts stated no usage and are not in the cost."
        if silent
        else "All attempts stated their usage."
    )
