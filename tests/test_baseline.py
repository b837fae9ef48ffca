"""The published counts, as in the file, and every percentage that is printed from them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from scipy.stats import binomtest

from src.errors import ConfigError
from src.findings import human_comparison
from src.schemas import CODES
from src.stats.intervals import wilson
from tests.cases import each_case
from tests.runs import ROOT

ROWS = list(csv.DictReader((ROOT / "baseline" / "ship_2025.csv").read_text(encoding="utf-8").splitlines()))


def count(group: int, mode: str, column: str) -> int:
    return next(int(row[column]) for row in ROWS if (int(row["group"]), row["mode"]) == (group, mode))


def test_every_group_is_there_in_both_modes_and_its_codes_sum_to_its_shops() -> None:
    found = human_comparison.load_baseline()
    assert sorted(found.groups) == [1, *range(3, 21)]
    for number, group in found.groups.items():
        assert set(group.by_mode) == set(human_comparison.MODES)
        for mode, counts in group.by_mode.items():
            assert counts.shops == count(number, mode, "shops") == sum(counts.codes.values())
            assert [counts.codes[code] for code in CODES] == [count(number, mode, code) for code in CODES]


def test_shops_agree_with_the_design_of_the_study() -> None:
    shops = {(row["scenario"], row["mode"]): int(row["shops"]) for row in ROWS}
    assert shops["medicare_only", "phone"] + shops["dual_eligible", "phone"] == shops["both", "phone"] == 139
    face_to_face = shops["medicare_only", "face_to_face"] + shops["dual_eligible", "face_to_face"]
    assert face_to_face == shops["both", "face_to_face"] == 45
    assert human_comparison.load_baseline().notes.shops == {"phone": 139, "face_to_face": 45}


@each_case(("mode", "share", "instances"), [("phone", "36.5%", 1363), ("face_to_face", "53.4%", 453)])
def test_pooled_shares_are_those_the_caveats_speak_of(mode: str, share: str, instances: int) -> None:
    counts = [group.by_mode[mode] for group in human_comparison.load_baseline().groups.values()]
    shops = sum(one.shops for one in counts)
    assert shops == instances == sum(int(row["shops"]) for row in ROWS if row["mode"] == mode)
    assert f"{sum(one.codes['accurate_complete'] for one in counts) / shops:.1%}" == share


def test_counts_that_do_not_sum_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "baseline" / "ship_2025.csv").read_text(encoding="utf-8")
    (tmp_path / "bad.csv").write_text(text.replace("139,68,", "139,67,"), encoding="utf-8")
    (tmp_path / "bad.json").write_bytes((ROOT / "baseline" / "ship_2025.json").read_bytes())
    monkeypatch.setattr(human_comparison, "data_folder", lambda kind: tmp_path)
    with pytest.raises(ConfigError, match="group 1 phone"):
        human_comparison.load_baseline.__wrapped__("bad")


def test_wilson_agrees_with_scipy() -> None:
    for n in (1, 2, 3, 7, 20, 139, 1363):
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            ours = wilson(k, n)
            theirs = binomtest(k, n).proportion_ci(method="wilson")
            assert ours.low == pytest.approx(theirs.low, abs=1e-12)
            assert ours.high == pytest.approx(theirs.high, abs=1e-12)
    assert wilson(0, 0).value is None
