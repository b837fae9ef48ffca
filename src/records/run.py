"""What a run folder contains: plan, manifest, journal entries, seal (spec 9). Results are in `result`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from .background import BackgroundFact, StateCode
from .base import CallOutcome, Ident, Line, ModelName, Record, Sha256, is_empty, is_false, is_none, is_zero
from .citation import SnapshotPage
from .facts import PlanYear
from .ids import repeats_in, repeats_of, scenario_name
from .price import Price
from .rubric import Rubric
from .scenario import Scenario
from .target import TargetSettings, WebSearch

ROLES = ("questioner", "extractor", "verifier", "scorer", "adjudicator")
Role = Literal["questioner", "extractor", "verifier", "scorer", "adjudicator"]
Stage = Literal["questioner", "target", "extractor", "verifier", "scorer", "adjudicator", "probe"]
"""`probe`: a short call that only asks whether a model answers at all; no result depends on it."""
Isolation = Literal["claim", "flagged", "reply"]
"""How many claims a verifier sees in one call.

`claim`: one. `reply`: all of a reply. `flagged`: one if the extractor at first leaves out much of the reply, or if it
is in the audit sample; otherwise claims of a kind share calls: factual ones that could be about the key, other factual
ones, advice and referrals, claims in the reply's own words. Claims of passages that the screen marks are always alone.
"""

Format = Literal[1, 2, 3, 4, 5, 6]
FORMAT: Format = 6
"""The format this release writes: of the manifest, each journal line, each result and the seal.

A release that adds or renames a field, or computes a result differently from the same calls, raises it.
"""
FIRST_RELEASE: dict[int, str] = {
    1: "ai-medicare-eval 0.1.0",
    2: "medicare-eval 0.2.0",
    3: "medicare-eval 0.3.0",
    4: "medicare-eval 0.4.0",
    5: "medicare-eval 0.6.0",
    6: "medicare-eval 0.7.0",
}
"""Format to the first release that wrote it, which is also one that can replay it."""

REPLAYABLE: tuple[Format, ...] = (6,)
"""Formats whose results this release computes again, byte for byte, from the same calls."""


MAX_SHARDS = 500
"""A merge keeps one file of each shard open."""
BatchMode = Literal["none", "judges"]


def is_first(value: int) -> bool:
    """Format 1 did not write its number into journal lines and results."""
    return value == 1


class UnpublishedPoint(Record):
    """A point of the key, or of one of its turns, that rests on figures which are not published or not known."""

    turn_id: Ident | None
    point: str


class PlannedScenario(Record):
    """A scenario, or one variant of it, as it was when the run was planned; the run no longer needs its file.

    Figures, plan, doctor and place are filled in, and facts of other plan years or plans are removed.
    """

    path: str
    sha256: Sha256
    """Of the scenario's file."""
    variant: Ident | None = None
    scenario: Scenario
    state_code: StateCode | None = Field(default=None, exclude_if=is_none)
    """The persona's state, if the library has facts of that state."""
    unpublished: tuple[UnpublishedPoint, ...] = Field(default=(), exclude_if=is_empty)
    """Points that were left out because their figures are not known."""
    left_out: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Library facts of the key that state no figure, because it is not known."""

    @property
    def name(self) -> str:
        """The name that trials use: `scenario_001`, or `medicare_only@hmo`."""
        return scenario_name(self.scenario.scenario_id, self.variant)


class UsedWording(Record):
    """Words that replaced ours, and where they came from."""

    title: Line
    sha256: Sha256
    turns: dict[Ident, tuple[Ident, ...]]
    """Scenario id to the turns that were replaced."""


class PlannedRubric(Record):
    sha256: Sha256
    rubric: Rubric


class CallParameters(Record):
    temperature: float | None = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1, le=1_000_000)


class CallPolicy(Record):
    """How many times and how long a call is tried before its failure is the outcome."""

    max_attempts: int = Field(default=5, ge=1, le=50)
    """Attempts at one call when the provider is busy, slow or broken."""
    deadline_s: float = Field(default=600.0, gt=0, le=86_400)
    """Longest time one call and its retries may take."""
    timeout_s: float = Field(default=120.0, gt=0, le=3_600)
    """Longest time one attempt may take."""
    max_asks: int = Field(default=3, ge=1, le=10)
    """Times a judge is asked in total if its answers do not fit the contract."""


class Prompt(Record):
    sha256: Sha256
    """Of the template's file."""
    text: str
    """As it is sent: the template filled."""


class CitationChecks(Record):
    """The snapshot of pages against which citations are checked."""

    sha256: Sha256 | None = Field(default=None, exclude_if=is_none)
    """Of its file; None if only the form of an address is checked."""
    pages: tuple[SnapshotPage, ...] = Field(default=(), exclude_if=is_empty)


class TargetJudges(Record):
    """Who judges the replies of a target."""

    verifiers: tuple[ModelName, ...] = Field(min_length=2)
    extractor: ModelName
    scorer: ModelName
    adjudicator: ModelName | None

    @property
    def models(self) -> tuple[str, ...]:
        named = (self.extractor, *self.verifiers, self.scorer, *filter(None, [self.adjudicator]))
        return tuple(dict.fromkeys(named))

    @property
    def one_model(self) -> bool:
        """Whether all verifiers are one model, so that their agreement is not that of two judges."""
        return len(set(self.verifiers)) == 1


class RunPlan(Record):
    """Everything that decides a run's results, and nothing else: no clock, no concurrency, no output path."""

    scenarios: tuple[PlannedScenario, ...] = Field(min_length=1)
    plan_year: PlanYear
    references: dict[str, Sha256] = Field(default_factory=dict)
    """Hashes of the files of figures and invented plans that filled the keys."""
    background: tuple[BackgroundFact, ...] = Field(default=(), exclude_if=is_empty)
    """Facts of the shared library that hold in the plan year, sorted by id; verifiers are shown those that a claim is
    about. Empty in runs of formats 1 and 2."""
    wording: UsedWording | None = None
    rubrics: dict[str, PlannedRubric] = Field(min_length=1)
    expired: tuple[str, ...] = ()
    """Why keys are out of date, if the user allowed expired keys."""
    coming: bool = Field(default=False, exclude_if=is_false)
    """Whether the plan year had not begun when the run was planned."""
    targets: tuple[ModelName, ...] = Field(min_length=1)
    verifiers: tuple[ModelName, ...] = Field(min_length=2)
    """One entry per verifier: the judge models, cycled."""
    extractor: ModelName
    scorer: ModelName
    adjudicator: ModelName | None
    """Settles ties. None: no model of a third family is available, so ties stay open for a person."""
    judges_by_target: dict[ModelName, TargetJudges] = Field(default_factory=dict, exclude_if=is_empty)
    """Who judges each target, if not all targets have the same judges; the four fields above are then those of the
    first. `judges_of` tells who judges a target."""
    questioner: ModelName | None = None
    """Set only if the user asked for paraphrase."""
    api_ids: dict[ModelName, str]
    """The API id of each model, pinned when the run was planned."""
    repeats: int = Field(ge=1, le=10_000)
    judge_repeats: int = Field(default=0, ge=0, le=20)
    """Times each verifier judges the sampled trials again, with other seeds."""
    judge_sample: float = Field(default=0.25, gt=0, le=1)
    """Share of trials that are judged again."""
    isolation: Isolation = Field(default="reply", exclude_if=lambda value: value == "reply")
    """Runs of formats 1 and 2 verified all claims of a reply in one call."""
    audit_sample: float = Field(default=0.0, ge=0, le=1, exclude_if=is_zero)
    """With `flagged`: share of unmarked replies that are verified both ways, so that the difference can be reported."""
    seed: int = Field(ge=0, le=2**63 - 1)
    target_parameters: CallParameters
    judge_parameters: CallParameters
    model_parameters: dict[ModelName, CallParameters] = Field(default_factory=dict, exclude_if=is_empty)
    """Parameters of single targets and judges, if the study gives them; all others use the two above."""
    target_settings: dict[ModelName, TargetSettings] = Field(default_factory=dict, exclude_if=is_empty)
    """What sets single targets apart from a bare model: system prompt, reasoning, search, recorded conversations."""
    citation_checks: CitationChecks | None = Field(default=None, exclude_if=is_none)
    """What citations are checked against. None in runs of earlier releases, which checked none."""
    policy: CallPolicy
    prompts: dict[Role, Prompt]

    def parameters_of(self, model: str) -> CallParameters:
        shared = self.target_parameters if model in self.targets else self.judge_parameters
        return self.model_parameters.get(model, shared)

    def settings_of(self, target: str) -> TargetSettings:
        return self.target_settings.get(target) or TargetSettings()

    @property
    def most_searches(self) -> dict[str, int]:
        """Web searches in one reply, at most, of the targets that search."""
        searching = {name: own.search for name, own in self.target_settings.items() if own.search}
        return {name: search.max_searches for name, search in searching.items()}

    def repeats_of(self, target: str, scenario: str) -> int:
        return repeats_of(self, target, scenario)

    def trials_of(self, target: str) -> int:
        return sum(self.repeats_of(target, planned.name) for planned in self.scenarios)

    @property
    def trial_count(self) -> int:
        return sum(map(self.trials_of, self.targets))

    @property
    def question_sets(self) -> int:
        """Scenarios times repeats. All targets are asked the same set, so shards divide sets and not trials."""
        return sum(repeats_in(self, planned.name) for planned in self.scenarios)

    @property
    def points_left_out(self) -> int:
        """Points of questions that nobody can make, because their figures are not known; each once for a scenario."""
        return len(
            {
                (planned.scenario.scenario_id, lost.turn_id, lost.point)
                for planned in self.scenarios
                for lost in planned.unpublished
                if lost.turn_id
            }
        )

    def judges_of(self, target: str) -> TargetJudges:
        """Who judges a target. Nothing else decides it."""
        return self.judges_by_target.get(target) or TargetJudges(
            verifiers=self.verifiers, extractor=self.extractor, scorer=self.scorer, adjudicator=self.adjudicator
        )

    def for_target(self, target: str) -> RunPlan:
        """This plan, with the judges of one target as those of all."""
        if not self.judges_by_target:
            return self
        return self.model_copy(update={**dict(self.judges_of(target)), "judges_by_target": {}})

    def groups_of_judges(self) -> tuple[tuple[TargetJudges, tuple[str, ...]], ...]:
        """The different judges of a plan, each with the targets that they judge."""
        found: dict[TargetJudges, list[str]] = {}
        for target in self.targets:
            found.setdefault(self.judges_of(target), []).append(target)
        return tuple((judges, tuple(targets)) for judges, targets in found.items())

    @property
    def all_verifiers(self) -> tuple[str, ...]:
        """Each model that verifies replies of a target."""
        return tuple(dict.fromkeys(name for judges, _ in self.groups_of_judges() for name in judges.verifiers))

    def judge_models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for judges, _ in self.groups_of_judges() for name in judges.models))


# A verdict that a reader doubts. It is kept beside runs and changes none; a review takes it up.
class Doubt(Record):
    run_id: str
    trial_id: str
    claim_id: str
    note: Line
    """Why, in the reader's words."""
    marked_at: str
    """UTC."""


class SelectedTrials(Record):
    """A part of an earlier run's trials: some chosen for what they are, and a random sample of the others."""

    chosen: tuple[str, ...]
    why: Line
    """What the chosen trials have in common."""
    sampled: tuple[str, ...]
    of: int = Field(ge=0)
    """How many others there were to draw from."""
    seed: int = Field(ge=0, le=2**63 - 1)
    doubted: tuple[Doubt, ...] = Field(default=(), exclude_if=is_empty)
    """What readers had marked; the trials of these are among the chosen."""


class Transcripts(Record):
    """An earlier run whose calls to the target, and perhaps to the extractor, a re-judging run reuses."""

    run_id: str
    folder: str
    """Where it was, relative to the folder of runs; the hashes tell whether it is still the same run."""
    manifest_sha256: Sha256
    journal_sha256: Sha256
    stages: tuple[Stage, ...]
    selected: SelectedTrials | None = Field(default=None, exclude_if=is_none)
    """The trials that are judged again; None: all of them."""


class Registration(Record):
    """What a run keeps of the pre-registration it was started with."""

    sha256: Sha256
    """Of the pre-registration's file."""
    created: str
    primary_outcome: Line
    tests: tuple[Line, ...]
    notes: str
    deviations: tuple[str, ...]
    """One sentence per difference between the run's plan and the registered one."""


class RunLimits(Record):
    """Limits that hold for a run, also when it is resumed, until others are given. None of it can change a result."""

    max_cost: float | None = None
    """US dollars for all calls of the run."""
    requests_per_minute: dict[str, int] = Field(default_factory=dict)
    """By provider."""
    tokens_per_minute: dict[str, int] = Field(default_factory=dict)
    """By provider."""
    calls_in_flight: dict[str, int] = Field(default_factory=dict)
    """By provider; `*` is every provider that is not named."""
    max_outage_s: float = 1_800.0
    """Seconds a model may give no answer to anything before the run stops."""
    batch: BatchMode = Field(default="none", exclude_if=lambda mode: mode == "none")
    """Which calls go into batches."""


class Shard(Record):
    """Which part of a plan a run folder has: every `of`-th question set, from the `index`-th on."""

    index: int = Field(ge=1)
    of: int = Field(ge=1, le=MAX_SHARDS)

    @property
    def name(self) -> str:
        return f"{self.index}-of-{self.of}"


class Manifest(Record):
    format: Format = FORMAT
    run_id: str
    created: str
    plan_sha256: Sha256
    versions: dict[str, str]
    """Versions of this project, Python and each installed dependency."""
    concurrency: int
    prices_as_of: str
    prices: dict[ModelName, Price]
    """The price of each model when the run started. A model that is missing here had no known price."""
    transcripts: Transcripts | None = None
    """Where the target's replies come from, if not from this run."""
    registration: Registration | None = None
    """The pre-registration this run was started with, and how it differs from it."""
    plugins: dict[str, str] | None = Field(default=None, exclude_if=is_none)
    """Installed plugins this run used: `kind:name` to `package version`. None in runs of format 1."""
    study: dict[str, Any] | None = Field(default=None, exclude_if=is_none)
    """The study file and flags this run was started with, in full. None in runs of format 1 and in re-judgings."""
    limits: RunLimits | None = Field(default=None, exclude_if=is_none)
    """Limits the run was started with. None in runs of formats 1 to 4. A later line of the journal may replace them."""
    shard: Shard | None = Field(default=None, exclude_if=is_none)
    """The part of the plan that this folder has; None: all of it."""
    plan: RunPlan

    @property
    def trial_count(self) -> int:
        """Trials of this folder: all of the plan, those of its shard, or those selected to be judged again."""
        if self.transcripts and self.transcripts.selected:
            return len(self.transcripts.selected.chosen) + len(self.transcripts.selected.sampled)
        if self.shard is None:
            return self.plan.trial_count
        sets = (
            sum(self.plan.repeats_of(target, planned.name) >= repetition for target in self.plan.targets)
            for planned in self.plan.scenarios
            for repetition in range(1, repeats_in(self.plan, planned.name) + 1)
        )
        return sum(islice(sets, self.shard.index - 1, None, self.shard.of))

    @property
    def models_called(self) -> tuple[str, ...]:
        """The models that this run asks. Those whose calls it takes from an earlier run are not among them."""
        plan, taken = self.plan, self.transcripts.stages if self.transcripts else ()
        judges = [one for one, _ in plan.groups_of_judges()]
        roles: dict[Stage, tuple[str | None, ...]] = {
            "questioner": (plan.questioner,),
            "target": plan.targets,
            "extractor": tuple(one.extractor for one in judges),
            "verifier": plan.all_verifiers,
            "scorer": tuple(one.scorer for one in judges),
            "adjudicator": tuple(one.adjudicator for one in judges),
        }
        named = (model for stage, models in roles.items() if stage not in taken for model in models)
        return tuple(dict.fromkeys(filter(None, named)))


class Usage(Record):
    """Tokens of one attempt, as the provider counted them, in the same meaning for all; None where it did not say."""

    input_tokens: int | None = None
    """All that was sent, with what was read from a cache or written to one."""
    output_tokens: int | None = None
    """All that was written, with reasoning."""
    cached_tokens: int | None = None
    """Of the input: read from the provider's cache."""
    reasoning_tokens: int | None = None
    """Of the output."""
    cache_write_tokens: int | None = Field(default=None, exclude_if=is_none)
    """Of the input: written to the provider's cache, where the provider counts that. Never also in `cached_tokens`."""


class CallRecord(Record):
    """One attempt at one call, as the journal keeps it."""

    call: str
    """trial|stage|turn|judge|ask|attempt; the judge is followed by `.part` if its work took more than one call."""
    request_sha256: Sha256
    """Of the request as the pipeline made it: a replay must make the same one."""
    prompt_sha256: Sha256 | None
    """Of the prompt file behind the request; None for a target, which gets no prompt of ours."""
    model: ModelName
    outcome: CallOutcome
    final: bool
    """Whether this is the outcome of the call; if not, another attempt follows."""
    status: int | None
    """The HTTP status, if it was an error."""
    usage: Usage
    input_characters: int
    max_tokens: int
    served_model: str | None
    fingerprint: str | None
    request_id: str | None
    stop_reason: str | None
    not_applied: tuple[str, ...]
    """Requested parameters that this model does not take."""
    started: str
    latency_ms: float
    error: str | None
    text: str | None
    sent: Any
    """The request body as the adapter sent it, without secrets."""
    received: Any
    """The response body, verbatim; `{"base64": ...}` where it is not UTF-8."""
    address: str | None = Field(default=None, exclude_if=is_none)
    """Where the request was sent, without query, name or password. None: not over a network, or before format 5."""
    api_version: str | None = Field(default=None, exclude_if=is_none)
    """The version of the provider's API that was asked for, where it has versions."""
    batch: str | None = Field(default=None, exclude_if=is_none)
    """The provider's id of the batch that the call was a line of; None for a call of its own."""
    search: WebSearch | None = Field(default=None, exclude_if=is_none)
    """What the target searched for this reply."""
    format: Format = Field(default=1, exclude_if=is_first)


class CallHead(Record):
    """The fields of a `CallRecord` that are counted over a whole run."""

    model_config = ConfigDict(extra="ignore")

    call: str
    model: ModelName
    outcome: CallOutcome
    status: int | None
    usage: Usage
    input_characters: int
    max_tokens: int
    batch: str | None = None
    search: WebSearch | None = None


class TornLine(Record):
    line: int
    length: int
    sha256: Sha256


class RecoveryRecord(Record):
    """Written when a run is resumed after a crash: lists the lines that were left half written."""

    recovered: tuple[TornLine, ...] = Field(min_length=1)


class LimitsNote(Record):
    """A line of the journal: limits given to `resume`, which replace the earlier ones from here on."""

    note: Literal["limits"] = "limits"
    limits: RunLimits
    started: str
    format: Format = FORMAT


class BatchLine(Record):
    """One call of a batch."""

    custom_id: str
    call: str
    """The call's id in the journal, with its attempt."""
    request_sha256: Sha256


class BatchIntent(Record):
    """A line of the journal: written before a batch is sent, so that it is found again if the process ends there."""

    note: Literal["batch_intent"] = "batch_intent"
    intent: str
    """Our name of the batch, which the provider is told where its API has room for it."""
    model: ModelName
    lines: tuple[BatchLine, ...] = Field(min_length=1)
    started: str
    format: Format = FORMAT


class BatchCreated(Record):
    """A line of the journal: the provider has accepted the batch."""

    note: Literal["batch_created"] = "batch_created"
    intent: str
    batch: str
    """The provider's id of it."""
    ends: str | None = None
    """When the provider ends it at the latest."""
    format: Format = FORMAT


class BatchEnded(Record):
    """A line of the journal: every line of the batch that came back is a call in the journal."""

    note: Literal["batch_ended"] = "batch_ended"
    intent: str
    batch: str | None
    """None: the provider never got it."""
    state: str
    """As the provider calls it."""
    format: Format = FORMAT


JournalNote = Annotated[LimitsNote | BatchIntent | BatchCreated | BatchEnded, Field(discriminator="note")]
"""A line of the journal that is neither a call nor a record of torn lines."""


class Seal(Record):
    """Written when a run is complete: what its files were."""

    format: Format = FORMAT
    results_head: Sha256
    """The last chain value of results.jsonl. Keep it elsewhere: `verify --expect` checks against it."""
    journal_head: Sha256
    trials: int
    calls: int
    files: dict[str, Sha256]
