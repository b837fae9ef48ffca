"""Study files: read from TOML, changed by flags, checked, and written out in full.

Paths in a file are relative to that file. A path that leads nowhere from there is left as it is, so that the bundled
scenarios can be named from anywhere.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, time
from functools import partial
from itertools import cycle, islice
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..adapters.registry import canonical_name
from ..errors import InputError, Origin, from_origin
from ..plugins import PACK_PREFIX
from ..records.study import ExecutionOptions, JudgeOptions, ModelSettings, Study, TargetOptions, target_from_text
from ..schemas import CallParameters, Record, RunPlan
from ..store.input_files import problems_of, read_bytes, text_in
from ..store.strict_json import encode
from .judges import NO_ADJUDICATOR, families_of, judge_models
from .preregistration import read_frozen
from .scenario_files import expand, files_at


def _is_path(field: FieldInfo) -> bool:
    extra = field.json_schema_extra
    said = extra.get("option") if isinstance(extra, dict) else None
    return isinstance(said, dict) and said.get("metavar") in ("FILE", "DIR")


_FILES = tuple(name for name, field in Study.model_fields.items() if _is_path(field))
"""Fields that hold one path; `scenarios` holds several."""
_FIRST = ("format", "title", "scenarios", "targets", "judges", "verifiers", "adjudicator")
"""Fields in the order in which a person reads a study; the others follow."""
TRANSCRIPT_PREFIX = "transcript:"
"""A target whose name is a folder."""
_SURROGATE = re.compile("[\ud800-\udfff]")
R = TypeVar("R", bound=Record)


def read_study(path: Path) -> dict[str, Any]:
    """What a study file says, with its paths as seen from the current folder. Not yet checked: see `make_study`."""
    try:
        document = tomllib.loads(text_in(read_bytes(path), path))
    except tomllib.TOMLDecodeError as error:
        if path.suffix == ".json":
            raise InputError(f"{path} is not TOML. If it is a scenario, use `scenarios`.") from None
        raise InputError(f"{path}: invalid TOML: {error}.") from None
    return seen_from_here(document, path.parent)


def seen_from_here(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A document whose paths are relative to `folder`, with paths relative to the current folder."""
    return _with_paths(document, lambda name: str(folder / name), lambda name, joined: _is_there(joined))


def seen_from(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The other way around: for a document that is written into `folder`."""
    return _with_paths(document, lambda name: os.path.relpath(name, folder), lambda name, joined: _is_there(name))


def _is_there(name: str) -> bool:
    try:
        return bool(files_at(name))
    except (OSError, ValueError):
        return False


def _with_paths(
    document: Mapping[str, Any], moved: Callable[[str], str], follows: Callable[[str, str], bool]
) -> dict[str, Any]:
    def one(name: Any, *, always: bool) -> Any:
        if not isinstance(name, str) or name.startswith(PACK_PREFIX) or Path(name).is_absolute():
            return name
        joined = Path(moved(name)).as_posix()
        return joined if always or follows(name, joined) else name

    changed = dict(document)
    for field in _FILES:
        if field in changed:
            changed[field] = one(changed[field], always=True)
    if isinstance(changed.get("scenarios"), list | tuple):
        changed["scenarios"] = [one(name, always=False) for name in changed["scenarios"]]
    if isinstance(changed.get("targets"), list | tuple):
        changed["targets"] = [_target_paths(target, partial(one, always=True)) for target in changed["targets"]]
    return changed


def _target_paths(target: Any, moved: Callable[[Any], Any]) -> Any:
    """A target with its files seen from elsewhere: a system prompt, or a folder of recorded conversations."""
    if isinstance(target, str) and ("," in target or target.startswith(TRANSCRIPT_PREFIX)):
        try:
            target = target_from_text(target)
        except ValueError:
            return target  # it is refused later, with all else that is wrong
    if not isinstance(target, Mapping):
        return target
    found = dict(target)
    if "system_prompt" in found:
        found["system_prompt"] = moved(found["system_prompt"])
    model = found.get("model")
    if isinstance(model, str) and model.startswith(TRANSCRIPT_PREFIX):
        found["model"] = f"{TRANSCRIPT_PREFIX}{moved(model.removeprefix(TRANSCRIPT_PREFIX))}"
    return found


def origin_of(source: object, changes: Mapping[str, Any]) -> Origin:
    """Where the fields of a study come from that `load_study` makes of the same source and changes."""
    if not isinstance(source, str | os.PathLike):
        return Origin()
    return Origin(file=str(source), changed=frozenset(given(changes)))


def given(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if value is not None}


def load_study(source: Study | str | Path | None, changes: Mapping[str, Any]) -> Study:
    """A study from a file, a `Study` or nothing, with some fields replaced."""
    said = given(changes)
    with from_origin(origin_of(source, said)):
        if isinstance(source, Study):
            return make_study({**as_document(source), **said})
        if source is not None:
            return make_study({**read_study(Path(source)), **said})
        for needed in ("scenarios", "targets"):
            if not said.get(needed):
                raise InputError(f"No {needed} given. Use a study file, or set `{needed}`.")
        return make_study(said)


def registered_study(path: Path, changes: Mapping[str, Any]) -> Study:
    """The study that a pre-registration carries, with some fields replaced."""
    said = given(changes)
    kept = read_frozen(path).study
    if kept is None and not said:
        raise InputError(
            f"{path} was written by release 0.1 and does not contain the study. "
            "Give the study as well: a study file, or `scenarios`, `targets` and so on."
        )
    with from_origin(origin_of(path, said)):
        study = make_study({**seen_from_here(kept or {}, path.parent), **said})
    if "scenarios" not in said:
        _check_found(study, path)
    return study


def _check_found(study: Study, path: Path) -> None:
    try:
        expand(study.scenarios)
    except InputError as error:
        raise InputError(
            f"{path}: {error} If the registered scenarios have moved, name them with `scenarios`."
        ) from None


def make_study(document: Mapping[str, Any]) -> Study:
    """Check a document and make a `Study` of it."""
    return _checked(Study, document)


def make_execution_options(document: Mapping[str, Any]) -> ExecutionOptions:
    """Check how a run is carried out, for a resumed run or a re-judging."""
    return _checked(ExecutionOptions, document)


def make_judge_options(document: Mapping[str, Any]) -> JudgeOptions:
    """Check who judges, for a re-judging."""
    return _checked(JudgeOptions, document)


def _checked(kind: type[R], document: Mapping[str, Any]) -> R:
    try:
        return kind.model_validate_json(encode(_plain(document)), strict=True)
    except ValidationError as error:
        refused = InputError(str(error))
        refused.problems = problems_of(error, kind, table="a table")
        raise refused from None


def _plain(value: Any, field: str = "") -> Any:
    """A value as JSON has it."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, Record):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {name: _plain(inner, f"{field}.{name}".lstrip(".")) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, f"{field}[{number}]") for number, inner in enumerate(value)]
    if isinstance(value, date | time):
        raise _not_json(field, value, "a date or time; if it is meant as text, put it in quotes")
    if isinstance(value, float) and not isfinite(value):
        raise _not_json(field, value, "not a finite number")
    if isinstance(value, str) and _SURROGATE.search(value):
        raise _not_json(field, value, "not UTF-8 text")
    if not isinstance(value, str | int | float | None):
        raise _not_json(field, value, f"a Python {type(value).__name__}; use text, a number, a truth value or a list")
    return value


def _not_json(field: str, value: object, problem: str) -> InputError:
    """A value that no field of a study can have: TOML's dates, NaN, text that is not UTF-8, other Python objects."""
    text = f"{value!s:.60} is {problem}."
    return InputError(text.encode("utf-8", "backslashreplace").decode(), field=field)


def completed(study: Study, plan: RunPlan) -> Study:
    """The study with everything filled in that was left to defaults: judges, adjudicator, plan year."""
    adjudicators = {judges.adjudicator for judges, _ in plan.groups_of_judges()}
    return study.model_copy(
        update={
            "targets": tuple(
                _own_settings(plan, name, option) for name, option in zip(plan.targets, study.targets, strict=True)
            ),
            "judges": tuple(_settings(plan, judge) for judge in _judges(study, plan)),
            "adjudicator": (plan.adjudicator or NO_ADJUDICATOR) if len(adjudicators) == 1 else None,
            "questioner": plan.questioner,
            "plan_year": plan.plan_year,
        }
    )


def _judges(study: Study, plan: RunPlan) -> tuple[str, ...]:
    """The judges as a list from which the same ones are chosen again.

    If targets have different judges, the list has more than verify: see `judges_of_targets`.
    """
    given = [canonical_name(judge.model) for judge in study.judges]
    if not plan.judges_by_target:
        return tuple(dict.fromkeys(given or plan.verifiers))
    if given:
        return tuple(given)
    ranked = judge_models(study, {name: families_of(name, plan.settings_of(name)) for name in plan.targets})
    used = [name for name in ranked if name in plan.judge_models()]
    return tuple(islice(cycle(used), max(len(used), study.verifiers + 1)))


def _own_settings(plan: RunPlan, target: str, option: TargetOptions) -> TargetOptions:
    """A target without parameters of its own is left without, so that the study's `temperature` still applies."""
    parameters: dict[str, Any] = {"temperature": None, "max_tokens": None}
    if target in plan.model_parameters:
        own = plan.parameters_of(target)
        parameters = {"temperature": temperature_of(own), "max_tokens": own.max_tokens}
    return option.model_copy(update={"model": canonical_name(option.model), **parameters})


def _settings(plan: RunPlan, model: str) -> ModelSettings:
    parameters = plan.parameters_of(model)
    return ModelSettings(model=model, temperature=temperature_of(parameters), max_tokens=parameters.max_tokens)


def temperature_of(parameters: CallParameters) -> float | Literal["none"]:
    """As a study says it."""
    return "none" if parameters.temperature is None else parameters.temperature


def as_document(study: Study) -> dict[str, Any]:
    """Every field that has a value, as it can be written to a file."""
    document = study.model_dump(mode="json", exclude_none=True)
    order = (*_FIRST, *(name for name in document if name not in _FIRST))
    return {name: document[name] for name in order if document.get(name) not in (None, [], {})}


def as_toml(study: Study) -> str:
    """The whole study as a file that `run` takes; fields without a value are listed in a comment."""
    import tomli_w

    document = as_document(study)
    unset = [name for name in type(study).model_fields if name not in document]
    return tomli_w.dumps(document) + (f"# not set: {', '.join(unset)}\n" if unset else "")
