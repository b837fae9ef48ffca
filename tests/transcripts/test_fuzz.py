"""Hostile files are read or refused with one sentence; nothing else happens."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from src.errors import InputError
from src.inputs.transcripts.align import align
from src.inputs.transcripts.assemble import assemble, find_redactions
from src.inputs.transcripts.read_file import read_data
from src.inputs.transcripts.redact import redact
from src.inputs.transcripts.utterances import Utterance, joined
from src.text.spoken_numbers import spoken_amounts
from tests.transcripts.sample import FORMATS, script

SCRIPT = script()
SUFFIXES = ("", ".txt", ".csv", ".json", ".vtt", ".srt", ".docx")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["results", "items", "segments", "text", "words", "speaker", "speaker_labels", "audio_segments", "alternatives",
         "content", "confidence", "role", "start_time", "type", "transcript", "messages", "avg_logprob"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip
VOCABULARY = (
    "one two five oh hundred thousand dollars ninety premium A B E G 615 555-0142 2026 $202.90 my name is Jane Doe born "
    "March third social number member ID at gmail dot com Elm Street . , ? [PHONE 1] 65 as in Edward double é"
)
WORDS = st.lists(st.sampled_from([*str.split(VOCABULARY), "\n"]), max_size=40).map(" ".join)


def whole_way(data: bytes, suffix: str) -> None:
    with contextlib.suppress(InputError):
        read = read_data(data, "x", None, suffix)
        found = redact(joined(read.utterances))
        made = assemble(align(found.utterances, SCRIPT.turns), "phone")
        texts = {("reply", turn.turn_id): turn.reply or "" for turn in made.turns}
        for one in find_redactions(made.turns, made.before):
            if one.side == "reply" and one.turn_id:
                assert texts["reply", one.turn_id][one.start : one.end] == one.placeholder


@given(st.binary(max_size=400), st.sampled_from(SUFFIXES))
def test_any_bytes_are_read_or_refused(data: bytes, suffix: str) -> None:
    whole_way(data, suffix)


@given(JSON, st.sampled_from((".json", "")))
def test_any_json_is_read_or_refused(document: object, suffix: str) -> None:
    import json

    whole_way(json.dumps(document).encode(), suffix)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 10_000))
def test_damaged_files_are_read_or_refused(name: str, seed: int) -> None:
    data, draw = bytearray(FORMATS[name]()), random.Random(seed)
    for _ in range(draw.randint(1, 20)):
        place = draw.randrange(len(data))
        data[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
    whole_way(bytes(data), "." + name.partition(".")[2])


@settings(deadline=None)
@given(WORDS)
def test_redaction_of_any_words_keeps_the_rest(text: str) -> None:
    found = redact([Utterance("A", text)])
    again = redact(found.utterances)
    assert len(again.utterances) == 1
    for one in found.findings:
        assert all(0 <= start < end <= len(text) for _, start, end in one.pieces)
    assert all(0 <= one.start < one.end <= len(text) for one in spoken_amounts(text))


@pytest.mark.slow
def test_long_hostile_text_ends() -> None:
    """Patterns that could try every split of a long row of the same words would not end in any time."""
    for part in ("one ", "1-", "born ", "account number ", "a.", "E as in Edward ", "my name is ", "12 elm "):
        text = part * 3_000
        assert len(redact([Utterance("A", text)]).utterances[0].text) <= 2 * len(text)
