"""Exports hold what the run holds, in every format; a missing value always says why; hostile text stays text."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from src.cli.parser import main
from src.errors import ConfigError, ExportError, InputError, IntegrityError, StorageError
from src.exports import export as exporting
from src.exports import tables, writers
from src.exports.export import FORMATS, STARTERS, export
from src.exports.tables import TABLES
from src.findings.human_comparison import load_baseline
from src.records.contracts import Scores
from src.schemas import CODES, Exchange, Registration, ReviewReason, StudyCode, TrialOutcome, TrialResult, TurnOutcome
from src.scoring.definitions import SCORES
from src.storage import MANIFEST, RESULTS, SEAL, StoredResults, encode_record
from src.store.hash_chain import GENESIS
from src.trials.columns import MISSING, Cells, DataColumn
from src.trials.row import NOT_RECORDED
from tests.cases import each_case

from ..helpers import HASH, manifest, result
from ..runs import ONE, shared_run
from .made_runs import HOSTILE, OUTCOMES, hostile, of_outcome, one_of_each, planned, rich, write_run

TABULAR = ("csv", "jsonl", "parquet", "dta", "sav")


def module(name: str) -> Any:
    return import_module(name)


def rows_of_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(10_000_000)
        return list(csv.DictReader(file))


def rows_of_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def rows_of_parquet(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = module("pyarrow.parquet").read_table(path).to_pylist()
    return rows


def rows_of_stats(path: Path, *, raw: bool = True) -> tuple[list[dict[str, Any]], Any]:
    reader = module("pyreadstat")
    read = reader.read_dta if path.suffix == ".dta" else reader.read_sav
    frame, meta = read(path, user_missing=raw)
    return frame.to_dict("records"), meta


def expected(results: list[TrialResult], folder: Path) -> dict[str, list[Cells]]:
    from .made_runs import manifest_of

    found: dict[str, list[Cells]] = {table.name: [] for table in TABLES}
    made = manifest_of(folder)
    about = tables.Exported.of(made)
    stored = StoredResults(folder, made)
    assert list(stored) == results
    for one in results:
        for table, row in tables.trial_rows(one, about):
            found[table.name].append(row)
    for table, row in tables.run_rows(made, stored, about):
        found[table.name].append(row)
    return found


@pytest.fixture(scope="module")
def real() -> Path:
    return shared_run("--scenario", ONE, "--target", "fake:wrong")


def test_every_row_has_exactly_the_columns_of_its_table(tmp_path: Path) -> None:
    results = [*one_of_each(), *(rich(n + 20) for n in range(2))]
    folder = write_run(tmp_path / "run", results, planned())
    rows = expected(results, folder)
    for table in TABLES:
        assert rows[table.name], table.name
        for row in rows[table.name]:
            assert set(row) == {column.name for column in table.columns}, table.name


def test_keys_are_unique_and_empty_cells_are_only_where_the_codebook_says(tmp_path: Path) -> None:
    results = [*one_of_each(), *(rich(n + 20) for n in range(3))]
    rows = expected(results, write_run(tmp_path / "run", results, planned()))
    for table in TABLES:
        keys = [tuple(row[key] for key in table.keys) for row in rows[table.name]]
        assert len(set(keys)) == len(keys), table.name
        for column in table.columns:
            for row in rows[table.name]:
                value = row[column.name]
                if value is None:
                    assert column.absent or column.reasons, (table.name, column.name)
                    if column.missing:
                        assert column.why_empty(row) in column.missing
                elif column.kind in ("category", "reason"):
                    assert value in column.values, (table.name, column.name, value)


def test_a_real_run_gives_the_same_rows_in_every_format(real: Path, tmp_path: Path) -> None:
    export(real, tmp_path / "out", TABULAR)
    for table in TABLES:
        lines = rows_of_jsonl(tmp_path / "out" / f"{table.name}.jsonl")
        if table.name == "citation":  # no canned reply cites anything
            assert lines == []
            continue
        assert lines
        assert rows_of_parquet(tmp_path / "out" / f"{table.name}.parquet") == lines
        cells = rows_of_csv(tmp_path / "out" / f"{table.name}.csv")
        assert len(cells) == len(lines)
        names = [column.name for column in table.columns]
        assert list(lines[0]) == names
        assert list(cells[0]) == [*names, "text_cut"]
        for name in ("dta", "sav"):
            rows, meta = rows_of_stats(tmp_path / "out" / f"{table.name}.{name}")
            assert len(rows) == len(lines)
            for row, line in zip(rows, lines, strict=True):
                for column in table.columns:
                    assert_same(column, row, line, meta, name)


def assert_same(column: DataColumn[Any], row: dict[str, Any], line: dict[str, Any], meta: Any, name: str) -> None:
    value, kept = row[column.name], line[column.name]
    if column.kind in ("text", "reason"):
        want = (kept or "").replace("\0", "␀")
        assert value == (want.rstrip(" ") if name == "sav" else want), column.name
    elif kept is None:
        reason = column.why_empty(line)
        assert value == (reason.stata if name == "dta" else reason.spss), column.name
    elif column.kind == "category":
        assert meta.variable_value_labels[column.name][value] == kept
    else:
        assert value == kept, column.name


def test_csv_numbers_keep_their_precision_and_flags_are_words(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", [rich()], planned()), out, ["csv"])
    (trial,) = rows_of_csv(out / "trial.csv")
    assert float(trial["accuracy"]) == 1 / 3
    assert trial["refusal"] == "false"
    assert trial["missing_required_points"] == "F1; F3|F4"
    (run,) = rows_of_csv(out / "run.csv")
    assert (run["trials_here"], run["sealed"], run["seed"]) == ("1", "false", "42")


def test_missing_scores_say_why_and_no_two_reasons_look_alike(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", one_of_each(), planned()), out, TABULAR)
    reasons = [outcome for outcome in OUTCOMES if outcome != "scored"] + ["nothing_to_check"]
    assert reasons[0] == "refused"
    for name in SCORES:
        wanted = reasons if name in ("accuracy", "calibration") else reasons[1:-1]
        cells = [row for row in rows_of_csv(out / "trial.csv") if row[f"{name}_missing"]]
        assert [row[f"{name}_missing"] for row in cells] == wanted
        assert {row[name] for row in cells} == {""}
        lines = [row for row in rows_of_jsonl(out / "trial.jsonl") if row[name] is None]
        assert [row[f"{name}_missing"] for row in lines] == wanted
        assert [row[f"{name}_missing"] for row in rows_of_parquet(out / "trial.parquet") if row[name] is None] == wanted
        stata, meta = rows_of_stats(out / "trial.dta")
        letters = [row[name] for row in stata if isinstance(row[name], str)]
        assert letters == [MISSING[reason].stata for reason in wanted]
        assert len(set(letters)) == len(letters)
        assert [meta.variable_value_labels[name][letter] for letter in letters] == wanted
        spss, meta = rows_of_stats(out / "trial.sav")
        codes = [row[name] for row in spss if row[name] < 0]
        assert codes == [MISSING[reason].spss for reason in wanted]
        assert [meta.variable_value_labels[name][code] for code in codes] == wanted
        (bounds,) = meta.missing_ranges[name]
        assert all(bounds["lo"] <= code <= bounds["hi"] < 0 for code in codes)


def test_a_package_that_knows_no_codes_reads_missing_values_as_missing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", one_of_each(), planned()), out, ["dta", "sav"])
    for name in ("trial.dta", "trial.sav"):
        rows, _ = rows_of_stats(out / name, raw=False)
        assert sum(not math.isnan(row["accuracy"]) for row in rows) == 1


def late(first: TrialOutcome, count: int = 150) -> list[TrialResult]:
    """Trials that miss everything, then one with scores."""
    return [*(of_outcome(first, n) for n in range(1, count + 1)), rich(count + 1)]


@each_case("name", ["dta", "sav"])
def test_a_long_stretch_of_missing_values_at_the_start_changes_no_type(name: str, tmp_path: Path) -> None:
    """pyreadstat looks at the first hundred cells to decide what a column is."""
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", late("failed"), planned()), out, ["jsonl", name])
    for table in TABLES:
        lines = rows_of_jsonl(out / f"{table.name}.jsonl")
        rows, meta = rows_of_stats(out / f"{table.name}.{name}")
        assert len(rows) == len(lines)
        for column in table.columns:
            text = column.kind in ("text", "reason")
            assert (meta.readstat_variable_types[column.name] == "string") is text, (table.name, column.name)
        for row, line in zip(rows, lines, strict=True):
            for column in table.columns:
                assert_same(column, row, line, meta, name)


@each_case("name", ["dta", "sav"])
def test_columns_without_any_value_and_tables_without_rows_have_the_right_types(name: str, tmp_path: Path) -> None:
    for place, results in enumerate(([of_outcome("blocked", n) for n in range(1, 4)], [])):
        out = tmp_path / f"out{place}"
        export(write_run(tmp_path / f"run{place}", results, planned()), out, [name])
        for table in TABLES:
            _, meta = rows_of_stats(out / f"{table.name}.{name}")
            for column in table.columns:
                text = column.kind in ("text", "reason")
                assert (meta.readstat_variable_types[column.name] == "string") is text, (table.name, column.name)
        rows, _ = rows_of_stats(out / f"trial.{name}")
        assert [row["accuracy"] for row in rows] == ["b" if name == "dta" else -2] * len(results)


def broken(*_: object, **__: object) -> None:
    raise ValueError("a bug\nin a writer")


def test_a_format_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module("pyreadstat"), "write_dta", broken)
    out = tmp_path / "out"
    with pytest.raises(ExportError) as caught:
        export(write_run(tmp_path / "run", [rich()], planned()), out, ["csv", "dta", "jsonl"])
    assert str(caught.value) == "dta could not be written: ValueError: a bug in a writer. Complete: csv, jsonl."
    assert caught.value.exit_code == 9
    assert sorted(caught.value.written) == sorted(path for path in out.iterdir())
    for table in TABLES:
        assert (out / f"{table.name}.csv").is_file()
        assert (out / f"{table.name}.jsonl").is_file()
        assert not list(out.glob(f"{table.name}*.dta"))


@each_case("step", ["__init__", "add", "close"])
def test_a_format_can_fail_at_every_step(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers.ParquetSink, step, broken)
    out = tmp_path / "out"
    with pytest.raises(
        ExportError, match=r"^parquet could not be written: ValueError: a bug in a writer\. Complete: csv\.$"
    ):
        export(write_run(tmp_path / "run", [rich(1), rich(2)], planned()), out, ["parquet", "csv"])
    assert len(rows_of_csv(out / "trial.csv")) == 2
    assert not list(out.glob("*.parquet")) and not list(out.glob(".export*"))


def test_if_every_format_fails_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers.CsvSink, "add", broken)
    monkeypatch.setattr(writers.JsonlSink, "add", broken)
    with pytest.raises(ExportError, match=r"^csv could not be written: ValueError: a bug in a writer\.$") as caught:
        export(write_run(tmp_path / "run", [rich()], planned()), tmp_path / "out", ["csv", "jsonl"])
    assert not caught.value.written
    assert not (tmp_path / "out").exists()


def test_a_package_that_one_format_lacks_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    folder, out = write_run(tmp_path / "run", [rich()], planned()), tmp_path / "out"
    assert main(["export", str(folder), "--to", "csv,parquet", "--out", str(out)]) == 9
    printed = capsys.readouterr()
    assert printed.err == (
        "medicare-eval: parquet could not be written: pyarrow is not installed. "
        "Run: python -m pip install pyarrow. Complete: csv.\n"
    )
    assert str(out / "trial.csv") in printed.out.splitlines()
    assert "parquet" not in printed.out


LONG = (
    "x" * 40_000, "é" * 40_000, "😀" * 17_000, "x😀" * 16_384, "\x1b" * 9_000, "=" + "1" * 32_767,
    "x" * 32_767, "x" * 32_768, "=" + "1" * 32_765, "😀" * 16_383,
)  # fmt: skip
FITS = ("x" * 32_767, "=" + "1" * 32_765, "😀" * 16_383)


def excel_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_no_csv_cell_is_longer_than_excel_allows_and_the_whole_text_is_beside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    files = export(
        write_run(tmp_path / "run", [rich(n, text) for n, text in enumerate(LONG, 1)], planned()), out, ["csv"]
    )
    assert out / "texts.jsonl" in files
    whole = {(row["table"], row["column"], *_keys(row)): row["text"] for row in rows_of_jsonl(out / "texts.jsonl")}
    for table in TABLES:
        for row in rows_of_csv(out / f"{table.name}.csv"):
            assert all(excel_length(cell) <= writers.EXCEL_UNITS for cell in row.values()), table.name
            cut = [name for name, cell in row.items() if cell.endswith(writers.CUT_NOTE)]
            assert row["text_cut"] == ("true" if cut else "false")
            for name in cut:
                text = whole.pop((table.name, name, *(row[key] for key in table.keys)))
                kept = row[name].removesuffix(writers.CUT_NOTE)
                assert writers.shown(text).startswith(kept)
                assert excel_length(row[name]) >= writers.EXCEL_UNITS - 1
    assert not whole
    replies = [row for row in rows_of_csv(out / "turn.csv") if row["turn_id"] == "Q1"]
    assert [row["text_cut"] for row in replies] == ["false" if text in FITS else "true" for text in LONG]


def _keys(row: dict[str, Any]) -> tuple[str, ...]:
    table = next(table for table in TABLES if table.name == row["table"])
    return tuple(str(row[key]) for key in table.keys)


def test_short_texts_need_no_file_beside_them(tmp_path: Path) -> None:
    export(write_run(tmp_path / "run", [rich()], planned()), tmp_path / "out", ["csv"])
    assert not (tmp_path / "out" / "texts.jsonl").exists()


def test_codes_of_missing_values_are_distinct() -> None:
    assert len({one.stata for one in MISSING.values()}) == len({one.spss for one in MISSING.values()}) == len(MISSING)
    assert all(one.stata.islower() and len(one.stata) == 1 and one.spss < 0 for one in MISSING.values())
    assert {outcome for outcome in OUTCOMES if outcome != "scored"} < set(MISSING)


def test_a_verdict_that_a_judge_did_not_give_is_a_row_with_its_reason(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", [rich()], planned()), out, ["jsonl"])
    rows = rows_of_jsonl(out / "verdict.jsonl")
    lacking = [(row["claim_id"], row["judge"], row["repeat"]) for row in rows if row["label"] is None]
    assert lacking == [("Q1.C4", "judge_2", 0)]
    assert {row["repeat"] for row in rows} == {0, 1}
    claims = {row["claim_id"]: row["label_missing"] for row in rows_of_jsonl(out / "claim.jsonl")}
    assert claims == {"Q1.C1": None, "Q1.C2": None, "Q1.C3": "not_verifiable", "Q1.C4": "unresolved"}
    questions = {
        row["question_group"]: (row["code_missing"], row["answer_missing"])
        for row in rows_of_jsonl(out / "question.jsonl")
    }
    assert questions["closed"] == ("closed_question", None)
    assert questions["cost"] == (None, "open_question")


def test_hostile_text_is_verbatim_in_jsonl_and_parquet(tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = hostile()
    export(write_run(tmp_path / "run", results, planned()), out, ["jsonl", "parquet"])
    for read in (rows_of_jsonl(out / "turn.jsonl"), rows_of_parquet(out / "turn.parquet")):
        assert [row["reply"] for row in read if row["turn_id"] == "Q1"] == [text or "x" for text in HOSTILE]
    notes = [row["notes"] for row in rows_of_parquet(out / "verdict.parquet") if row["label"]]
    assert set(notes) == {text[:4_000] or None for text in HOSTILE}


def test_hostile_text_is_inert_in_csv_and_loses_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    results = hostile()
    export(write_run(tmp_path / "run", results, planned()), out, ["csv"])
    raw = (out / "turn.csv").read_bytes()
    assert b"\x1b" not in raw and b"\x00" not in raw and "\u202e".encode() not in raw
    for table in TABLES:
        for row in rows_of_csv(out / f"{table.name}.csv"):
            for column in table.columns:
                cell = row[column.name]
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝")), (table.name, column.name, cell[:20])
    replies = [row["reply"] for row in rows_of_csv(out / "turn.csv") if row["turn_id"] == "Q1"]
    assert len(replies) == len(HOSTILE)
    for text, cell in zip(HOSTILE, replies, strict=True):
        assert len(cell) >= min(len(text), writers.EXCEL_UNITS)
        if text.isprintable() and text[:1] not in ("=", "+", "-", "@", "＝") and len(text) < writers.EXCEL_UNITS:
            assert cell == (text or "x")


def test_hostile_text_survives_stata_and_spss(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", hostile(), planned()), out, ["dta", "sav"])
    wanted = [(text or "x").replace("\0", "␀") for text in HOSTILE]
    rows, _ = rows_of_stats(out / "turn.dta")
    assert [row["reply"] for row in rows if row["turn_id"] == "Q1"] == wanted
    rows, _ = rows_of_stats(out / "turn.sav")
    answered = [row for row in rows if row["turn_id"] == "Q1"]
    for text, row in zip(wanted, answered, strict=True):
        cut = len(text.encode()) > writers.SPSS_BYTES
        assert row["text_cut"] == cut
        assert row["reply"] == (text[: writers.SPSS_BYTES] if cut else text.rstrip(" "))


def test_a_cut_never_splits_a_character(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = "é" * 30_000
    export(write_run(tmp_path / "run", [rich(1, text)], planned()), out, ["sav"])
    rows, _ = rows_of_stats(out / "turn.sav")
    assert set(rows[0]["reply"]) == {"é"}
    assert len(rows[0]["reply"].encode()) <= writers.SPSS_BYTES


@pytest.mark.slow
def test_a_run_of_failures_alone_and_one_without_results(tmp_path: Path) -> None:
    failures = [of_outcome(outcome, n) for n, outcome in enumerate(OUTCOMES[1:], 1)]
    silent = [one.model_copy(update={"conversation": ()}) for one in failures]
    for name, results in (("failures", failures), ("silent", silent), ("none", [])):
        folder = write_run(tmp_path / name, results, planned())
        out = tmp_path / f"{name}-out"
        files = export(folder, out, FORMATS)
        assert all(path.is_file() for path in files)
        assert len(rows_of_csv(out / "trial.csv")) == len(results)
        rows, _ = rows_of_stats(out / "trial.dta")
        assert len(rows) == len(results)
        assert len(rows_of_parquet(out / "run.parquet")) == 1
    (folder / RESULTS).unlink()
    export(folder, tmp_path / "no-file", FORMATS)
    assert rows_of_jsonl(tmp_path / "no-file" / "run.jsonl")[0]["results_head"] == GENESIS


def test_a_partial_run_with_a_torn_last_line_gives_what_is_whole(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich(1), rich(2)], planned())
    data = (folder / RESULTS).read_bytes()
    (folder / RESULTS).write_bytes(data[:-50])
    export(folder, tmp_path / "out", ["jsonl"])
    (run,) = rows_of_jsonl(tmp_path / "out" / "run.jsonl")
    assert (run["trials_here"], run["trials_planned"], run["sealed"]) == (1, 60, False)
    assert len(rows_of_jsonl(tmp_path / "out" / "trial.jsonl")) == 1


def test_changed_results_leave_nothing_behind(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich(1), rich(2), rich(3)], planned())
    path = folder / RESULTS
    path.write_bytes(path.read_bytes().replace(b'"repetition":2', b'"repetition":9'))
    with pytest.raises(IntegrityError, match="line 2"):
        export(folder, tmp_path / "out", ["csv", "jsonl"])
    assert not (tmp_path / "out").exists()


def test_a_line_of_another_version_is_named(tmp_path: Path) -> None:
    from src.store.hash_chain import chained

    folder = write_run(tmp_path / "run", [rich(1)], planned())
    head = json.loads((folder / RESULTS).read_text(encoding="utf-8"))["chain"]
    with (folder / RESULTS).open("ab") as file:
        file.write(chained(head, b'{"trial_id":"t"}')[1])
    with pytest.raises(IntegrityError, match="line 2: field scenario_id does not fit a TrialResult"):
        export(folder, tmp_path / "out", ["csv"])


def test_nothing_is_overwritten_but_other_formats_may_follow(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    out = tmp_path / "out"
    export(folder, out, ["csv"])
    before = (out / "trial.csv").read_bytes()
    with pytest.raises(InputError, match="already exists"):
        export(folder, out, ["jsonl", "csv"])
    assert (out / "trial.csv").read_bytes() == before
    assert not (out / "trial.jsonl").exists()
    export(folder, out, ["jsonl"])
    assert sorted(path.name for path in out.iterdir() if path.name.startswith(".")) == []
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        export(folder, tmp_path / "file", ["csv"])


def test_what_cannot_be_asked_for_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    for formats in (["xlsx"], ["csv", "=cmd"], []):
        with pytest.raises(InputError, match="`to`: "):
            export(folder, tmp_path / "out", formats)
    with pytest.raises(InputError, match="nowhere does not exist"):
        export(tmp_path / "nowhere", tmp_path / "out", ["csv"])
    assert not (tmp_path / "out").exists()


def test_a_disk_that_refuses_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writers.CsvSink, "add", full)
    with pytest.raises(StorageError, match="No space left"):
        export(folder, tmp_path / "out", ["csv"])
    assert not (tmp_path / "out").exists()


def test_a_place_below_a_file_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file is a file\. Give a folder\."):
        export(folder, tmp_path / "file" / "below", ["csv"])


@each_case(
    ("error", "kind"), [(FileExistsError(17, "File exists"), InputError), (OSError(28, "No space left"), StorageError)]
)
def test_a_file_that_cannot_be_put_in_place_takes_the_others_with_it(
    error: OSError, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    link, made = os.link, 0

    def third_fails(source: Path, there: Path) -> None:
        nonlocal made
        made += 1
        if made == 3:
            raise error
        link(source, there)

    monkeypatch.setattr(os, "link", third_fails)
    with pytest.raises(kind):
        export(folder, tmp_path / "out", ["csv"])
    assert not (tmp_path / "out").exists()


def test_a_writer_that_gives_up_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readstat = module("pyreadstat")

    def refuses(*_: object, **__: object) -> None:
        raise readstat.ReadstatError("Unable to write data")

    monkeypatch.setattr(readstat, "write_sav", refuses)
    folder = write_run(tmp_path / "run", [rich()], planned())
    with pytest.raises(StorageError, match="Unable to write data"):
        export(folder, tmp_path / "out", ["sav"])


def test_a_registered_run_names_its_deviations(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    kept = Registration(
        sha256=HASH,
        created="2026-01-01",
        primary_outcome="accuracy",
        tests=(),
        notes="",
        deviations=("seed: 7, not 42", "b"),
    )
    made = manifest(planned()).model_copy(update={"registration": kept})
    (folder / MANIFEST).write_bytes(encode_record(made) + b"\n")
    export(folder, tmp_path / "out", ["jsonl"])
    (run,) = rows_of_jsonl(tmp_path / "out" / "run.jsonl")
    assert (run["registration_sha256"], run["primary_outcome"]) == (HASH, "accuracy")
    assert run["deviations"] == "seed: 7, not 42; b"


@each_case(
    ("name", "absent", "package"),
    [
        ("parquet", "pyarrow", "pyarrow"),
        ("dta", "pandas", "pandas"),
        ("sav", "pyreadstat", "pyreadstat"),
        ("inspect", "inspect_ai.log", "inspect-ai"),
    ],
)
def test_a_missing_package_is_named(
    name: str, absent: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.setitem(sys.modules, absent.partition(".")[0], None)
    folder = write_run(tmp_path / "run", [rich()], planned())
    with pytest.raises(ConfigError, match=rf"pip install {package}$"):
        export(folder, tmp_path / "out", [name])
    assert not (tmp_path / "out").exists()


def test_formats_without_packages_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pandas", "pyreadstat", "inspect_ai"):
        monkeypatch.setitem(sys.modules, name, None)
    files = export(write_run(tmp_path / "run", [rich()], planned()), tmp_path / "out", ["csv", "jsonl"])
    assert len(files) == 2 * len(TABLES) + 2 + len(STARTERS)


def test_the_codebook_names_every_column_of_every_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    files = export(write_run(tmp_path / "run", one_of_each(), planned()), out, TABULAR)
    assert {out / "codebook.csv", out / "codebook.md"} <= set(files)
    book = {(row["table"], row["column"]): row for row in rows_of_csv(out / "codebook.csv")}
    text = (out / "codebook.md").read_text(encoding="utf-8")
    for table in TABLES:
        held = (
            set(rows_of_csv(out / f"{table.name}.csv")[0]) if table.name in ("run", "trial", "judge", "turn") else set()
        )
        held |= set(rows_of_stats(out / f"{table.name}.sav")[1].column_names)
        held |= set(rows_of_stats(out / f"{table.name}.dta")[1].column_names)
        held |= set(module("pyarrow.parquet").read_schema(out / f"{table.name}.parquet").names)
        assert held == {column for name, column in book if name == table.name}
        assert f"## {table.name}" in text
        assert all(f"`{column}`" in text for column in held)
    for row in book.values():
        assert row["meaning"] and row["type"] and row["missing"]
    assert ".a = refused" in book["trial", "accuracy"]["missing_stata"]
    assert "-1 = refused" in book["trial", "accuracy"]["missing_spss"]
    assert "1 = scored" in book["trial", "outcome"]["values"]


def test_labels_of_columns_and_values_are_in_the_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", [rich()], planned()), out, ["dta", "sav", "parquet"])
    for name in ("claim.dta", "claim.sav"):
        rows, meta = rows_of_stats(out / name)
        assert meta.column_names_to_labels["label"] == "The final label against the answer key"
        assert [meta.variable_value_labels["label"][row["label"]] for row in rows] == [
            "SUPPORTED", "CONTRADICTED", "not_verifiable", "unresolved",
        ]  # fmt: skip
        assert meta.variable_value_labels["verifiable"] == {0: "no", 1: "yes"}
    schema = module("pyarrow.parquet").read_schema(out / "claim.parquet")
    assert schema.field("label").metadata[b"meaning"] == b"The final label against the answer key"
    assert not schema.field("claim_id").nullable


@pytest.mark.slow
def test_results_are_streamed_and_only_a_batch_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many trials, no writer ever holds more rows than a batch, and trials are asked for one by one."""
    monkeypatch.setattr(writers, "BATCH_ROWS", 7)
    monkeypatch.setattr(writers, "PIECE_ROWS", 11)
    held: list[int] = []
    plain_add = writers.Batch.add

    def add(self: writers.Batch, row: Cells) -> None:
        plain_add(self, row)
        held.append(len(self.rows))

    monkeypatch.setattr(writers.Batch, "add", add)
    alive: list[int] = []
    rows_of = tables.trial_rows

    def counted(result: TrialResult, about: tables.Exported) -> Iterator[tables.TableRow]:
        alive.append(result.repetition)
        yield from rows_of(result, about)

    monkeypatch.setattr(exporting, "trial_rows", counted)
    folder = write_run(tmp_path / "run", (rich(n) for n in range(1, 31)), planned())
    export(folder, tmp_path / "out", ["parquet", "dta", "sav"])
    assert max(held) == 11
    assert alive == list(range(1, 31))
    assert len(rows_of_parquet(tmp_path / "out" / "claim.parquet")) == 120
    for suffix in ("dta", "sav"):
        pieces = sorted((tmp_path / "out").glob(f"claim*.{suffix}"))
        assert len(pieces) == 11 and tmp_path / "out" / f"claim.{suffix}" in pieces
        ids = [row["trial_id"] for path in pieces for row in rows_of_stats(path)[0]]
        assert len(ids) == 120 and len(set(ids)) == 30
    with pytest.raises(InputError, match="already exists"):
        export(folder, tmp_path / "out", ["dta"])


def test_long_texts_end_a_piece_before_it_grows_too_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "PIECE_CELLS", 100_000)
    folder = write_run(tmp_path / "run", [rich(n, "y" * 9_000) for n in range(1, 6)], planned())
    export(folder, tmp_path / "out", ["dta"])
    assert len(list((tmp_path / "out").glob("turn*.dta"))) > 1


def test_a_sealed_run_says_so(real: Path, tmp_path: Path) -> None:
    export(real, tmp_path / "out", ["jsonl"])
    (run,) = rows_of_jsonl(tmp_path / "out" / "run.jsonl")
    assert run["sealed"] is True
    assert run["results_head"] == json.loads((real / SEAL).read_text(encoding="utf-8"))["results_head"]
    assert run["offline_judge"] is True


def test_a_trial_with_a_variant_carries_it(tmp_path: Path) -> None:
    one = result().model_copy(update={"variant": "hmo"})
    export(write_run(tmp_path / "run", [one], planned()), tmp_path / "out", ["csv"])
    assert rows_of_csv(tmp_path / "out" / "trial.csv")[0]["variant"] == "hmo"


def test_review_reasons_are_exported_as_recorded(tmp_path: Path) -> None:
    reasons = (
        ReviewReason(kind="low_coverage", detail="Claims cover only 1 of 9 sentences.", turn_ids=("Q1",)),
        ReviewReason(kind="open_claims", detail="1 claim has no final label.", claim_ids=("Q1.C4",)),
    )
    marked = rich(1).model_copy(update={"needs_manual_review": True, "review_reasons": reasons})
    results = [
        marked,
        rich(2).model_copy(update={"needs_manual_review": False, "review_reasons": ()}),
        rich(3).model_copy(update={"needs_manual_review": True, "review_reasons": None}),
        rich(4).model_copy(update={"needs_manual_review": False, "review_reasons": None}),
    ]
    export(write_run(tmp_path / "run", results, planned()), tmp_path / "out", ["jsonl"])
    trials = rows_of_jsonl(tmp_path / "out" / "trial.jsonl")
    assert [row["review_reasons"] for row in trials] == ["low_coverage; open_claims", None, NOT_RECORDED, None]
    assert [row["review_details"] for row in trials] == [
        "Claims cover only 1 of 9 sentences.; 1 claim has no final label.", None, NOT_RECORDED, None,
    ]  # fmt: skip


def test_counselors_are_a_table_in_every_format(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", [], planned()), out, TABULAR)
    lines = rows_of_jsonl(out / "counselor.jsonl")
    baseline = load_baseline()
    assert [(row["study_group"], row["mode"]) for row in lines] == [
        (number, mode) for number in sorted(baseline.groups) for mode in baseline.groups[number].by_mode
    ]
    for row in lines:
        counts = baseline.groups[row["study_group"]].by_mode[row["mode"]]
        assert {code: row[code] for code in CODES} == counts.codes
        assert sum(row[code] for code in CODES) == row["shops"] == counts.shops
        assert "doi.org" in row["source"]
    assert {row["study_group"] for row in lines if row["lookup_dependent"]} & {14}
    assert not any(row["comparable"] for row in lines if row["lookup_dependent"])
    assert any(row["comparable"] for row in lines)
    assert rows_of_parquet(out / "counselor.parquet") == lines
    assert [int(row["shops"]) for row in rows_of_csv(out / "counselor.csv")] == [row["shops"] for row in lines]
    for name in ("dta", "sav"):
        rows, meta = rows_of_stats(out / f"counselor.{name}")
        assert [meta.variable_value_labels["mode"][row["mode"]] for row in rows] == [row["mode"] for row in lines]
        assert [row["accurate_complete"] for row in rows] == [row["accurate_complete"] for row in lines]


def asked(turn_id: str, outcome: TurnOutcome) -> Exchange:
    return Exchange(
        turn_id=turn_id, question_group=None, user_message="?", outcome=outcome,
        reply="Yes." if outcome == "answered" else None, detail=None, served_model=None,
    )  # fmt: skip


@each_case(
    ("outcomes", "code", "counted", "why"),
    [
        (["answered"], "incorrect", "incorrect", None),
        (["blocked"], "incomplete_data", "not_substantive", None),
        (["empty", "skipped"], "incomplete_data", "not_substantive", None),
        (["blocked", "answered"], "incomplete_data", None, "blocked"),
        (["timeout"], "incomplete_data", None, "failed"),
        (["truncated"], "incomplete_data", None, "truncated"),
        (["answered", "not_asked"], "incomplete_data", None, "not_asked"),
        (["answered"], "incomplete_data", None, "unresolved"),
        (["answered"], None, None, "closed_question"),
    ],
)
def test_a_question_is_exported_as_it_counts(
    outcomes: list[TurnOutcome], code: StudyCode | None, counted: str | None, why: str | None, tmp_path: Path
) -> None:
    turns = [f"Q{n}" for n in range(1, len(outcomes) + 1)]
    given = rich().study_codes[0].model_copy(update={"code": code, "turn_ids": tuple(turns)})
    conversation = tuple(map(asked, turns, outcomes))
    one = result().model_copy(update={"conversation": conversation, "study_codes": (given,)})
    out = tmp_path / "out"
    export(write_run(tmp_path / "run", [one], planned()), out, ["jsonl", "dta"])
    (row,) = rows_of_jsonl(out / "question.jsonl")
    assert (row["counted_code"], row["counted_code_missing"]) == (counted, why)
    (coded,), meta = rows_of_stats(out / "question.dta")
    assert meta.variable_value_labels["counted_code"][coded["counted_code"]] == (counted or why)


def test_a_judge_that_failed_on_a_question_is_why_it_does_not_count(tmp_path: Path) -> None:
    one = rich()
    codes = (one.study_codes[2],)
    assert one.judge_failures[0].turn_id in codes[0].turn_ids
    export(write_run(tmp_path / "run", [one.model_copy(update={"study_codes": codes})], planned()), tmp_path, ["jsonl"])
    (row,) = rows_of_jsonl(tmp_path / "question.jsonl")
    assert (row["code"], row["counted_code_missing"]) == ("incomplete_data", "judge_failure")


def test_scores_are_exported_as_they_count(tmp_path: Path) -> None:
    unknown = Scores(accuracy=0.5, completeness=None, safety_risk=None, calibration=None)
    results = [of_outcome("refused", 1), rich(2).model_copy(update={"final_scores": unknown})]
    export(write_run(tmp_path / "run", results, planned()), tmp_path, ["jsonl"])
    refused, still_open = rows_of_jsonl(tmp_path / "trial.jsonl")
    assert (refused["completeness"], refused["safety_risk"]) == (0, 0)
    assert (refused["accuracy_missing"], refused["calibration_missing"]) == ("refused", "refused")
    assert (still_open["completeness_missing"], still_open["safety_risk_missing"]) == ("unresolved", "unresolved")


def test_codes_of_missing_values_stay_what_earlier_exports_used() -> None:
    """Files of different releases are analyzed together: a reason keeps its code."""
    assert [(one.name, one.stata, one.spss) for one in MISSING.values()][:3] == [
        ("refused", "a", -1), ("blocked", "b", -2), ("truncated", "c", -3),
    ]  # fmt: skip
    assert (MISSING["tampered"].stata, MISSING["not_of_the_study"].stata) == ("h", "r")
