"""Whether a statement says more than one thing, as far as its punctuation, its figures and its verbs show."""

from __future__ import annotations

import re

from .figures import figures, kind

_VERB = (
    r"(?:is|are|was|were|can|cannot|must|may|does|do|has|have|had|will|pays?|covers?|lasts?|begins?|starts?|ends?|"
    r"costs?|counts?|applies|apply|needs?|gets?|owes?)"
)
_TWO_CLAUSES = re.compile(rf"(?<![\w-]){_VERB}\b.*,? (?:and|but|whereas) (?:[\w'’-]+ ){{1,4}}?{_VERB}\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:who|that|which|if|when|whose|where|because|after|before|until|while|unless|whether|what|as)\b"
)
_SENTENCES = re.compile(r"[a-z0-9)%][.?!] +[A-Z]")
_SLOT = re.compile(r"\{\{[^{}]*\}\}")


def compound(statement: str) -> str | None:
    """What shows that a statement holds several assertions; None if nothing does.

    It is a hint for authors. A list that one verb governs ("join, switch or drop a plan") and two conditions of one
    rule are no second assertion, so a conjunction counts only if a subject and a verb of its own follow it.
    """
    if ";" in statement:
        return "has a semicolon"
    if _SENTENCES.search(statement):
        return "has several sentences"
    slots = {slot for slot in _SLOT.findall(statement) if "figure." in slot}
    amounts = {one for one in figures(_SLOT.sub(" ", statement)) if kind(one) in ("money", "percent")}
    if len(slots) > 1 or len(amounts) > 1:  # one of each may be a condition and what follows from it
        return "states several amounts"
    found = _TWO_CLAUSES.search(statement)
    if found and not _CONDITION.search(statement[: found.end()]):
        return "joins two statements"
    return None
