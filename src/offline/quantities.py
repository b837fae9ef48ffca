def _of_kind(figures: Iterable[str], wanted: str) -> frozenset[str]:
    return frozenset(figure for figure in figures if kind(figure) == wanted)


def _other_year(claim: Reading, fact: Reading) -> bool:
    mine, theirs = _of_kind(claim.figures, "year"), _of_kind(fact.figures, "year")
    return bool(mine and theirs and not mine & theirs)


def _figure_clash(claim: Reading, fact: Reading) -> tuple[frozenset[str], str]:
    """The claim's figures that differ from the statement's of the same kind, and how."""
    kinds = sorted({kind(figure) for figure in claim.figures} & {kind(figure) for figure in fact.figures})
    if _other_year(claim, fact):
        # Another year's amount is another fact; a different year alone is a different answer.
        kinds = ["year"] if kinds == ["year"] else []
    for wanted in kinds:
        mine, theirs = _of_kind(claim.figures, wanted), _of_kind(fact.figures, wanted)
        bad, missing = mine - theirs, theirs - mine
        if wanted == "number":
            bad = _same_context(claim, fact, bad, missing)
        if wanted == "year" and len(kinds) > 1:
            continue
        partly = bool(mine & theirs) and wanted != "date" and len(mine) != len(theirs)
        if bad and missing and not partly:
            return bad, f"says {_names(bad)} where the key says {_names(missing)}"
    return frozenset(), ""


def _names(figures: Iterable[str]) -> str:
    return " and ".join(figure.removeprefix("n") for figure in sorted(figures)[:3])


def _contexts(reading: Reading, figure: str) -> set[str]:
    found: set[str] = set()
    words = reading.words
    for at, word in enumerate(words):
        if word.token == f"#{figure}":
            unit = next((other.token for other in reversed(words[:at]) if other.token[0] != "#"), "")
            if unit in _TIMES:
                continue  # "days 21 to 100" names a case, it counts nothing
            near = [*reversed(words[max(0, at - 2) : at]), *words[at + 1 : at + 3]]
            found.update(other.token for other in near if not other.token.startswith(("#", "@")))
    return found


def _same_context(claim: Reading, fact: Reading, bad: frozenset[str], missing: frozenset[str]) -> frozenset[str]:
    """Plain numbers differ only where they count the same thing: 50 employees and 20 employees."""
    theirs = set().union(*(_contexts(fact, figure) for figure in sorted(missing))) if missing else set()
    return frozenset(figure for figure in bad - AGES if _contexts(claim, figure) & theirs - EVERYWHERE - _TIMES)


def _mispaired(claim: Reading, fact: Reading) -> str:
    """An amount of the statement, given to another member of a group than the statement gives it to."""
    for group in _PAIRED:
        mine, theirs = pairs_of(claim.words, group), pairs_of(fact.words, group)
        for amount in sorted(mine.keys() & theirs.keys()):
            if mine[amount] != theirs[amount] and (mine[amount] in theirs.values() or group is MEASURED):
                return f"gives {amount[1:]} to {mine[amount]} where the key gives it to {theirs[amount]}"
    return ""


def _offset_clash(claim: Reading, fact: Reading) -> str:
    """`a year after` and `the month after` are different times."""
    for side in sorted(DIRECTIONAL):
        mine, theirs = _leaders(claim, side) & _TIMES, _leaders(fact, side) & _TIMES
        if mine and theirs and not mine & theirs:
            return f"says '{min(mine)} {side}' where the key says '{min(theirs)} {side}'"
    return ""


def _leaders(reading: Reading, token: str) -> set[str]:
    return {word.token for word, after in pairwise(reading.words) if after.token == token}
