"""Sentences with their exact positions; words with their meaning and polarity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.offline.text import (
    canonical,
    read_words,
    stem,
    strip_markup,
)
from src.text.sentences import sentences


def pieces(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is there! Is three?", ["One is here.", "Two is there!", "Is three?"]),
        ("You need Part B. You pay for it.", ["You need Part B.", "You pay for it."]),
        ("You need Parts A and B. Then wait.", ["You need Parts A and B.", "Then wait."]),
        ("Dr. Smith is in. Ask her.", ["Dr. Smith is in.", "Ask her."]),
        ("Some costs, e.g. Copays, vary.", ["Some costs, e.g. Copays, vary."]),
        ("It costs $1.50 or 2.5% more.", ["It costs $1.50 or 2.5% more."]),
        ("Call 1-800-MEDICARE. They help.", ["Call 1-800-MEDICARE.", "They help."]),
        ("It covers the U.S. The rest is not.", ["It covers the U.S.", "The rest is not."]),
        ("It starts Oct. 15 and ends Dec. 7.", ["It starts Oct. 15 and ends Dec. 7."]),
        ("Ask John Q. Public about it.", ["Ask John Q. Public about it."]),
        ("# Costs\n\nThey vary.", ["Costs", "They vary."]),
        ("- one item\n* two items\n3. three items", ["one item", "two items", "three items"]),
        ("| Part | Cost |\n|---|---|\n| B | $283 |", ["| Part | Cost |", "| B | $283 |"]),
        ("**Bold ends.** Next one.", ["**Bold ends.**", "Next one."]),
        ("a wrapped line\ngoes on here.", ["a wrapped line\ngoes on here."]),
        ("No. Medicare does not.", ["No.", "Medicare does not."]),
        ("---\n\n***\n", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text(alphabet=st.sampled_from("Ab .!?\n-*#|1$,:;'\"()_`é\u00a0\u2028"), max_size=200))
def test_spans_are_inside_the_text_in_order_and_do_not_overlap(text: str) -> None:
    last = 0
    for span in sentences(text):
        assert last <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip() == text[span.start : span.end]
        last = span.end


@given(st.text())
def test_the_content_of_any_text_is_the_tokens_of_its_words(text: str) -> None:
    sentences(text)
    strip_markup(text)
    reading = read_words(text)
    assert {word.token for word in reading.words if not word.token.startswith("#")} == reading.content


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("**Part B:** it is `new`", "Part B: it is new"),
        ("| Part B | **$283** |", "Part B | $283"),
        ("see [Medicare](https://medicare.gov) now", "see Medicare now"),
        ("a_name_stays and 2*3 too", "a_name_stays and 2*3 too"),
    ],
)
def test_markup_is_removed_and_words_stay(quote: str, expected: str) -> None:
    assert strip_markup(quote) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sign up for Medigap.", "Enrol in Medicare Supplement."),
        ("MA plans cover medicines.", "Medicare Advantage plans cover prescription drugs."),
        ("Traditional Medicare pays for it.", "Original Medicare covers it."),
        ("You need a low-income subsidy.", "You must have Extra Help."),
        ("A doctor", "A provider"),
        ("Parts A and B", "Part A and Part B"),
        ("per year", "annual"),
    ],
)
def test_synonyms_have_the_same_token(one: str, other: str) -> None:
    assert read_words(one).content == read_words(other).content


@pytest.mark.parametrize(
    "forms",
    [("require", "required", "requires", "requiring"), ("cover", "covers", "covered"), ("penalty", "penalties")],
)
def test_inflections_have_the_same_token(forms: tuple[str, ...]) -> None:
    assert len({canonical(form) for form in forms}) == 1
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Medicare does not cover dental care.", {"cover"}),
        ("Medicare doesn’t cover dental care.", {"cover"}),
        ("You don't have to enroll.", {"require"}),
        ("Enrolling is optional.", {"require"}),
        ("Dental care is excluded.", {"cover"}),
        ("Plans have no provider networks.", {"doctor", "network"}),
        ("You no longer pay.", {"pay"}),
        ("Insurers are never allowed to refuse.", {"allow", "refuse"}),
        ("You pay a premium, but no deductible.", {canonical("deductible")}),
        ("Not only does it cover drugs.", set()),
        ("It costs no more than $35.", set()),
        ("A limit cannot be higher than $9,250.", set()),
        ("No, you may wait.", set()),
    ],
)
def test_negation_marks_the_word_it_denies(text: str, denied: set[str]) -> None:
    assert {word.token for word in read_words(text).words if word.head} == denied


@pytest.mark.parametrize(
    ("text", "denials"),
    [
        ("You pay it.", 0),
        ("You do not pay it.", 1),
        ("If you do not enroll, you pay a penalty.", 0),
        ("A person who is not enrolled pays a penalty.", 0),
        ("People who have SLMB do not pay it.", 1),
        ("Neither Original Medicare nor Medigap covers it.", 1),
    ],
)
def test_conditions_deny_nothing(text: str, denials: int) -> None:
    assert read_words(text).denials == denials
