"""A new run folder with its manifest: the plan, what it runs on, and what calls are taken to cost."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from .. import __version__, plugins, storage
from ..errors import InputError
from ..planning.limits import check_prices_known, limits_of, prices_as_of, prices_for, share_of, trials_at_once
from ..planning.preregistration import frozen_bytes, frozen_sha256
from ..planning.study_file import as_document
from ..records.model_name import split_name
from ..records.preregistration import Preregistration
from ..records.run import REPLAYABLE, SelectedTrials
from ..records.study import ExecutionOptions, Study
from ..schemas import Manifest, Registration, RunPlan, Shard, Stage, Transcripts
from ..store.failpoints import Failpoints
from ..store.strict_json import fingerprint
from ..text.count import counted
from .merge import complete_seal

DISTRIBUTION = "medicare-eval"
DEPENDENCIES = ("pydantic", "rich", "openai", "anthropic", "google-genai")


@dataclass(frozen=True)
class NewRun:
    folder: Path
    manifest: Manifest


def create_run(
    plan: RunPlan,
    *,
    out: Path,
    options: ExecutionOptions,
    prices: Path | None = None,
    study: Study | None = None,
    registration: Registration | None = None,
    transcripts: Transcripts | None = None,
    shard: Shard | None = None,
) -> NewRun:
    """Check what can be checked, make the run folder, and write its manifest."""
    failpoints = Failpoints.from_environment()
    now = datetime.now(UTC)
    limits = limits_of(options)
    if shard:
        _check_shard(shard, plan, options)
        share_of(limits, shard.of)
    providers = {split_name(name).provider for name in plan.api_ids}
    packs = {one.path.partition("/")[0] for one in plan.scenarios if one.path.startswith(plugins.PACK_PREFIX)}
    manifest = Manifest(
        run_id="",
        created=now.isoformat(timespec="seconds"),
        plan_sha256=fingerprint(plan.model_dump(mode="json")),
        versions=versions(),
        concurrency=trials_at_once(options, limits),
        prices_as_of=prices_as_of(prices),
        prices=prices_for(plan.api_ids, prices),
        transcripts=transcripts,
        registration=registration,
        plugins=plugins.used_by(providers, packs),
        study=as_document(study) if study else None,
        limits=limits,
        shard=shard,
        plan=plan,
    )
    check_prices_known(plan.api_ids, manifest.prices, limits.max_cost, plan.most_searches)
    folder = storage.create_run_folder(out, now, failpoints)
    manifest = manifest.model_copy(update={"run_id": folder.name})
    storage.write_once(folder / storage.MANIFEST, storage.encode_record(manifest) + b"\n", failpoints, "manifest")
    return NewRun(folder, manifest)


def _check_shard(shard: Shard, plan: RunPlan, options: ExecutionOptions) -> None:
    if shard.of > plan.question_sets:
        sets = counted(plan.question_sets, "question set")
        raise InputError(
            f"{shard.of} shards are too many: the plan has {sets} (scenarios times repeats).", field="shard"
        )
    if (options.processes or 1) > 1 or options.engine != "local":
        raise InputError("a shard runs in one process. Make more shards instead of using `processes`.", field="shard")


def transcripts_of(
    earlier: Path, out: Path, *, keep_claims: bool, keep_readings: bool = False, selected: SelectedTrials | None = None
) -> Transcripts:
    """How a manifest names the run whose transcripts are judged again."""
    manifest = storage.read_manifest(earlier)
    seal = complete_seal(earlier, manifest)
    if manifest.shard:
        shard = f"shard {manifest.shard.index} of {manifest.shard.of}"
        raise InputError(f"{earlier} is only {shard}. Merge all shards, and judge the merged run again.")
    if keep_claims and manifest.format not in REPLAYABLE:
        raise InputError(
            f"{earlier} has format {manifest.format}, and its claims cannot be reused: extractors are now asked in "
            "another way. Judge it again without this.",
            field="keep_claims",
        )
    journal = earlier / storage.JOURNAL
    journal_sha256 = storage.file_sha256(journal)
    if journal_sha256 != seal.files[storage.JOURNAL]:
        raise storage.differs_from_seal(journal)
    kept: list[Stage] = ["questioner", "target"]
    if keep_claims:
        kept.append("extractor")
    if keep_readings:
        kept.append("scorer")
    return Transcripts(
        run_id=manifest.run_id,
        folder=Path(os.path.relpath(earlier, out)).as_posix(),
        manifest_sha256=seal.files[storage.MANIFEST],
        journal_sha256=journal_sha256,
        stages=tuple(kept),
        selected=selected,
    )


def versions() -> dict[str, str]:
    """This project, Python, and each dependency that is installed."""
    found = {DISTRIBUTION: __version__, "python": platform.python_version()}
    for name in DEPENDENCIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_preregistration(path: Path, frozen: Preregistration) -> str:
    """Write a pre-registration where no file is yet. Returns the hash of the file, which is what to publish."""
    if path.exists():
        raise InputError(f"{path} already exists and will not be overwritten. Choose another file with `to`.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file with `to`.") from None
    storage.write_once(path, frozen_bytes(frozen), Failpoints(None), "frozen")
    return frozen_sha256(frozen)
