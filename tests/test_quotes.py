"""Finding quotes exactly, after folding typography, or not at all; spans point into the reply as written."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from src.text.quotes import find_quote
from tests.cases import each_case

TYPOGRAPHY = "'\"-’‘“”–—… \u00a0\u202f\u200b\u00ad*_#`"
REPLIES = st.text(alphabet=st.sampled_from("abcdeAB.,$0129\n\t" + TYPOGRAPHY) | st.characters(codec="utf-8"))
WORDS = st.lists(st.text(alphabet="abcdefgh", min_size=2, max_size=8), min_size=3, max_size=20)


def found(reply: str, quote: str) -> tuple[str, str] | None:
    """The words of the reply that the span covers, and how they were found."""
    span = find_quote(reply, quote)
    return None if span is None else (reply[span.start : span.end], span.match)


def test_an_exact_quote_is_found_at_its_first_position() -> None:
    span = find_quote("Part B costs. Part B costs.", "Part B costs.")
    assert span is not None
    assert (span.start, span.end, span.match) == (0, 13, "exact")


@each_case(
    ("reply", "quote", "words"),
    [
        ("You don’t pay twice.", "don't pay", "don’t pay"),
        ("You don't pay twice.", "don’t pay", "don't pay"),
        ("It is “free” for you.", 'is "free" for', "is “free” for"),
        ("It is «free» for you.", '"free"', "«free»"),
        ("Part\u00a0B costs\u202f$5.", "Part B costs $5", "Part\u00a0B costs\u202f$5"),
        ("January 1 – March 31", "January 1 - March 31", "January 1 – March 31"),
        ("out‑of‑pocket costs", "out-of-pocket costs", "out‑of‑pocket costs"),
        ("It is **not covered** today.", "is not covered today", "is **not covered** today"),
        ("It is not covered today.", "is **not** covered", "is not covered"),
        ("## Costs\n\nYou pay $5.", "Costs You pay $5.", "Costs\n\nYou pay $5."),
        ("You pay\n  a  premium.", "You pay a premium.", "You pay\n  a  premium."),
        ("pre\u00admium and zero\u200bwidth", "premium and zerowidth", "pre\u00admium and zero\u200bwidth"),
        ("Wait… then pay.", "Wait... then pay.", "Wait… then pay."),
        ("the `plan` pays", "the 'plan' pays", "the `plan` pays"),
        ("**$185** a month", "$185 a month", "$185** a month"),
    ],
)
def test_typography_is_folded_and_the_span_covers_the_words_as_written(reply: str, quote: str, words: str) -> None:
    assert found(reply, quote) == (words, "typographic")


def test_an_exact_match_is_preferred_to_an_earlier_folded_one() -> None:
    assert found("don’t pay; don't pay", "don't pay") == ("don't pay", "exact")


@each_case(
    ("reply", "quote"),
    [
        ("You pay a premium.", "You pay no premium."),
        ("You pay a premium.", "you pay a premium."),
        ("The premium is $185.", "The premium is $186."),
        ("The premium is 20%.", "The premium is 20$."),
        ("You pay a premium.", "You pay a premium. Always."),
        ("You pay … a premium.", "You pay a premium."),
        ("one two", "onetwo"),
        ("", "anything"),
    ],
)
def test_other_words_are_not_found(reply: str, quote: str) -> None:
    assert find_quote(reply, quote) is None


@each_case("quote", ["", " ", "\n\t", "\u00a0", "\u200b", "***", "_ _"])
def test_a_quote_without_words_is_not_found(quote: str) -> None:
    assert find_quote("Plain words.", quote) is None


@given(
    st.lists(st.text(alphabet="abcAB$%.,’*\u00e9" + "0123", min_size=2, max_size=8), min_size=1, max_size=20), st.data()
)
def test_any_run_of_whole_words_is_found_exactly(words: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    quote = " ".join(words[first : last + 1])
    assume(sum(char.isalnum() for char in quote) > 1)
    assert found(" ".join(words), quote) == (quote, "exact")


@each_case(
    ("reply", "quote"),
    [
        ("Dental is uncovered", "covered"),
        ("It costs $2000", "$200"),
        ("It costs $2.50", "$2"),
        ("It costs 12,000 dollars", "000 dollars"),
        ("Coverage ends", "Cover"),
        ("a b c", "a"),
    ],
)
def test_parts_of_words_and_numbers_are_not_found(reply: str, quote: str) -> None:
    assert find_quote(reply, quote) is None


def test_a_whole_word_is_found_after_a_partial_match() -> None:
    span = find_quote("uncovered, but covered here", "covered")
    assert span is not None
    assert span.start == 15


@given(REPLIES, REPLIES)
def test_a_span_is_always_inside_the_reply(reply: str, quote: str) -> None:
    span = find_quote(reply, quote)
    if span is not None:
        assert 0 <= span.start < span.end <= len(reply)
        assert (span.match == "exact") == (reply[span.start : span.end] == quote)


@given(WORDS, st.data())
def test_typography_in_the_reply_never_hides_a_quote(words: list[str], data: st.DataObject) -> None:
    reply = "".join(
        word + data.draw(st.sampled_from([" ", "\u00a0", "\n", "  ", " **", "** ", "\u200b ", " _", "\t\r\n"]))
        for word in words
    )
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    span = find_quote(reply, " ".join(words[first : last + 1]))
    assert span is not None
    covered = reply[span.start : span.end].replace("*", "").replace("_", "").replace("\u200b", "")
    assert covered.split()[1:-1] == words[first : last + 1][1:-1]


@given(WORDS, st.data())
def test_a_changed_word_is_not_found(words: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    changed = [*words]
    changed[place] = data.draw(st.text(alphabet="xyz", min_size=1, max_size=8))
    assert find_quote(" ".join(words), " ".join(changed)) is None
