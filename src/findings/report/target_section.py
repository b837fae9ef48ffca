"""What the targets of a report are: bare models, with a system prompt, with search, or recorded conversations."""

from __future__ import annotations

from collections.abc import Iterator

from ...records.target import KIND_NAMES, Kind, SearchOptions, TargetSettings
from ...schemas import RunPlan
from ...text.count import counted
from .document import Block, Cell, Column, Paragraph, Section, Table, Text, Words, say, words
from .series import Run, Runs

SHORT_HASH = 16
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
                lead = say("System prompt ", Text(prompt.file), " (sha256 ", Text(prompt.sha256, code=True), "):")
                blocks += [Paragraph(lead), Paragraph((Text(prompt.text),))]
    yield Section(words("Targets and their settings"), tuple(blocks), short="Targets")


def _table(runs: Runs) -> Table:
    rows = tuple(
        (*runs.lead(run), Text(target), *_cells(run, target))
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
    yield Words(KIND_NAMES[settings.kind])
    yield Text(f"{prompt.file}, {prompt.sha256[:SHORT_HASH]}") if prompt else Words("none")
    if settings.recorded:
        yield from (Words("none"),) * 3
    else:
        yield Words("the model's default" if parameters.temperature is None else f"{parameters.temperature:g}")
        yield Words(f"{parameters.max_tokens:,} tokens")
        yield Words(_reasoning(settings))
    yield Text(_source(settings))


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
