"""The caller's words and the scripted questions."""

from __future__ import annotations

import pytest

from src.errors import InputError
from src.inputs.transcripts.align import Alignment, align, corrected, read_map
from src.inputs.transcripts.assemble import assemble
from src.inputs.transcripts.utterances import Utterance
from tests.cases import each_case
from tests.transcripts.sample import CALL, script

SAID = [Utterance(line.who, line.text) for line in CALL]
Q = {turn.turn_id: turn.user_message for turn in script().turns}


def calls(alignment: Alignment) -> dict[str, tuple[int, ...]]:
    return {match.turn_id: match.calls for match in alignment.matches}


def talk(*lines: str) -> list[Utterance]:
    """`C: ...` is the caller, anything else the other side."""
    return [Utterance("Caller" if line.startswith("C: ") else "Other", line.removeprefix("C: ")) for line in lines]


def test_the_caller_is_recognized_by_the_questions() -> None:
    found = align(SAID, script().turns)
    assert (found.caller, found.recognized) == ("Caller", True)
    assert calls(found) == {"Q1": (2,), "Q2": (4,), "Q3": (), "Q4": (5,)}


def test_a_repeated_question_counts_from_the_first_time() -> None:
    found = align(
        talk("Hello?", f"C: {Q['Q1']}", "Sorry, the line is bad.", f"C: {Q['Q1']}", "It is A.", f"C: {Q['Q2']}", "B."),
        script().turns,
    )
    assert calls(found)["Q1"] == (1,)
    reply = assemble(found, "phone").turns[0].reply
    assert reply == "Sorry, the line is bad.\nIt is A."


def test_a_question_that_is_interrupted_is_one_question() -> None:
    first, second = Q["Q2"].split("? ")
    found = align(
        talk("Hi.", f"C: {Q['Q1']}", "A.", f"C: {first}", "Mm-hmm.", f"C: {second}", "B.", "C: ok"), script().turns
    )
    assert calls(found)["Q2"] == (2, 3)
    turn = assemble(found, "phone").turns[1]
    assert turn.question == f"{first} {second}"
    assert turn.reply == "Mm-hmm.\nB."


def test_two_questions_in_one_breath_are_marked() -> None:
    found = align(talk("Hi.", f"C: {Q['Q1']} {Q['Q2']}", "Both."), script().turns)
    turns = assemble(found, "phone").turns
    asked = [turn for turn in turns if turn.outcome != "not_asked"]
    assert len(asked) == 1
    other = next(turn for turn in turns[:2] if turn.outcome == "not_asked")
    assert other.answered_early == asked[0].turn_id


def test_silence_is_not_an_answer() -> None:
    found = align(talk("Hi.", f"C: {Q['Q1']}", f"C: {Q['Q2']}", "B.", f"C: {Q['Q4']}"), script().turns)
    turns = assemble(found, "phone").turns
    assert [turn.outcome for turn in turns] == ["no_reply", "answered", "not_asked", "no_reply"]


def test_what_else_the_caller_says_is_kept_with_the_turn() -> None:
    turn = assemble(align(SAID, script().turns), "phone").turns[0]
    assert [(one.speaker, one.text) for one in turn.other] == [("caller", "Okay, I see.")]
    before = assemble(align(SAID, script().turns), "phone").before
    assert [one.speaker for one in before] == ["other", "caller", "other"]


def test_a_person_corrects_the_alignment() -> None:
    found = corrected(align(SAID, script().turns), read_map("Q1=none, Q3=2, Q4=early:Q2"))
    assert calls(found) == {"Q1": (), "Q2": (4,), "Q3": (2,), "Q4": ()}
    assert assemble(found, "phone").turns[3].answered_early == "Q2"


@each_case(
    ("given", "says"),
    [
        ("Q2", "write TURN=NUMBER"),
        ("Q2=x", "write TURN=NUMBER"),
        ("Q2=0", "write TURN=NUMBER"),
        ("Q2=1,Q2=2", "names Q2 twice"),
        ("Q9=1", "has no turn 'Q9'"),
        ("Q2=99", "speaks only 5 times"),
        ("Q2=2,Q3=2", "Q2 and Q3 have the same words 2. Use Q3=early:Q2"),
        ("Q2=early:Q2", "name another turn"),
        ("Q2=early:Q8", "has no turn 'Q8'"),
    ],
)  # fmt: skip
def test_a_bad_correction_gets_one_sentence(given: str, says: str) -> None:
    with pytest.raises(InputError, match=r"--map") as caught:
        corrected(align(SAID, script().turns), read_map(given))
    assert says in str(caught.value)


def test_who_asks_must_be_known() -> None:
    with pytest.raises(InputError, match=r"there is no speaker .Bob.\. --caller is one of .Counselor., .Caller.\."):
        align(SAID, script().turns, caller="Bob")
    with pytest.raises(InputError, match="nobody asks the scripted questions"):
        align(talk("It rains.", "C: Indeed.", "Still."), script().turns)
    with pytest.raises(InputError, match="only one speaker"):
        align([Utterance("A", "x")], script().turns)
    with pytest.raises(InputError, match="names no speakers"):
        align([Utterance("", "It rains.")], script().turns)
