"""Conversations without an API: import them from files, or collect them question by question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import JsonValue

from ..agents.questioner import holds, question
from ..errors import InputError
from ..inputs.transcripts.align import read_map
from ..inputs.transcripts.assemble import ConversationDraft, ImportOptions, draft, kind_of
from ..inputs.transcripts.collect import (
    CollectSession,
    Unfinished,
    plan_collection,
    refuse_repeated,
    save_all,
    unfinished,
)
from ..inputs.transcripts.read_file import decoded, read_transcript
from ..inputs.transcripts.redact import RedactionRules
from ..inputs.transcripts.utterances import AskedScript, ScriptTurn
from ..planning.clock import today
from ..planning.library import Library
from ..planning.scenario_files import read_scenarios
from ..records.model_name import PSEUDONYMS, is_pseudonym
from ..records.transcript import Collection, ConversationKind, SourceFormat
from ..schemas import PlannedScenario, QuestionerInput
from ..store.input_files import read_bytes
from ..store.run_folder import PathLike, as_path

SEED = 42
"""Of the drawn values in a script, as in a run without --seed."""
MOST_NAMES = 10_000


@dataclass(frozen=True)
class ImportDraft:
    """Conversations that are ready to be saved with `save_transcripts`. Nothing is written yet."""

    folder: Path
    collection: Collection
    drafts: tuple[ConversationDraft, ...]


def load_script(
    scenario: str,
    variant: str | None = None,
    *,
    plan_year: int | None = None,
    facts: PathLike | None = None,
    invented_plans: PathLike | None = None,
) -> AskedScript:
    """The questions of one scenario, with their slots filled, in the order of the script.

    Args:
        scenario: its file, as for a run.
        variant: which one, if the scenario has variants.
        plan_year: of figures in questions. None: this year.
        facts: a file of figures of a plan year.
        invented_plans: a file of invented plans.

    Returns:
        The script.

    Raises:
        InputError: not one scenario, or not one of its variants.

    Example:
        >>> from medicare_eval.api.transcripts import load_script
        >>> [turn.turn_id for turn in load_script("scenarios/v1/scenario_001.json").turns]
        ['Q1', 'Q2', 'Q3', 'Q4']
    """
    files = read_scenarios([scenario])
    if len(files) != 1:
        raise InputError(f"--scenario {scenario}: {len(files)} scenarios were found; a conversation is about one.")
    known = [one.variant_id for one in files[0].scenario.variants]
    if (variant is None and len(known) > 1) or (variant is not None and variant not in known):
        which = f"Use --variant, one of {', '.join(known)}." if known else "It has no variants: leave --variant out."
        raise InputError(f"{scenario}: {'no such variant' if variant else 'which variant was it?'} {which}")
    library = Library(as_path(facts) if facts else None, as_path(invented_plans) if invented_plans else None)
    planned = files[0].planned(plan_year or today().year, library, [variant] if variant else known)[0]
    return script_of(planned)


def script_of(planned: PlannedScenario) -> AskedScript:
    """The script of a planned scenario. Turns keep the order in which they are written."""
    knobs = planned.scenario.variation_knobs.model_copy(update={"shuffle": ()})
    scenario = planned.scenario.model_copy(update={"variation_knobs": knobs})
    asked = question(QuestionerInput(scenario=scenario, seed=SEED)).turns
    turns = tuple(
        ScriptTurn(turn.turn_id, turn.user_message, scripted.condition)
        for turn, scripted in zip(asked, scenario.scripted_turns, strict=True)
    )
    persona = tuple(_texts(scenario.persona.model_dump(mode="json")))
    fictional = (*persona, *(turn.user_message for turn in turns))
    return AskedScript(scenario.scenario_id, planned.variant, turns, fictional)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def draft_transcripts(
    files: Sequence[PathLike],
    *,
    script: AskedScript,
    to: PathLike,
    kind: ConversationKind | None = None,
    system: str | None = None,
    caller: str | None = None,
    names: PathLike | None = None,
    by: str | None = None,
    format: SourceFormat | None = None,  # noqa: A002 - as the option is called
    corrections: str = "",
    keep: Sequence[int] = (),
    also: Sequence[str] = (),
    collected: date | None = None,
) -> ImportDraft:
    """Read, redact and align conversations, one per file. Nothing is written.

    Args:
        files: transcripts, in any format that is known.
        script: what was to be asked (`load_script`).
        to: the folder that will hold the conversations.
        kind: by phone or in a chat. None: as the folder, or as the format shows.
        system: what was spoken to. None: as the folder.
        caller: the label of the one who asks. None: whose words match the script best.
        names: a file of names to redact, one per line.
        by: the pseudonym of the person who looks at the redactions.
        format: of the files. None: recognized.
        corrections: of the alignment, such as `Q2=7,Q3=none`; for one file.
        keep: numbers of findings that are not personal; for one file.
        also: texts to redact as well.
        collected: the day of the conversations.

    Returns:
        What `save_transcripts` saves.

    Raises:
        InputError: a file cannot be used, was imported before, or an option does not fit.
    """
    paths = [as_path(path) for path in files]
    if not paths:
        raise InputError("Name at least one transcript.")
    if len(paths) > 1 and (corrections or keep):
        raise InputError("--map and --keep are about one conversation. Import that file by itself.")
    if by is not None and not is_pseudonym(by):
        raise InputError(f"--by {by[:40]!r} is not a pseudonym. {PSEUDONYMS}")
    folder = as_path(to)
    rules = RedactionRules(names=read_names(names), keep=tuple(keep), also=tuple(also), fictional=script.fictional)
    read = [read_transcript(path, format) for path in paths]
    collection = plan_collection(folder, kind=kind, system=system, today=today(), fallback=kind_of(read[0]))
    options = ImportOptions(
        system=collection.system,
        caller=caller,
        corrections=read_map(corrections),
        rules=rules,
        redacted_by=by or "rules",
        collected=collected,
    )
    drafts = tuple(draft(one, script, options, collection.kind) for one in read)
    for one in drafts:
        _check_kept(one, keep)
    refuse_repeated(folder, [one.conversation for one in drafts])
    return ImportDraft(folder, collection, drafts)


def _check_kept(one: ConversationDraft, keep: Sequence[int]) -> None:
    for number in keep:
        if number not in {finding.number for finding in one.kept}:
            raise InputError(f"--keep {number}: there is no redaction with this number.")


def save_transcripts(made: ImportDraft) -> list[Path]:
    """Write drafted conversations. No file is ever overwritten.

    Args:
        made: from `draft_transcripts`.

    Returns:
        The files, in the order of the drafts.

    Raises:
        InputError: a source file was imported for this scenario before.
        StorageError: the disk refuses, or a file exists already.
    """
    return save_all(made.folder, made.collection, [one.conversation for one in made.drafts])


def read_names(path: PathLike | None) -> tuple[str, ...]:
    """The names in a file, one per line; empty lines and lines that begin with # do not count."""
    if path is None:
        return ()
    lines = decoded(read_bytes(as_path(path)), str(path)).splitlines()
    names = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if len(names) > MOST_NAMES:
        raise InputError(f"{path} has more than {MOST_NAMES:,} names.")
    return names


def collect_session(
    to: PathLike,
    *,
    script: AskedScript,
    system: str | None = None,
    kind: ConversationKind | None = None,
    names: PathLike | None = None,
) -> CollectSession:
    """Open the unfinished conversation about a script, or begin one.

    Args:
        to: the folder of conversations.
        script: what to ask (`load_script`).
        system: what is spoken to. None: as the folder.
        kind: None: as the folder, or a chat.
        names: a file of names to redact, one per line.

    Returns:
        The session; every reply that it takes is saved at once.

    Raises:
        InputError: the folder is something else, or the script was changed since.
    """
    found = read_names(names)
    return CollectSession(as_path(to), script, holds=holds, today=today(), system=system, kind=kind, names=found)


def unfinished_conversations(folder: PathLike) -> list[Unfinished]:
    """The conversations of a folder that are not finished."""
    return unfinished(as_path(folder))
