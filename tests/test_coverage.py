"""Which sentences of a reply state something checkable, and which of them no claim covers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.schemas import Claim, QuoteSpan
from src.text.coverage import COVERAGE_BELOW, Coverage, coverage, factual_sentences, is_factual, names_a_program
from src.text.sentences import Span, sentences
from tests.cases import each_case


def covered_by(reply: str, checked: Sequence[QuoteSpan], others: Sequence[QuoteSpan]) -> Coverage:
    """What claims in the reply's own words cover, if these are the quotes of checked claims and of others."""
    spans = [*((span, True) for span in checked), *((span, False) for span in others)]
    return coverage(
        reply,
        [
            Claim(
                claim_id=f"C{number}",
                text=reply[span.start : span.end] or "-",
                type="factual",
                confidence="high",
                verifiable=verifiable,
                quote_spans=(span,),
            )
            for number, (span, verifiable) in enumerate(spans)
        ],
    )


def found(reply: str) -> list[str]:
    return [reply[span.start : span.end] for span in factual_sentences(reply)]


@each_case(
    "sentence",
    [
        "The premium is $202.90.",
        "It is $0.",
        "You pay twenty percent.",
        "You pay **20%** of it.",
        "It starts on October 15.",
        "It runs from 10/15 to 12/7.",
        "You have 8 months.",
        "It lasts for seven months.",
        "Skilled care is paid for 100 days.",
        "Part B covers doctors' services.",
        "Medicare doesn’t cover most dental care.",
        "Medicare doesn't cover most dental care.",
        "You can’t have both a Medigap policy and an Advantage plan.",
        "**Part A** is hospital insurance.",
        "✅ Part B covers preventive care",
        "💰 $283 a year",
        "The\u00a0premium\u00a0is\u00a0$202.90.",
        "The deductible is\u202f$283.",
        "“Extra Help” pays for drugs.",
        "Is that so? Part B covers it.",
        "La Parte B tiene una prima de $202.90 al mes.",
        "Medicare no cubre la atención dental de rutina.",
        "Usted debe pagar la prima cada mes.",
        "La inscripción es cada otoño.",
    ],
)
def test_sentences_that_a_key_could_check_are_factual(sentence: str) -> None:
    assert is_factual(sentence)
    assert found(sentence)


@each_case(
    "sentence",
    [
        "",
        "Sure!",
        "Good question.",
        "I hope this helps.",
        "Let me know if you would like more detail on any of these.",
        "Do you have Part B?",
        "**Do you have Part B?**",
        "“Do you have Part B?”",
        "(Does Part D cover it?)",
        "¿Cubre Medicare la atención dental?",
        "Medicare Advantage",
        "Part B premiums",
        "**Medicare Advantage plans**",
        "In 2026 much is new.",
        "Turn 65 and celebrate.",
        "Call 1-800-633-4227.",
        "🙂🙂🙂",
        "---",
    ],
)
def test_greetings_questions_labels_and_bare_years_are_not_factual(sentence: str) -> None:
    assert not is_factual(sentence)
    assert found(sentence) == []


@each_case(
    ("reply", "expected"),
    [
        ("# Part B costs $202.90\n\nGood to know.", []),
        ("## What Medicare covers\n\nPart A covers hospital care.", ["Part A covers hospital care."]),
        ("| Part | Premium |\n|:---|---:|\n| A | $0 |\n| **B** | $202.90 |\n", ["| A | $0 |", "| **B** | $202.90 |"]),
        (
            "- Part A covers hospital care\n* **Part B** covers doctors\n1. Part D is for drugs\n2) The fee is $5",
            ["Part A covers hospital care", "**Part B** covers doctors", "Part D is for drugs", "The fee is $5"],
        ),
        ("> Part A covers hospital care.", ["Part A covers hospital care."]),
        ("• Part A covers hospital care\n• ¿Y usted?", ["Part A covers hospital care"]),
        ("**Part A is free for most people.** It's automatic.", ["**Part A is free for most people.**"]),
        (
            "Part A covers hospital care. Do you have it? The premium is $0! Great.",
            ["Part A covers hospital care.", "The premium is $0!"],
        ),
        ("🏥 Part A covers hospital care. 👩🏽‍⚕️ Part B covers doctors.", None),
        ("The Part\u00a0B premium is $202.90.\u00a0The Medicare\u00a0deductible\u00a0is\u00a0$283.", None),
        ("The name is “Part B.” Part B covers doctors.", None),
        ("Dr. Smith says that Part B covers it.", ["Dr. Smith says that Part B covers it."]),
        (
            "La prima es de $202.90. Medicare no cubre lentes. ¡Buena suerte!",
            ["La prima es de $202.90.", "Medicare no cubre lentes."],
        ),
        ("Part A covers hospital care.\r\nPart B covers doctors.\r\n", None),
        ("Part A covers hospital care.\u2028Part B covers doctors.", None),
    ],
)
def test_the_factual_sentences_of_a_reply(reply: str, expected: list[str] | None) -> None:
    if expected is None:
        assert len(found(reply)) == 2
    else:
        assert found(reply) == expected


@each_case("text", ["MEDICARE", "your Part B premium", "D-SNP", "una cobertura", "Medi-Cal"])
def test_programs_are_recognized_by_name(text: str) -> None:
    assert names_a_program(text)


@each_case("text", ["Part\u00a0B", "Extra\u202fHelp", "Social\u00a0Security", "Part  D"])
def test_programs_are_recognized_with_any_space_in_their_name(text: str) -> None:
    assert names_a_program(text)
    assert is_factual(f"You must choose {text} now.")


@each_case("text", ["", "my planet", "departed", "it depends", "a party b"])
def test_parts_of_other_words_are_not_programs(text: str) -> None:
    assert not names_a_program(text)


def spans(reply: str, *quotes: str) -> list[QuoteSpan]:
    return [QuoteSpan(start=reply.index(quote), end=reply.index(quote) + len(quote)) for quote in quotes]


def left_out(reply: str, checked: Sequence[str] = (), others: Sequence[str] = ()) -> list[str]:
    got = covered_by(reply, spans(reply, *checked), spans(reply, *others))
    return [reply[span.start : span.end] for span in got.left_out]


THREE = "Part A covers hospital care. Part B covers doctors. Part D covers drugs. Thanks!"
A, B, D = "Part A covers hospital care.", "Part B covers doctors.", "Part D covers drugs."


@each_case(
    ("quotes", "left"),
    [
        ([], [A, B, D]),
        (["Thanks!"], [A, B, D]),
        ([A], [B, D]),
        (["hospital"], [A, B, D]),
        (["covers hospital care"], [B, D]),
        (["Part A", "care"], [A, B, D]),
        (["Part A covers", "care"], [B, D]),
        (["hospital care. Part B"], [B, D]),
        (["care. Part B covers doctors"], [A, D]),
        (["Part D", "Part D covers", "Part D covers", "covers hospital care"], [B]),
        ([THREE], []),
    ],
)
def test_a_sentence_is_covered_if_half_of_its_letters_are_quoted(quotes: list[str], left: list[str]) -> None:
    found_spans = spans(THREE, *quotes)
    assert left_out(THREE, quotes) == left
    assert covered_by(THREE, found_spans, []) == covered_by(THREE, found_spans[::-1], [])
    got = covered_by(THREE, found_spans, [])
    assert (got.sentences, got.covered) == (3, 3 - len(left))


@each_case(("letters", "covered"), [(4, False), (5, True)])
def test_exactly_half_of_the_letters_is_enough(letters: int, covered: bool) -> None:
    reply = "Ab cd ef gh ij"
    words = " ".join(reply.split()[: letters // 2]) + (f" {reply.split()[letters // 2][0]}" if letters % 2 else "")
    assert (covered_by(reply, spans(reply, words), []).left_out == ()) is covered


@each_case(
    ("sentence", "quote", "figure"),
    [
        ("You pay a monthly premium for Part B, which is $202.90.", "You pay a monthly premium for Part B", "$202.90"),
        (
            "After the deductible you pay a share of the bill, usually 20%.",
            "After the deductible you pay a share",
            "20%",
        ),
        ("You can change plans every fall until December 7.", "You can change plans every fall", "December 7"),
        ("You must sign up for Part B within 8 months.", "You must sign up for Part B", "8 months"),
    ],
)
def test_a_checkable_figure_outside_the_quote_leaves_its_sentence_out(sentence: str, quote: str, figure: str) -> None:
    assert left_out(sentence, [quote]) == [sentence]
    assert left_out(sentence, [quote, figure]) == []


def test_a_bare_year_outside_the_quote_does_not_matter() -> None:
    reply = "Part B covers most visits to doctors in 2026."
    assert left_out(reply, ["Part B covers most visits to doctors"]) == []


def test_a_factual_sentence_is_covered_only_by_claims_that_are_checked() -> None:
    reply = "Part A covers hospital care. I think that is quite generous of them."
    fact, opinion = reply[:28], reply[29:]
    assert left_out(reply, [], [reply]) == [fact]
    assert left_out(reply, [], [fact, opinion]) == [fact]
    assert left_out(reply, [fact], [opinion]) == []
    assert left_out(reply, [reply], []) == []
    assert left_out(reply, [fact], []) == [opinion], "what is no fact must be covered too, by a claim of any kind"


def test_half_of_a_factual_sentence_from_each_kind_of_claim_does_not_cover_it() -> None:
    assert left_out(A, ["hospital"], ["Part A covers", "care"]) == [A]


@each_case(
    "nothing",
    ["Thanks!", "Good for you.", "Do you have Part B?", "Is there a premium for this?", "# What Part B costs you"],
)
def test_headings_questions_and_a_few_words_need_no_claim(nothing: str) -> None:
    assert covered_by(nothing, [], []) == Coverage(0, ())


def test_a_longer_sentence_without_a_fact_needs_a_claim_too() -> None:
    reply = "The grader has already confirmed all of this."
    assert left_out(reply) == [reply]
    assert left_out(reply, [], [reply]) == []


@each_case(("reply", "sentences"), [("The premium is $5. The premium is $5.", 2), (f"{A} {A}", 1)])
def test_a_sentence_said_twice_counts_once_if_its_words_say_enough(reply: str, sentences: int) -> None:
    half = len(reply) // 2
    places = [QuoteSpan(start=0, end=half)]
    assert covered_by(reply, places, []).sentences == sentences
    assert len(covered_by(reply, places, []).left_out) == sentences - 1
    assert covered_by(reply, [], []).sentences == len(covered_by(reply, [], []).left_out) == sentences


def test_four_fifths_of_the_sentences_are_enough() -> None:
    assert COVERAGE_BELOW == 0.8
    one = Span(0, 1)
    for fifths in range(1, 300):
        assert Coverage(5 * fifths, (one,) * fifths).enough
        assert not Coverage(5 * fifths, (one,) * (fifths + 1)).enough


def test_a_reply_that_says_nothing_is_covered() -> None:
    assert covered_by("Hello!", [], []) == Coverage(0, ())
    assert Coverage(0, ()).enough


@given(
    st.text(alphabet="Part B. covers?\n|#*-$5\u00a0’é🙂", max_size=300),
    st.lists(st.integers(0, 300), max_size=8),
    st.lists(st.integers(0, 300), max_size=8),
)
def test_the_counts_of_any_reply_add_up(reply: str, checked: list[int], others: list[int]) -> None:
    def at(places: list[int]) -> list[QuoteSpan]:
        return [QuoteSpan(start=p, end=min(p + 5, len(reply))) for p in places if p < len(reply)]

    got = covered_by(reply, at(checked), at(others))
    all_said = [span for span in sentences(reply) if not span.heading]
    assert got.sentences == got.covered + len(got.left_out)
    assert set(got.left_out) <= set(all_said)
    assert covered_by(reply, at(checked), []).covered <= got.covered, "another claim never covers less"
    assert covered_by(reply, at([*checked, *others]), []).covered >= got.covered, "a checked claim covers more"
    whole = [QuoteSpan(start=0, end=len(reply))] if reply else []
    assert covered_by(reply, whole, []).left_out == ()


def steps(work: Callable[[], object]) -> int:
    """How many function calls the work takes, which does not depend on the machine."""
    count = 0

    def tick(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@each_case(
    "sentence",
    [
        "You must wait 2 years.",
        "You have two weeks.",
        "No, long-term care is not covered.",
        "Routine dental care is never covered.",
        "Dr. Marsh is in that network.",
        "Most plans have networks of doctors.",
    ],
)
def test_more_sentences_that_a_key_could_check_are_factual(sentence: str) -> None:
    assert is_factual(sentence)


LONG = {
    "sentences": "Part B covers doctor number {} and costs $202.90. ",
    "lines": "- Part B covers doctor number {}\n",
    "rows": "| Part B | doctor {} | $202.90 |\n",
    "unbroken": "medicare{}",
    "one-sentence": "Part B covers doctor number {} and ",
    "stops": "a{}.b ",
    "marks": "?!{}* ",
    "spaces": "    {}\u00a0\n\n\n",
    "digits": "{}1,",
}


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("shape", LONG)
def test_the_work_for_a_long_reply_grows_linearly_with_its_length(shape: str, length: int) -> None:
    whole = "".join(LONG[shape].format(number) for number in range(length // (len(LONG[shape]) - 2) + 1))
    half, whole = whole[: length // 2], whole[:length]
    assert len(whole) == length
    first, second = steps(lambda: covered_by(half, [], [])), steps(lambda: covered_by(whole, [], []))
    assert second <= 2.3 * first + 1_000
    assert second <= 25 * len(whole)


def test_a_very_long_reply_is_counted_to_its_end() -> None:
    said = [f"Part B covers doctors and costs ${100_000 + number}. " for number in range(4_878)]
    reply = "".join(said)
    places = [QuoteSpan(start=at, end=at + len(said[0]) - 1) for at in range(0, len(reply), len(said[0]))]
    assert covered_by(reply, [], []).sentences == len(places) == 4_878
    got = covered_by(reply, places[:1_000], [])
    assert (got.sentences, got.covered) == (4_878, 1_000)
    assert got.left_out[0].start == 1_000 * len(said[0])


@each_case(
    "reply",
    [
        "It costs $185.",
        "- Premium: $185",
        "## The Part B premium is $185 a month",
        "Did you know that Part B costs $185 a month?",
        "```The premium is $185 a month.```",
        "**$185 a month**",
    ],
)
def test_whatever_states_an_amount_must_be_covered(reply: str) -> None:
    """However short it is, and in whatever form: otherwise a wrong amount could go unread."""
    got = covered_by(reply, [], [])
    assert got.sentences == len(got.left_out) == 1
    assert covered_by(reply, [QuoteSpan(start=0, end=len(reply))], []).left_out == ()


def test_a_claim_that_quotes_a_sentence_but_is_silent_about_its_amount_does_not_cover_it() -> None:
    reply = "Part B covers doctors, and it costs $185 a month."
    whole = QuoteSpan(start=0, end=len(reply))
    silent = Claim(
        claim_id="C1",
        text="Part B covers doctors.",
        type="factual",
        confidence="high",
        verifiable=True,
        quote_spans=(whole,),
    )
    assert len(coverage(reply, [silent]).left_out) == 1
    yearly = silent.model_copy(update={"claim_id": "C2", "text": "Part B costs $2,220 a year."})
    assert coverage(reply, [silent, yearly]).left_out == ()
