"""Scenario files: found and read strictly. An error names the file, the field and what is allowed."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import ValidationError

from ..errors import InputError
from ..plugins import PACK_PREFIX, pack_folder
from ..schemas import PlannedScenario, Scenario, Variant
from ..store.input_files import explain, read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from .fill_slots import Overlay, Resolved, resolve
from .library import Library

RUBRICS = "rubrics"
"""A folder of this name holds rubrics, not scenarios."""


def expand(arguments: Sequence[str]) -> list[Path]:
    """Files, folders (searched for *.json), globs and packs -> files, each once, in the order given, folders sorted."""
    return list(find_scenarios(arguments))


def find_scenarios(arguments: Sequence[str]) -> dict[Path, str]:
    """Every file, with the name that a manifest gives it."""
    found: dict[Path, str] = {}
    for argument in arguments:
        try:
            here = matches(argument) if argument.strip() else {}
        except (OSError, ValueError):
            here = {}
        if not here:
            shown = repr(argument[:80])[1:-1] if argument.strip() else repr(argument[:80])
            raise InputError(f"{shown}: no scenario file found. Give a .json file, a folder, a glob or pack:NAME.")
        found |= here
    return found


def matches(argument: str) -> dict[Path, str]:
    """The files that an argument names, each with its name in a manifest.

    A path or glob that begins with `scenarios/` and matches nothing here is looked up in the bundled bank.
    """
    if argument.startswith(PACK_PREFIX):
        folder = pack_folder(argument.removeprefix(PACK_PREFIX))
        return {path: f"{argument}/{path.relative_to(folder).as_posix()}" for path in _below(folder)}
    here = {path: path.as_posix() for path in files_at(argument)}
    path, bank = Path(argument), data_folder("scenarios")
    if here or path.parts[:1] != (bank.name,) or Path(bank.name).exists():
        return here
    bundled = files_at(str(bank.joinpath(*path.parts[1:])))
    return {path: path.relative_to(bank.parent).as_posix() for path in bundled}


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.json") if RUBRICS not in path.relative_to(folder).parts)


def files_at(argument: str) -> list[Path]:
    """The files that a path or glob names on this machine, without a look at packs and the bundled bank."""
    path = Path(argument)
    if path.is_dir():
        return _below(path)
    if path.is_file():
        return [path]
    found = glob.glob(argument, recursive=True)  # noqa: PTH207 - takes absolute patterns, Path.glob does not
    return sorted(path for path in map(Path, found) if path.is_file() and path.parent.name != RUBRICS)


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario as its author wrote it: with open slots and all variants."""

    path: Path
    sha256: str
    scenario: Scenario
    name: str
    """How a manifest names the file: the path as given, or `pack:NAME/FILE`."""

    def years(self, library: Library) -> list[int]:
        """The plan years with figures that begin no earlier than the scenario does."""
        return [year for year in library.years if date(year, 12, 31) >= self.scenario.effective_date]

    def planned(
        self, plan_year: int, library: Library, only: Sequence[str] = (), overlay: Overlay | None = None
    ) -> tuple[PlannedScenario, ...]:
        """Every variant, or those named, made ready for a plan year."""
        variants = [v for v in self.scenario.variants if not only or v.variant_id in only]
        return tuple(
            self._planned(variant, plan_year, library, overlay)
            for variant in (variants if self.scenario.variants else [None])
        )

    def _planned(
        self, variant: Variant | None, plan_year: int, library: Library, overlay: Overlay | None
    ) -> PlannedScenario:
        ready = self._resolved(variant, plan_year, library, overlay)
        return PlannedScenario(
            path=self.name,
            sha256=self.sha256,
            variant=variant.variant_id if variant else None,
            scenario=ready.scenario,
            state_code=library.state_code(ready.scenario.persona.state),
            unpublished=ready.unpublished,
            left_out=ready.left_out,
        )

    def _resolved(self, variant: Variant | None, plan_year: int, library: Library, overlay: Overlay | None) -> Resolved:
        where = self.path
        try:
            ready = resolve(self.scenario, variant, plan_year, library)
            if overlay is None:
                return ready
            where = overlay.path
            return resolve(self.scenario, variant, plan_year, library, overlay.wording)
        except InputError as error:
            if any(problem.field for problem in error.problems):  # it is about the study, not about this file
                raise
            raise InputError(f"{where}: {error}") from None
        except ValidationError as error:
            raise InputError(f"{where}: once its slots are filled, {explain(error, Scenario)}") from None


def read_scenarios(arguments: Sequence[str]) -> tuple[ScenarioFile, ...]:
    return read_found(find_scenarios(arguments))


def read_found(found: Mapping[Path, str]) -> tuple[ScenarioFile, ...]:
    """The scenario in each file; no two may have the same id."""
    files = tuple(read_scenario(path, name) for path, name in found.items())
    by_id: dict[str, Path] = {}
    for one in files:
        other = by_id.setdefault(one.scenario.scenario_id, one.path)
        if other != one.path:
            raise InputError(
                f"{one.path}: field scenario_id: {one.scenario.scenario_id!r} is also used by {other}. Change one."
            )
    return files


def read_scenario(path: Path, name: str | None = None) -> ScenarioFile:
    if not str(path).isprintable():  # a manifest is text, and so is every message that names the file
        raise InputError(f"{str(path)!r}: the file name is not printable text. Rename the file.")
    data, scenario = read_user_file(path, Scenario)
    return ScenarioFile(path, sha256(data), scenario, name or path.as_posix())
