"""Tables as data frames: the same rows as an export, with types that keep a missing value missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from src.errors import ConfigError, InputError, IntegrityError
from src.exports.export import export, to_frame
from src.exports.tables import TABLES
from src.storage import RESULTS
from src.trials.columns import DataTable
from tests.cases import each_case

from ..helpers import ROOT
from ..runs import ONE, shared_run
from .made_runs import HOSTILE, one_of_each, planned, rich, write_run

FORMAT_1 = ROOT / "tests" / "formats" / "0.1" / "run"
NAMES = ("run", "trial", "judge", "turn", "claim", "verdict", "citation", "question", "dollar", "counselor")


@pytest.fixture(scope="module")
def pandas() -> Any:
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every outcome, hostile text and judges that failed."""
    results = [*one_of_each(), *(rich(n + 20) for n in range(3)), *(rich(30 + n, t) for n, t in enumerate(HOSTILE))]
    return write_run(tmp_path_factory.mktemp("varied") / "run", results, planned())


def exported(folder: Path, table: DataTable[Any], out: Path) -> list[dict[str, Any]]:
    if not out.exists():
        export(folder, out, ["jsonl"])
    text = (out / f"{table.name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def test_the_tables_are_those_of_the_export() -> None:
    assert tuple(table.name for table in TABLES) == NAMES


@each_case("table", TABLES, ids=lambda table: table.name)
def test_a_frame_has_the_rows_of_the_export(table: DataTable[Any], varied: Path, pandas: Any, tmp_path: Path) -> None:
    frame = to_frame(varied, table.name)
    rows = exported(varied, table, tmp_path / "out")
    assert list(frame.columns) == [column.name for column in table.columns]
    assert len(frame) == len(rows)
    for name in frame.columns:
        cells = [None if pandas.isna(cell) else cell for cell in frame[name]]
        assert cells == [row[name] for row in rows], name


def test_a_real_run_gives_the_same_frames_by_singular_and_plural(pandas: Any) -> None:
    run = shared_run("--scenario", ONE, "--target", "fake:wrong")
    for name in NAMES:
        assert (len(to_frame(run, name)) > 0) == (name != "citation")  # no reply of this run cites anything
        pandas.testing.assert_frame_equal(to_frame(run, name), to_frame(run, f"{name}s"))


def test_types_keep_missing_values_missing(varied: Path, pandas: Any) -> None:
    trials = to_frame(varied, "trials")
    assert str(trials["claims"].dtype) == "Int64"
    assert str(trials["accuracy"].dtype) == "Float64"
    assert str(trials["served_as_requested"].dtype) == "boolean"
    assert str(trials["trial_id"].dtype) in ("string", "str")
    assert set(trials["outcome"].dtype.categories) >= {"scored", "tampered"}
    failed = trials[trials["outcome"] == "failed"]
    assert failed["accuracy"].isna().all()
    assert list(failed["accuracy_missing"]) == ["failed"]
    scored = trials[trials["outcome"] == "scored"]
    assert scored["accuracy"].mean() == pytest.approx(
        sum(value for value in scored["accuracy"] if not pandas.isna(value)) / scored["accuracy"].count()
    )
    questions = to_frame(varied, "questions")
    assert questions["study_group"].isna().all()
    assert str(questions["study_group"].dtype) == "Int64"


def test_tables_of_one_run_join(varied: Path, pandas: Any) -> None:
    claims, trials = to_frame(varied, "claims"), to_frame(varied, "trials")
    joined = claims.merge(trials[["run_id", "trial_id", "outcome"]], on=["run_id", "trial_id"], validate="many_to_one")
    assert len(joined) == len(claims)


def test_a_run_of_format_1_can_be_read(pandas: Any) -> None:
    trials = to_frame(FORMAT_1, "trial")
    assert len(trials) == 9
    marked = trials[trials["needs_manual_review"]]
    assert list(marked["review_reasons"]) == list(marked["review_details"]) == ["not recorded by release 0.1"]
    assert trials[~trials["needs_manual_review"]]["review_reasons"].isna().all()
    assert list(to_frame(FORMAT_1, "run")["software_version"]) == ["0.1.0"]


def test_an_unknown_table_is_refused_with_the_names(varied: Path) -> None:
    for name in ("scores", "Trial", "", "trialss"):
        with pytest.raises(InputError, match=f"Use {', '.join(NAMES)}"):
            to_frame(varied, name)


def test_without_pandas_the_error_says_how_to_install_it(varied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="python -m pip install pandas"):
        to_frame(varied, "trial")


def test_what_is_no_run_or_was_changed_is_refused(tmp_path: Path, pandas: Any) -> None:
    with pytest.raises(InputError, match="nowhere does not exist"):
        to_frame(tmp_path / "nowhere", "trial")
    folder = write_run(tmp_path / "run", [rich(1), rich(2)], planned())
    path = folder / RESULTS
    path.write_bytes(path.read_bytes().replace(b'"repetition":2', b'"repetition":9'))
    with pytest.raises(IntegrityError, match="line 2"):
        to_frame(folder, "run")
