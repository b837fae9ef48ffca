"""Which extracted claims are which gold claims: by quotes first, by words among claims of one sentence."""

from __future__ import annotations

from src.judge_check.measure import Matches, PlacedGold, match
from src.schemas import QuoteSpan
from tests.cases import each_case

REPLY = "You have eight months to enroll. COBRA does not extend that, and a retiree plan does not either. Call us."


def placed(text: str, *quotes: str) -> PlacedGold:
    starts = [REPLY.index(quote) for quote in quotes]
    spans = tuple(QuoteSpan(start=at, end=at + len(quote)) for at, quote in zip(starts, quotes, strict=True))
    return PlacedGold(text, spans, quotes)


SENTENCE = "COBRA does not extend that, and a retiree plan does not either."
COBRA = placed("COBRA does not extend the period.", "COBRA does not extend that")
RETIREE = placed("A retiree plan does not extend the period.", "a retiree plan does not either")
MONTHS = placed("The period lasts eight months.", "You have eight months to enroll.")
CALL = placed("The assistant can be called.", "Call us.")


def test_equal_quotes_match_whatever_the_order() -> None:
    assert match([MONTHS, COBRA, RETIREE], [RETIREE, MONTHS, COBRA]) == Matches(((1,), (2,), (0,)), ())


def test_what_nobody_extracted_is_missed_and_what_is_no_gold_claim_is_spurious() -> None:
    assert match([MONTHS, COBRA], [MONTHS, CALL]) == Matches(((0,), ()), (1,))
    assert match([], [CALL]) == Matches((), (0,))
    assert match([MONTHS], []) == Matches(((),), ())


@each_case(
    ("quote", "matches"),
    [
        ("eight months to enroll. COBRA does", True),  # 23 characters are in both, the shorter has 32
        ("to enroll. COBRA does not extend", False),  # 10 of 32
        ("enroll. COBRA", True),  # 7 of 13
        ("enroll. COBRA does", False),  # 7 of 18
        ("months", True),
    ],
)
def test_half_of_the_shorter_quote_must_be_the_same(quote: str, matches: bool) -> None:
    one = match([MONTHS], [placed("Something about eight months.", quote)])
    assert one == (Matches(((0,),), ()) if matches else Matches(((),), (0,)))


def test_several_quotes_count_together() -> None:
    both = placed("Eight months, whatever COBRA does.", "eight months", "COBRA does not extend that")
    assert match([COBRA], [both]).of_gold == ((0,),)
    assert match([both], [COBRA]).of_gold == ((0,),)


def test_claims_of_one_sentence_with_the_same_quote_are_told_apart_by_their_words() -> None:
    cobra, retiree = placed(COBRA.text, SENTENCE), placed(RETIREE.text, SENTENCE)
    assert match([cobra, retiree], [retiree, cobra]).of_gold == ((1,), (0,))


def test_an_extracted_claim_that_is_left_over_is_a_part_of_the_gold_claim_it_fits() -> None:
    whole = placed("Neither COBRA nor a retiree plan extends the period.", SENTENCE)
    matches = match([whole], [COBRA, RETIREE])
    assert sorted(matches.of_gold[0]) == [0, 1]
    assert matches.spurious == ()


def test_a_gold_claim_that_is_left_over_shares_a_claim_that_says_both_things() -> None:
    verbatim = placed(SENTENCE, SENTENCE)
    assert match([COBRA, RETIREE], [verbatim]).of_gold == ((0,), (0,))


def test_a_gold_claim_is_missed_if_the_claim_of_its_sentence_says_something_else() -> None:
    only_cobra = placed("COBRA leaves the period as it is.", SENTENCE)
    matches = match([COBRA, RETIREE], [only_cobra])
    assert sorted(matches.of_gold) == [(), (0,)]
    assert matches.of_gold[0] == (0,)
