"""The files that answer keys refer to: figures by plan year, the library of facts, state facts, invented plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

from ..errors import InputError, about
from ..schemas import BackgroundFact, FactLibrary, InventedPlans, StateFacts, YearFacts
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from . import clock

R = TypeVar("R", YearFacts, FactLibrary, StateFacts, InventedPlans)


@dataclass
class Library:
    """The files that keys refer to. Each is read once, and its hash is kept for the manifest."""

    facts_file: Path | None = None
    invented_plans_file: Path | None = None
    library_folder: Path | None = None
    """Another library of facts than ours."""
    today: date = field(default_factory=clock.today)
    """Whether a figure is still awaited depends on the day."""
    used: dict[str, str] = field(default_factory=dict)
    _cache: dict[Path, tuple[str, YearFacts | FactLibrary | StateFacts | InventedPlans]] = field(default_factory=dict)
    """By path: the hash of the file, and its record."""

    def __post_init__(self) -> None:
        """Read the files given now: a wrong one is an error even if no scenario needs it."""
        if self.facts_file:
            with about("facts"):
                self._read(self.facts_file, YearFacts)
        if self.invented_plans_file:
            with about("invented_plans"):
                self._read(self.invented_plans_file, InventedPlans)

    @cached_property
    def _bundled_years(self) -> dict[int, Path]:
        return {int(path.stem): path for path in sorted(data_folder("facts").glob("[0-9]*.json"))}

    @cached_property
    def years(self) -> dict[int, Path]:
        """Plan years that have figures, and the file of each."""
        shipped = dict(self._bundled_years)
        if self.facts_file:
            shipped[self._read(self.facts_file, YearFacts).plan_year] = self.facts_file
        return shipped

    def year(self, plan_year: int) -> YearFacts:
        """The figures of a plan year: the bundled ones, with those of the user's file in their place or beside them."""
        path = self.years.get(plan_year)
        if path is None:
            *others, last = map(str, self.years)
            raise InputError(
                f"figures are available only for {', '.join(others)} and {last}, not for {plan_year}. "
                "Add a file for that year with `facts`, or choose another `plan_year`.",
                field="plan_year",
            )
        found = self._read(path, YearFacts, f"facts/{path.name}")
        if found.plan_year != plan_year:
            raise InputError(f"{path}: field plan_year: {found.plan_year} does not match the file name.")
        bundled = self._bundled_years.get(plan_year)
        if path != self.facts_file or bundled is None:
            return found
        ours = self._read(bundled, YearFacts, f"facts/{bundled.name} (bundled)")
        joined = {**ours.figures, **found.figures}
        return found.model_copy(update={"figures": joined, "compiled": min(found.compiled, ours.compiled)})

    def invented_plans(self, name: str) -> InventedPlans:
        path = self.invented_plans_file or data_folder("plans") / f"{name}.json"
        if not path.is_file():
            raise InputError(
                f"plan_file {name!r}: {path} does not exist. Check the name, or give a file with `invented_plans`."
            )
        return self._read(path, InventedPlans, f"plans/{path.name}")

    @cached_property
    def facts(self) -> dict[str, BackgroundFact]:
        """Every fact of the library and of the states as its author wrote it, by id."""
        folder = self.library_folder or data_folder("facts") / "library"
        file_of: dict[str, Path] = {}
        facts: dict[str, BackgroundFact] = {}
        listed = [
            (path, fact)
            for path in sorted(folder.glob("*.json"))
            for fact in self._read(path, FactLibrary, f"facts/library/{path.name}").facts
        ]
        listed += [(path, fact) for path, one in self._state_files.items() for fact in one.in_state()]
        for path, fact in listed:
            if fact.fact_id in file_of:
                other = file_of[fact.fact_id]
                raise InputError(f"{path}: field fact_id: {fact.fact_id!r} is also used by {other}. Change one.")
            file_of[fact.fact_id] = path
            facts[fact.fact_id] = fact
        return dict(sorted(facts.items()))

    def state_code(self, name: object) -> str | None:
        """The code of a state that has facts of its own, given its name or its code. Its file is noted as used."""
        path = self._state_file_of.get(name.strip().casefold()) if isinstance(name, str) else None
        return self._read(path, StateFacts, f"facts/states/{path.name}").state if path else None

    @cached_property
    def state_topics(self) -> frozenset[str]:
        """What at least one state has a fact about: the part of the id after the state's code."""
        return frozenset(
            fact.fact_id.removeprefix(f"B-{one.state.lower()}-")
            for one in self._state_files.values()
            for fact in one.facts
        )

    @cached_property
    def _state_file_of(self) -> dict[str, Path]:
        files = self._state_files.items()
        return {name.casefold(): path for path, one in files for name in (one.state, one.name)}

    @cached_property
    def _state_files(self) -> dict[Path, StateFacts]:
        folder = (self.library_folder or data_folder("facts") / "library").parent / "states"
        return {path: self._read(path, StateFacts) for path in sorted(folder.glob("*.json"))}

    def is_amount(self, name: str) -> bool:
        """Whether a figure is an amount of dollars, as far as any year shows: SLMB is none."""
        files = (self._read(path, YearFacts).figures.get(name) for path in self._bundled_years.values())
        return all(figure.value.startswith("$") for figure in files if figure and figure.value)

    def names_figure(self, name: str) -> bool:
        """Whether any plan year has a figure of this name. A file that is only asked this is not noted as used."""
        files = {*self._bundled_years.values(), *self.years.values()}
        return any(name in self._read(path, YearFacts).figures for path in files)

    def _read(self, path: Path, kind: type[R], name: str | None = None) -> R:
        if path not in self._cache:
            self._cache[path] = _load(path, kind, _stamp(path))
        found, record = self._cache[path]
        if name:
            self.used[name] = found
        assert isinstance(record, kind)
        return record


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file does; None if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=256)
def _load(path: Path, kind: type[R], stamp: tuple[int, int] | None) -> tuple[str, R]:
    """A file as it is now, and its hash. The library has many files, and one process may plan many runs."""
    data, record = read_user_file(path, kind)
    return sha256(data), record
