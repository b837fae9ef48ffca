"""An independent set of transcripts and sentences, written by someone who has not seen the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from src.api.transcripts import load_script
from src.inputs.transcripts.assemble import ImportOptions, draft, kind_of
from src.inputs.transcripts.read_file import read_transcript
from src.inputs.transcripts.redact import RedactionRules, redact
from src.inputs.transcripts.utterances import Utterance
from src.records.transcript import RecordedTurn
from tests.cases import each_case
from tests.runs import SCENARIOS

CORPUS = Path(__file__).parent / "corpus"
FILES = [f"conversation.{suffix}" for suffix in ("txt", "csv", "vtt", "srt", "docx")] + [
    "whisper.json",
    "aws.json",
    "chat.txt",
]


def document(name: str) -> Any:
    assert (CORPUS / name).is_file(), f"{CORPUS / name} is missing"
    return json.loads((CORPUS / name).read_text(encoding="utf-8"))


def as_recognized(turn: RecordedTurn) -> str:
    """The reply without the figures that were put behind spoken amounts."""
    reply = turn.reply or ""
    for one in reversed(turn.added_figures):
        reply = reply[: one.start] + reply[one.end :]
    return reply


@each_case("name", FILES)
def test_every_file_of_the_corpus_gives_the_expected_turns(name: str) -> None:
    expected = document("expected.json")
    assert (CORPUS / name).is_file(), f"{CORPUS / name} is missing"
    script = load_script(str(SCENARIOS / f"{expected['scenario']}.json"), plan_year=2026)
    read = read_transcript(CORPUS / name)
    caller = expected.get("caller")
    known = {one.speaker for one in read.utterances}
    options = ImportOptions(
        system="x", caller=caller if caller in known else None, rules=RedactionRules(fictional=script.fictional)
    )
    turns = {turn.turn_id: turn for turn in draft(read, script, options, kind_of(read)).conversation.turns}
    for wanted in expected["turns"]:
        turn = turns[wanted["turn_id"]]
        assert (turn.outcome != "not_asked") == wanted["asked"], wanted["turn_id"]
        reply = " ".join((turn.reply or "").split())
        words = " ".join(as_recognized(turn).split())
        for text in wanted.get("reply_contains", []):
            assert text in reply or text in words, (wanted["turn_id"], text)
        for text in wanted.get("reply_lacks", []):
            assert text not in reply, (wanted["turn_id"], text)


def test_no_planted_identifier_is_left() -> None:
    cases = document("redaction.json")["identifiers"]
    assert len(cases) >= 20
    left = []
    for case in cases:
        text = redact([Utterance("A", case["text"])]).utterances[0].text
        secrets = [case["secret"]] if isinstance(case["secret"], str) else case["secret"]
        left += [(secret, text) for secret in secrets if secret in text]
    assert not left


def test_every_medicare_date_and_amount_is_kept() -> None:
    cases = document("redaction.json")["keep"]
    assert len(cases) >= 40
    lost = []
    for case in cases:
        text = redact([Utterance("A", case["text"])]).utterances[0].text
        stays = [case["must_stay"]] if isinstance(case["must_stay"], str) else case["must_stay"]
        lost += [(part, text) for part in stays if part not in text]
    assert not lost
