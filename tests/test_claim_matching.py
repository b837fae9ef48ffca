"""Which claims of two lists are the same: the pairs do not depend on the order of the lists, and none is overlooked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from src.schemas import QuoteSpan
from src.text.quotes import LEAST_OVERLAP, Pair, Placed, best_pairs, ranked_pairs

SPANS = st.builds(lambda at, length: QuoteSpan(start=at, end=at + length), st.integers(0, 60), st.integers(1, 14))
CLAIMS = st.lists(
    st.builds(Placed, st.sampled_from(["a b", "b c", "c"]), st.lists(SPANS, min_size=1, max_size=2).map(tuple)),
    max_size=5,
)


def characters(claim: Placed) -> set[int]:
    return {at for span in claim.spans for at in range(span.start, span.end)}


@given(CLAIMS, CLAIMS)
def test_a_pair_shares_half_of_the_shorter_quote_and_every_such_pair_is_found(
    first: list[Placed], second: list[Placed]
) -> None:
    wanted = {
        Pair(one, two)
        for one, claim in enumerate(first)
        for two, other in enumerate(second)
        for mine, theirs in [(characters(claim), characters(other))]
        if len(mine & theirs) >= LEAST_OVERLAP * min(len(mine), len(theirs))
    }
    found = ranked_pairs(first, second)
    assert len(found) == len(wanted)
    assert set(found) == wanted


@given(CLAIMS, CLAIMS)
def test_pairs_do_not_depend_on_which_list_is_first(first: list[Placed], second: list[Placed]) -> None:
    there, back = best_pairs(ranked_pairs(first, second)), best_pairs(ranked_pairs(second, first))
    assert sorted(there) == sorted(Pair(pair.second, pair.first) for pair in back)
    assert len({pair.first for pair in there}) == len({pair.second for pair in there}) == len(there)


def test_the_pair_with_more_words_in_common_comes_first() -> None:
    quote = (QuoteSpan(start=0, end=10),)
    one, other = Placed("COBRA ends.", quote), Placed("A retiree plan ends.", quote)
    assert best_pairs(ranked_pairs([one, other], [other, one])) == [Pair(0, 1), Pair(1, 0)]
