"""The targets of a study: a name for each that a person can read, its parameters and its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from re import sub

from ..adapters.capabilities import capabilities
from ..adapters.models import resolve
from ..adapters.registry import canonical_name
from ..errors import InputError, about
from ..records.model_name import SETTINGS_MARK, split_name
from ..records.study import ModelSettings, TargetOptions
from ..records.target import REASONING_ROOM, RecordedSet, SearchOptions, SystemPrompt, TargetSettings
from ..schemas import CallParameters, RunPlan
from ..store.conversations import RecordedConversations
from ..store.input_files import read_bytes, text_in
from .trials import slug

MOST_CHARACTERS = 200_000
"""Of a system prompt."""
TRANSCRIPT = "transcript"
BUILT_IN = ("fake", "offline", "human", TRANSCRIPT)
"""Providers that answer without a model, so that no setting of a model applies."""


@dataclass(frozen=True)
class PlannedTarget:
    """A target as the plan has it."""

    name: str
    """`openai:gpt-5.5`, or `openai:gpt-5.5#advisor+search`."""
    parameters: CallParameters
    settings: TargetSettings


def planned_targets(options: Sequence[TargetOptions], shared: CallParameters) -> tuple[PlannedTarget, ...]:
    """The targets with their names, which are all different.

    Raises:
        InputError: two targets are the same, or cannot be told apart by name; a system prompt cannot be read.
    """
    with about("targets"):
        found = [_planned(one, shared) for one in options]
        return tuple(_named(options, found))


def _planned(option: TargetOptions, shared: CallParameters) -> PlannedTarget:
    model = canonical_name(option.model)
    if SETTINGS_MARK in option.model:
        raise InputError(
            f"{option.model}: the name of a model has no {SETTINGS_MARK}, which is what reports write before settings. "
            "Give settings as in provider:model,search,effort=low."
        )
    settings = TargetSettings(
        system_prompt=_system_prompt(option.system_prompt) if option.system_prompt else None,
        reasoning_effort=option.reasoning_effort,
        reasoning_tokens=_room(option),
        search=SearchOptions() if option.search is True else option.search or None,
    )
    provider, folder = split_name(model)
    if settings != TargetSettings() and provider in BUILT_IN:
        raise InputError(f"{model} is no model, so it has no system prompt, reasoning or search.")
    if provider == TRANSCRIPT:
        return _recorded_target(option, folder, shared)
    if settings.search and capabilities(split_name(model).provider, resolve(model)).search is None:
        raise InputError(
            f"{model} cannot search the web here: only models of openai, anthropic, google and xai that have a search "
            "of their own can. Leave `search` out, or choose such a model."
        )
    return PlannedTarget(model, own_parameters(option, shared), settings)


def _recorded_target(option: TargetOptions, folder: str, shared: CallParameters) -> PlannedTarget:
    """A target of recorded conversations. Its name is that of the collection, wherever its folder is."""
    if option.temperature is not None or option.max_tokens is not None:
        raise InputError(f"{option.model} was recorded, so it has no temperature and no longest reply.")
    found = RecordedConversations(Path(folder))
    if not found.scenario_names:
        raise InputError(f"{folder} has no conversations yet. Import some, or finish those that are not complete.")
    recorded = RecordedSet(
        folder=folder,
        kind=found.collection.kind,
        sha256=found.sha256(),
        system=found.collection.system,
        conversations={
            name: tuple(one.conversation_id for one in found.conversations(name)) for name in found.scenario_names
        },
    )
    return PlannedTarget(f"{TRANSCRIPT}:{slug(found.collection.name)}", shared, TargetSettings(recorded=recorded))


def check_recorded(plan: RunPlan) -> None:
    """Every target of recorded conversations has one about a scenario of the plan, and the scripts fit.

    Raises:
        InputError: it has none, or a conversation was recorded with other turns.
    """
    for target in plan.targets:
        recorded = plan.settings_of(target).recorded
        if recorded is None:
            continue
        if not plan.trials_of(target):
            names = ", ".join(sorted(recorded.conversations)[:5])
            raise InputError(
                f"{recorded.folder} has no conversation about these scenarios. It has some about {names}.",
                field="targets",
            )
        found = RecordedConversations(Path(recorded.folder))
        for planned in plan.scenarios:
            turns = [turn.turn_id for turn in planned.scenario.scripted_turns]
            for one in found.conversations(planned.name):
                if [turn.turn_id for turn in one.turns] != turns:
                    raise InputError(
                        f"{found.folder / one.file_name} was recorded with other turns than {planned.name} has. "
                        "Import it again.",
                        field="targets",
                    )


def check_unchanged(plan: RunPlan) -> None:
    """Recorded conversations are those that the run was planned with.

    Raises:
        InputError: a folder was changed since.
    """
    for target in plan.targets:
        recorded = plan.settings_of(target).recorded
        if recorded and RecordedConversations(Path(recorded.folder)).sha256() != recorded.sha256:
            raise InputError(
                f"{recorded.folder} was changed since this run was planned. Put it back as it was, or start a new run."
            )


def own_parameters(option: ModelSettings, shared: CallParameters) -> CallParameters:
    """The parameters of one model: its own where it has them."""
    temperature = shared.temperature if option.temperature is None else option.temperature
    return CallParameters(
        temperature=None if temperature == "none" else temperature, max_tokens=option.max_tokens or shared.max_tokens
    )


def _room(option: TargetOptions) -> int:
    if option.reasoning_tokens is not None:
        return option.reasoning_tokens
    return REASONING_ROOM[option.reasoning_effort] if option.reasoning_effort else 0


def _system_prompt(file: str) -> SystemPrompt:
    path = Path(file)
    content = read_bytes(path)
    text = text_in(content, path)
    if not text.strip():
        raise InputError(f"{path} is empty. Write the system prompt into it, or leave it out.")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{path} has {len(text):,} characters; a system prompt has {MOST_CHARACTERS:,} at most.")
    return SystemPrompt(file=path.name, sha256=sha256(content).hexdigest(), text=text)


def _named(options: Sequence[TargetOptions], found: Sequence[PlannedTarget]) -> list[PlannedTarget]:
    """Each with what sets it apart in its name, and with more of it where names would be the same."""
    names = [_name(option, one, [_short]) for option, one in zip(options, found, strict=True)]
    for place, one in enumerate(found):
        if one in found[:place]:
            raise InputError(f"{names[place]} was given twice. To run more trials of it, use `repeats`.")
    twice = {name for name, number in Counter(names).items() if number > 1}
    for place, name in enumerate(names):
        if name in twice and not options[place].name:
            names[place] = _name(options[place], found[place], [_short, _parameter_parts])
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(
                f"two targets with different settings would both be called {name}. Give each a `name` of its own."
            )
    return [PlannedTarget(name, one.parameters, one.settings) for name, one in zip(names, found, strict=True)]


Parts = Callable[[PlannedTarget], list[str]]


def _name(option: TargetOptions, target: PlannedTarget, ways: Sequence[Parts]) -> str:
    """A searching target always says so, whatever its name."""
    parts = [option.name] if option.name else [part for way in ways for part in way(target)]
    parts += ["search"] if target.settings.search else []
    return f"{target.name}{SETTINGS_MARK}{'+'.join(parts)}" if parts else target.name


def _short(target: PlannedTarget) -> list[str]:
    settings = target.settings
    prompt = settings.system_prompt
    parts = [sub(r"[^A-Za-z0-9_.-]+", "-", Path(prompt.file).stem)[:40].strip("-.") or "prompt"] if prompt else []
    return [*parts, *([f"effort-{settings.reasoning_effort}"] if settings.reasoning_effort else [])]


def _parameter_parts(target: PlannedTarget) -> list[str]:
    parameters = target.parameters
    temperature = "none" if parameters.temperature is None else f"{parameters.temperature:g}"
    return [f"temperature-{temperature}", f"max-{parameters.max_tokens}"]
