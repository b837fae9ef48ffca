"""Pre-registration: a study is frozen to a file before it is run, and a run records how it differs from it.

The file holds hashes, not texts, so it can be published before the study without giving the questions away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import storage
from ..errors import InputError
from ..records.preregistration import Preregistration, RegisteredPrompt, RegisteredScenario, Registration
from ..records.study import RegistrationText
from ..records.target import TargetSettings
from ..schemas import PlannedScenario, Record, RunPlan, TargetJudges
from ..store.strict_json import StrictJSONError, fingerprint, loads, sha256
from ..text.escape import plain

SHOWN = 20
"""Deviations that an error message names."""
_ROLES = ("extractor", "scorer", "adjudicator", "questioner")
_NUMBERS = {"isolation": "isolation", "plan_year": "plan year", "repeats": "repeats", "seed": "seed"} | {
    "judge_repeats": "judge repeats",
    "judge_sample": "share of trials judged again",
    "trials": "number of trials",
}
_SAME = (
    "plan_year", "references", "expired", "targets", "verifiers", *_ROLES, "judges_by_target", "api_ids", "repeats",
    "judge_repeats", "judge_sample", "isolation", "audit_sample", "seed", "target_parameters", "judge_parameters",
    "model_parameters", "policy",
)  # fmt: skip
"""Fields copied from the plan as they are."""
_SAID = (" was added", " was removed", ": its content changed")
_SHORT = (" added", " removed", "")
_POINTS = ("required_points", "partial_points", "background")


def freeze(
    plan: RunPlan, text: RegistrationText, *, study: Mapping[str, Any] | None = None, created: str | None = None
) -> Preregistration:
    """A plan as it can be registered. `created` is now, unless given."""
    return Preregistration(
        created=created or datetime.now(UTC).isoformat(timespec="seconds"),
        primary_outcome=text.primary_outcome,
        tests=text.tests,
        notes=text.notes,
        study=dict(study) if study is not None else None,
        **_content(plan),
    )


def _content(plan: RunPlan) -> dict[str, Any]:
    """All of a frozen plan that follows from the plan."""
    return {
        "trials": plan.trial_count,
        "plan_sha256": _plan_sha256(plan),
        "scenarios": tuple(_scenario(planned) for planned in plan.scenarios),
        "wording_sha256": plan.wording.sha256 if plan.wording else None,
        "sources_sha256": plan.citation_checks.sha256 if plan.citation_checks else None,
        "rubrics": {name: rubric.sha256 for name, rubric in plan.rubrics.items()},
        "prompts": {
            role: RegisteredPrompt(file_sha256=prompt.sha256, text_sha256=sha256(prompt.text))
            for role, prompt in plan.prompts.items()
        },
        **{name: getattr(plan, name) for name in _SAME},
        "target_settings": {name: _anywhere(settings) for name, settings in plan.target_settings.items()},
    }


def _anywhere(settings: TargetSettings) -> TargetSettings:
    """Settings without the folder of recorded conversations; their hash says which they are."""
    recorded = settings.recorded
    return settings.model_copy(update={"recorded": recorded.model_copy(update={"folder": ""}) if recorded else None})


def _plan_sha256(plan: RunPlan) -> str:
    whole = plan.model_dump(mode="json")
    for planned in whole["scenarios"]:
        del planned["path"]
    for settings in whole.get("target_settings", {}).values():
        settings.get("recorded", {}).pop("folder", None)
    return fingerprint(whole)


def _scenario(planned: PlannedScenario) -> RegisteredScenario:
    whole = planned.scenario.model_dump(mode="json")
    turns: list[dict[str, Any]] = whole.pop("scripted_turns")
    key: dict[str, Any] = whole.pop("answer_key")
    points = [key.pop("required_points"), [[turn["turn_id"], *(turn.pop(name) for name in _POINTS)] for turn in turns]]
    facts = {fact["fact_id"]: fingerprint(fact) for fact in key.pop("canonical_facts")}
    return RegisteredScenario(
        name=planned.name,
        file_sha256=planned.sha256,
        turns={turn["turn_id"]: fingerprint(turn) for turn in turns},
        facts=facts,
        points_sha256=fingerprint(points),
        disallowed_sha256=fingerprint(key.pop("disallowed_claims")),
        rest_sha256=fingerprint([whole, key, [turn["turn_id"] for turn in turns], list(facts)]),
    )


def read_frozen(path: Path) -> Preregistration:
    try:
        if not _is_preregistration(path.read_bytes()):
            raise InputError(f"{path} is not a pre-registration. Make one with `medicare-eval freeze`.")
        return storage.read_record(path, Preregistration)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist. Make a pre-registration with `medicare-eval freeze`.") from None
    except OSError as error:
        raise InputError(f"{path} is not a pre-registration ({error.strerror}). Check the path.") from None


def _is_preregistration(data: bytes) -> bool:
    """Whether it is one, perhaps damaged, and not a file of another kind."""
    try:
        document = loads(data.decode("utf-8"))
    except (UnicodeDecodeError, StrictJSONError):
        return False
    return isinstance(document, dict) and "plan_sha256" in document and "primary_outcome" in document


def frozen_bytes(frozen: Preregistration) -> bytes:
    """The file that holds a pre-registration."""
    return storage.encode_record(frozen) + b"\n"


def frozen_sha256(frozen: Preregistration) -> str:
    """The hash of that file, which is what to publish."""
    return sha256(frozen_bytes(frozen))


def registration_of(registered: Path | None, plan: RunPlan, *, allow_deviations: bool) -> Registration | None:
    """The registration of a run that may have none."""
    if registered is not None:
        return registration(registered, plan, allow_deviations=allow_deviations)
    if allow_deviations:
        raise InputError("`allow_deviations` is used only with `registered`. Name a pre-registration, or leave it out.")
    return None


def registration(path: Path, plan: RunPlan, *, allow_deviations: bool) -> Registration:
    """How a run's plan differs from the registered one; an InputError lists the differences if they are not allowed."""
    frozen = read_frozen(path)
    found = deviations(frozen, plan)
    if found and not allow_deviations:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise InputError(
            f"This run differs from the pre-registration {path}: {'; '.join(found[:SHOWN])}{more}. "
            "Run the registered study, or add `allow_deviations`: every report will then list the differences."
        )
    return Registration(
        sha256=frozen_sha256(frozen),
        created=frozen.created,
        primary_outcome=frozen.primary_outcome,
        tests=frozen.tests,
        notes=frozen.notes,
        deviations=tuple(found),
    )


def deviations(frozen: Preregistration, plan: RunPlan) -> list[str]:
    """One sentence for each difference, in the order of the record; none where the plan is the frozen one."""
    now = Preregistration(
        created=frozen.created,
        primary_outcome=frozen.primary_outcome,
        tests=frozen.tests,
        notes=frozen.notes,
        study=frozen.study,
        format=frozen.format,
        **_content(plan),
    )
    if now == frozen:
        return []
    found = [plain(sentence) for sentence in _differences(frozen, now)]
    return found or ["plan: a detail changed that a pre-registration does not list separately"]


def _differences(was: Preregistration, now: Preregistration) -> Iterator[str]:
    yield from _scenarios(was.scenarios, now.scenarios)
    for name, words in _NUMBERS.items():
        if getattr(was, name) != getattr(now, name):
            yield f"{words}: {getattr(now, name)}, not {getattr(was, name)}"
    yield from _files(was, now)
    yield from _members("expired keys", was.expired, now.expired)
    yield from _members("targets", was.targets, now.targets)
    yield from _members("verifiers", was.verifiers, now.verifiers)
    for role in _ROLES:
        if getattr(was, role) != getattr(now, role):
            yield f"{role}: {getattr(now, role) or 'none'}, not {getattr(was, role) or 'none'}"
    yield from _judged_by(was, now)
    for model, before in was.api_ids.items():
        if now.api_ids.get(model, before) != before:
            yield f"{model}: called as {now.api_ids[model]}, not as {before}"
    yield from _fields("target", was.target_parameters, now.target_parameters)
    yield from _fields("judges", was.judge_parameters, now.judge_parameters)
    for model in dict.fromkeys((*was.model_parameters, *now.model_parameters)):
        own_was, own_now = was.model_parameters.get(model), now.model_parameters.get(model)
        if own_was and own_now:
            yield from _fields(model, own_was, own_now)
        else:
            yield f"{model}: parameters of its own were {'added' if own_now else 'removed'}"
    for target in now.targets:
        if target in was.targets:
            yield from _settings(target, was.target_settings.get(target), now.target_settings.get(target))
    yield from _fields("calls", was.policy, now.policy)
    yield from _prompts(was.prompts, now.prompts)


def _judged_by(was: Preregistration, now: Preregistration) -> Iterator[str]:
    for target in now.targets:
        before, after = was.judges_by_target.get(target), now.judges_by_target.get(target)
        if before != after and target in was.targets:
            yield f"{target}: judged by {_judges(after)}, not by {_judges(before)}"


def _judges(judges: TargetJudges | None) -> str:
    if judges is None:
        return "the judges of all targets"
    return f"{' and '.join(judges.verifiers)} (read by {judges.extractor}, ties: {judges.adjudicator or 'open'})"


def _files(was: Preregistration, now: Preregistration) -> Iterator[str]:
    yield from _hashes("file", was.references, now.references)
    if was.wording_sha256 != now.wording_sha256:
        yield f"wording: {_wording(now.wording_sha256)}, not {_wording(was.wording_sha256)}"
    if was.sources_sha256 != now.sources_sha256:
        yield "the pages against which citations are checked changed"
    yield from _hashes("rubric", was.rubrics, now.rubrics)


def _wording(digest: str | None) -> str:
    return f"the file with sha256 {digest[:16]}" if digest else "our own"


def _members(what: str, was: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """Added, removed, more or fewer of one, or only another order."""
    for name in dict.fromkeys((*was, *now)):
        before, after = was.count(name), now.count(name)
        if before == 0:
            yield f"{what}: {name} was added"
        elif after == 0:
            yield f"{what}: {name} was removed"
        elif before != after:
            yield f"{what}: {name} is listed {after} times, not {before}"
    if tuple(was) != tuple(now) and sorted(was) == sorted(now):
        yield f"{what}: their order changed"


def _hashes(what: str, was: Mapping[str, str], now: Mapping[str, str], said: Sequence[str] = _SAID) -> Iterator[str]:
    for name in dict.fromkeys((*was, *now)):
        if was.get(name) != now.get(name):
            yield f"{what} {name}{said[0 if name not in was else 1 if name not in now else 2]}"


def _fields(what: str, was: Record, now: Record) -> Iterator[str]:
    before, after = _plain(was), _plain(now)
    for name, value in after.items():
        if value != before.get(name):
            yield f"{what}: {name} {value}, not {before.get(name)}"


def _settings(target: str, was: TargetSettings | None, now: TargetSettings | None) -> Iterator[str]:
    before, after = was or TargetSettings(), now or TargetSettings()
    for name in TargetSettings.model_fields:
        if name != "recorded" and getattr(before, name) != getattr(after, name):
            yield f"{target}: its {name.replace('_', ' ')} changed"
    if (before.recorded and before.recorded.sha256) != (after.recorded and after.recorded.sha256):
        yield f"{target}: its recorded conversations changed"


def _plain(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json")


def _prompts(was: Mapping[Any, RegisteredPrompt], now: Mapping[Any, RegisteredPrompt]) -> Iterator[str]:
    for role in dict.fromkeys((*was, *now)):
        before, after = was.get(role), now.get(role)
        if before is None or after is None:
            yield f"prompt {role} was {'added' if before is None else 'removed'}"
        elif before.text_sha256 != after.text_sha256:
            yield f"prompt {role}: its text changed"
        elif before.file_sha256 != after.file_sha256:
            yield f"prompt {role}: its file changed, but not the text that is sent"


def _scenarios(was: Sequence[RegisteredScenario], now: Sequence[RegisteredScenario]) -> Iterator[str]:
    before, after = {one.name: one for one in was}, {one.name: one for one in now}
    yield from _members("scenarios", list(before), list(after))
    for name, one in before.items():
        yield from (f"scenario {name}: {change}" for change in _changes(one, after.get(name, one)))


def _changes(was: RegisteredScenario, now: RegisteredScenario) -> Iterator[str]:
    if was == now:
        return
    key = [*_hashes("fact", was.facts, now.facts, _SHORT)]
    if was.points_sha256 != now.points_sha256:
        key.append("its points")
    if was.disallowed_sha256 != now.disallowed_sha256:
        key.append("its disallowed claims")
    if key:
        yield f"its key changed ({', '.join(key)})"
    turns = [*_hashes("turn", was.turns, now.turns, _SHORT)]
    if turns:
        yield f"its questions changed ({', '.join(turns)})"
    if was.rest_sha256 != now.rest_sha256:
        more = " else" if key or turns else ""
        yield f"something{more or ' other than its key and its words'} changed (persona, knobs, order or rubric)"
    elif not key and not turns:
        yield "its file changed, but neither its questions nor its key"
