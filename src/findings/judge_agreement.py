"""How reliable a run's judges are: their agreement, their noise, and accuracy corrected for their error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from .. import storage
from ..errors import InputError
from ..records.judge_check import CHECK_FORMAT, CheckManifest, JudgeCheck, ReplyCounts
from ..schemas import BackgroundFact, Role, RunPlan
from ..stats.agreement import (
    Agreement,
    Coefficient,
    base_rates,
    bootstrap,
    krippendorff_alpha,
    mean_cohen_kappa,
    percent_agreement,
)
from ..stats.clustered import ClusterCount, ClusteredShare, share_by_unit
from ..stats.confusion import DRAWS, Corrected, JudgedGold, Labels, corrected_accuracy
from ..store.run_files import Versioned
from ..store.strict_json import fingerprint
from ..trials.row import LABELS, Row
from .read_run import Findings, LabelPair, Pattern, Verifiers

SEED = 20_250_401
"""For all resampling in reports; fixed, so that the same run gives the same report."""
RESAMPLES = 500
_ROLES = Labels("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
_JUDGING: tuple[Role, ...] = ("extractor", "verifier", "scorer", "adjudicator")


_COEFFICIENTS: dict[str, Coefficient] = {
    "percent agreement": percent_agreement,
    "Krippendorff's alpha": krippendorff_alpha,
    "Cohen's kappa (mean over pairs)": mean_cohen_kappa,
}


RECORD = "check.json"
"""The file that a judge check writes into its folder."""


R = TypeVar("R", JudgeCheck, CheckManifest)


def read_check(path: Path) -> JudgeCheck:
    """The record of a judge check, given its file or its folder."""
    return read_record(path / RECORD if path.is_dir() else path, JudgeCheck)


def read_record(path: Path, kind: type[R]) -> R:
    """The record or the manifest of a judge check."""
    try:
        written = msgspec.json.decode(path.read_bytes(), type=Versioned).format
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path.") from None
    except msgspec.DecodeError:
        raise InputError(f"{path} is not a judge check.") from None
    if written != CHECK_FORMAT:
        raise InputError(
            f"{path} was written by another release ({_RELEASES.get(written, 'a later one')}) and cannot be used here. "
            "Run `medicare-eval judge-check` again."
        )
    return storage.read_record(path, kind)


_RELEASES = {1: "0.2, which measured verifiers on gold claims alone", 2: "0.3, whose gold set knew no library of facts"}


@dataclass(frozen=True)
class Noise:
    """How often a judge that is asked again gives a different label."""

    judge: str
    model: str
    changed: ClusteredShare
    """Scenarios are the independent units."""


@dataclass(frozen=True)
class VerifiersAgreement:
    """How the verifiers of some targets agree with each other and with themselves."""

    verifiers: Verifiers
    targets: tuple[str, ...]
    claims: int
    coefficients: dict[str, Agreement]
    base_rates: dict[str, float]
    """Share of each label among all verdicts."""
    by_judge: dict[str, dict[str, float]]
    """Judge to share of each label among its verdicts."""
    noise: tuple[Noise, ...]


@dataclass(frozen=True)
class Judging:
    agreements: tuple[VerifiersAgreement, ...]
    """One for all targets with the same verifiers: labels of different models are never counted together."""
    corrected: dict[str, Corrected] = field(default_factory=dict)
    """By target: accuracy over claims, as judged and corrected; empty if no judge check was given."""
    check: JudgeCheck | None = None
    checked: tuple[str, ...] = ()
    """The targets whose judges the check measured."""

    @property
    def noise(self) -> tuple[Noise, ...]:
        return tuple(noise for one in self.agreements for noise in one.noise)

    @property
    def noise_floor(self) -> float | None:
        """The largest share of labels that a judge changed; smaller differences may be due to the judges."""
        return max((one.changed.value for one in self.noise if one.changed.value is not None), default=None)

    def check_of(self, target: str) -> JudgeCheck | None:
        """The judge check, if it measured the judges of this target."""
        return self.check if target in self.checked else None


def judging(found: Findings, check: JudgeCheck | None = None) -> Judging:
    """Agreement and noise of a run's judges; with a judge check of the same judges, also corrected accuracy."""
    targets: dict[Verifiers, list[str]] = {}
    for target in found.plan_targets:
        targets.setdefault(found.manifest.plan.judges_of(target).verifiers, []).append(target)
    agreements = tuple(_agreement(found, verifiers, tuple(names)) for verifiers, names in targets.items())
    if check is None:
        return Judging(agreements)
    return Judging(agreements, _corrected(found, check), check, _checked(check, found))


def _agreement(found: Findings, verifiers: Verifiers, targets: tuple[str, ...]) -> VerifiersAgreement:
    judged = found.judged.get(verifiers, {})
    clusters = [judged[scenario] for scenario in sorted(judged)]
    coefficients = {
        name: bootstrap(clusters, coefficient, seed=SEED, resamples=RESAMPLES)
        for name, coefficient in _COEFFICIENTS.items()
    }
    total: Counter[Pattern] = Counter()
    for counts in clusters:
        total.update(counts)
    seen = sorted(total, key=str)
    rates = base_rates(seen, [total[pattern] for pattern in seen])
    return VerifiersAgreement(
        verifiers=verifiers,
        targets=targets,
        claims=total.total(),
        coefficients=coefficients,
        base_rates={str(label): share for label, share in sorted(rates.items(), key=str)},
        by_judge={f"judge_{n + 1}": _rates(total, n) for n in range(len(verifiers))},
        noise=tuple(_noise(judge, verifiers, by) for judge, by in sorted(found.noise.get(verifiers, {}).items())),
    )


def _rates(total: Mapping[Pattern, int], place: int) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for pattern, n in total.items():
        label = pattern[place] if place < len(pattern) else None
        if label is not None:
            counts[label] += n
    given = sum(counts.values())
    return {label: counts[label] / given for label in LABELS} if given else {}


def _noise(judge: str, verifiers: Sequence[str], scenarios: Mapping[str, Counter[LabelPair]]) -> Noise:
    tallies = []
    for counts in scenarios.values():
        both = {pair: n for pair, n in counts.items() if None not in pair}
        tallies.append(ClusterCount(sum(n for (first, again), n in both.items() if first != again), sum(both.values())))
    number = int(judge.removeprefix("judge_"))
    return Noise(judge, verifiers[number - 1], share_by_unit(tallies))


def _corrected(found: Findings, check: JudgeCheck) -> dict[str, Corrected]:
    """Each target's accuracy over claims, corrected for what the same judges got wrong end to end."""
    plan = found.manifest.plan
    require_same_judges(check, plan)
    gold = gold_replies(check)
    corrected = {}
    for target in found.plan_targets:
        one = corrected_accuracy(clusters(found.of_target(target)), gold, _ROLES, seed=SEED, draws=DRAWS)
        other = next(_differences(check, plan.for_target(target)), None)
        corrected[target] = (
            Corrected(one.raw, why_not=f"judge check {check.check_id} is of others: {other}") if other else one
        )
    return corrected


def _checked(check: JudgeCheck, found: Findings) -> tuple[str, ...]:
    plan = found.manifest.plan
    return tuple(name for name in found.plan_targets if not any(_differences(check, plan.for_target(name))))


def clusters(rows: Sequence[Row]) -> list[Counter[str]]:
    """Labels of scored trials by scenario."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.outcome == "scored":
            found.setdefault(row.scenario_id, Counter()).update(dict(zip(LABELS, row.labels, strict=True)))
    return [found[name] for name in sorted(found)]


def gold_replies(check: JudgeCheck) -> list[JudgedGold]:
    """What the judges of a check did with each gold reply, end to end."""
    assert check.end_to_end is not None
    return [gold_reply(reply) for reply in check.end_to_end.replies]


def gold_reply(counts: ReplyCounts) -> JudgedGold:
    """The counts of one reply, as the corrections need them."""
    return JudgedGold(
        {(one.gold, one.given): one.claims for one in counts.confusion},
        {str(label): n for label, n in counts.spurious.items() if label != "open"},
    )


def require_same_judges(check: JudgeCheck, plan: RunPlan) -> None:
    """Raise if a check measured the judges of no target of a run: an error rate of other judges corrects nothing."""
    seen_by_target = [plan.for_target(targets[0]) for _, targets in plan.groups_of_judges()]
    differences = [next(_differences(check, seen), None) for seen in seen_by_target]
    if all(differences):
        first = seen_by_target[0]
        models = " ".join(f"--judge-model {model}" for model in dict.fromkeys(first.verifiers))
        ties = f"--adjudicator-model {first.adjudicator or 'none'}"
        raise InputError(
            f"Judge check {check.check_id} cannot correct this run: {differences[0]}. Measure what judged the run: "
            f"medicare-eval judge-check --judges {len(first.verifiers)} {models} {ties} --isolation {plan.isolation}"
        )


def _differences(check: JudgeCheck, plan: RunPlan) -> Iterator[str]:
    if check.end_to_end is None:
        yield "it measured verifiers on gold claims alone, not replies end to end"
    pairs: dict[str, tuple[object, object]] = {
        "verifiers": (" and ".join(sorted(check.verifiers)), " and ".join(sorted(plan.verifiers))),
        "extractor": (check.extractor, plan.extractor),
        "scorer": (check.scorer, plan.scorer),
        "adjudicator": (check.adjudicator or "none", plan.adjudicator or "none"),
        "isolation": (check.isolation, plan.isolation),
    }
    for what, (measured, used) in pairs.items():
        if measured != used:
            yield f"it measured {what} {measured}, but the run had {used}"
    for role in _JUDGING:
        if check.prompts[role] != plan.prompts[role].sha256:
            yield f"the {role} had another prompt"
    for model in plan.judge_models():
        if check.api_ids.get(model) != plan.api_ids.get(model):
            yield f"{model} was {check.api_ids.get(model)} in the check, and {plan.api_ids.get(model)} in the run"
        if check.parameters.get(model) != plan.parameters_of(model):
            yield f"{model} had other settings (temperature or longest answer)"
    for version, rubric in plan.rubrics.items():
        if check.rubrics.get(version, rubric.sha256) != rubric.sha256:
            yield f"rubric {version} has changed"
    if check.background_sha256 not in (None, background_sha256(plan.background)):
        yield "its verifiers had other background facts than those of the run"


def background_sha256(facts: Sequence[BackgroundFact]) -> str:
    """A hash of what background facts say, apart from what does not change the judges.

    That is figures, which are those of a plan year, and facts of states, which depend on where people live.
    """
    everywhere = [fact for fact in facts if not fact.states]
    return fingerprint({fact.fact_id: re.sub(r"\d+", "0", fact.statement) for fact in everywhere})
