def _same_level(claim: Reading, statement: str) -> bool:
    """Whether both deny or both assert, in the clauses that are closest to each other.

    An amount that both give as what something is or costs settles it: a negation elsewhere is a side remark.
    """
    agreed = (claim.figures & read_words(statement).figures) - {"$0"}
    if claim.denials and any(is_amount(figure) for figure in agreed):
        for piece in _PIECE.split(claim.text):
            part = read_words(piece)
            if part.figures & agreed and not part.denials and _STATES.search(piece):
                return True
    theirs = nearest(claim, statement)
    mine = nearest(theirs, claim.text)
    return bool(mine.denials % 2) == bool(theirs.denials % 2)


def _signs(words: tuple[Word, ...]) -> dict[str, set[str]]:
    """For each token: denied (-), plain (+), or in the wake of a negation (?)."""
    signs: dict[str, set[str]] = {}
    for word in words:
        signs.setdefault(word.token, set()).add("-" if word.head else "?" if word.negated else "+")
    return signs


def _sign_clash(claim: Reading, statement: str, score: float) -> str:
    """A word denied on one side only, against that part of the statement which the claim is closest to."""
    if score < POLARITY_AT:
        return ""
    whole, mine = _signs(read_words(statement).words), _signs(claim.words)
    theirs = _signs(nearest(claim, statement).words)
    for token in sorted(mine.keys() & theirs.keys() - EVERYWHERE):
        a, b, everywhere = mine[token], theirs[token], whole.get(token, set())
        if token.startswith(("#", "@")):
            continue
        if a == {"-"} and b == {"+"} and "-" not in everywhere:
            return f"denies '{token}' where the key asserts it"
        if a == {"+"} and b == {"-"} and "+" not in everywhere:
            return f"asserts '{token}' where the key denies it"
    return ""


def _antonym_clash(claim: Reading, fact: Reading, score: float) -> str:
    for pair in _ANTONYMS:
        for mine, theirs in (pair, pair[::-1]):
            if mine not in claim.content or theirs not in fact.content:
                continue
            if theirs in claim.content or mine in fact.content or (pair in _WEAK and score < 0.8):
                continue
            if _negates(claim, mine) or _negates(fact, theirs):
                continue
            if mine in DIRECTIONAL and not _followers(claim, mine) & _followers(fact, theirs):
                continue
            return f"says '{mine}' where the key says '{theirs}'"
    return _offset_clash(claim, fact)


def _negates(reading: Reading, token: str) -> bool:
    return any(word.token == token and word.negated for word in reading.words)


def _followers(reading: Reading, token: str) -> set[str]:
    return {after.token for word, after in pairwise(reading.words) if word.token == token}


def _over_general(claim: Reading, fact: Reading) -> bool:
    return bool(claim.raw & UNIVERSALS and fact.raw & RESTRICTED and not fact.raw & UNIVERSALS)
