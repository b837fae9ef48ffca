"""Every record the project reads or writes, under one name.

Records are frozen, reject unknown fields and do not coerce types: `"4"` is not a number and `1` is not true.
They live in `records/`, by what they describe; nothing there imports anything else of ours.
`python -m src.schemas DIR` writes their JSON Schemas.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .records.answer_key import *
from .records.background import *
from .records.background import FactLibrary, StateFacts
from .records.base import *
from .records.base import Record
from .records.contracts import *
from .records.contracts import agent_contracts
from .records.facts import *
from .records.facts import InventedPlans, Wording, YearFacts
from .records.judge_check import GoldFile, JudgeCheck
from .records.preregistration import Preregistration
from .records.price import *
from .records.result import *
from .records.result import ResultLine
from .records.rubric import *
from .records.rubric import Rubric
from .records.run import *
from .records.run import BatchCreated, BatchEnded, BatchIntent, CallRecord, LimitsNote, Manifest, RecoveryRecord, Seal
from .records.scenario import *
from .records.scenario import Scenario
from .records.series import Point, PointIntent, Segment, Series
from .records.study import Study
from .records.study_code import *


def json_schemas() -> dict[str, str]:
    """File name to text of every exported JSON Schema."""
    records: list[type[Record]] = [Scenario, Study, YearFacts, FactLibrary, StateFacts, InventedPlans, Wording, Rubric]
    records += [GoldFile, *agent_contracts()]
    records += [
        Manifest,
        CallRecord,
        LimitsNote,
        BatchIntent,
        BatchCreated,
        BatchEnded,
        RecoveryRecord,
        ResultLine,
        Seal,
        Preregistration,
        JudgeCheck,
        Series,
        Segment,
        Point,
        PointIntent,
    ]
    return {
        f"{record.__name__}.schema.json": json.dumps(record.model_json_schema(), indent=2, ensure_ascii=False) + "\n"
        for record in records
    }


def write_json_schemas(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in json_schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_json_schemas(Path(sys.argv[1]))
