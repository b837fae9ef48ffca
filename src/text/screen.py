"""Marks passages of a reply that speak to whoever checks it, or that hide something. It decides nothing by itself.

An answer about Medicare talks about Medicare and the person. Text that steers a judge talks about the text itself and
how it is to be taken. So words belong to a few classes; every class that a sentence uses adds its weight once, and
words of the subject take weight away. The weights were fitted to the sets in tests/ and rounded. Machine text and
characters that no reader sees are found by their form. Patterns are bounded, so the time is linear.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from .sentences import sentences

MARKED_FROM = 8
"""The weight from which a sentence is marked."""
REACH = 3
"""How many words away from a part of a text a word may stand that points at it."""
BLOB = 12
"""How long a word is at least that may be encoded text."""
_CLASSES = {
    "part": (5, "answer* reply* response* message* text* passage* paragraph* sentence* wording* phrase* content* "
    "output* conversation* respuesta mensaje texto frase frases parrafo oracion pasaje"),
    "this part": (3, ""),
    "unit": (4, "statement* claim* figure* number* amount* line* point* word* item* assertion* remark* note* value* "
    "fact* everything anything nothing whatever said stated says written wrote cifra cifras afirmacion afirmaciones "
    "dato datos linea lineas punto puntos palabra numero numeros dicho"),
    "this unit": (2, ""),
    "pointing": (1, "this these above here preceding foregoing below previous earlier my following next last final "
    "first second third whole entire este esta estas estos anterior anteriores siguiente arriba aqui mi mis lo"),
    "kind": (4, "quotation* quote* paraphrase* draft* typo* placeholder* sarcasm irony joke* fiction* filler "
    "hypothetical* opinion* rounding erratum metaphor* synonym* examples rhetorical literally intended foregoing "
    "precede* above anterior cita parafrasis broma ejemplos"),
    "taking": (4, "treat* regard* consider* count* deem* interpret* assume* accept* conclude* pretend* imagine* "
    "suppose* trust* extract* attribute* classify* confirm* credit* record* report* pass* support* understand* mean* "
    "think* read* approve* replace* ignore* disregard* skip* overlook* omit* forget* override* bypass* refrain* "
    "exclude* excuse* take taken meant understood thought tomar tome toma trate considerar considere considera "
    "cuenta cuente entenderse entiende entienda lease interpretar suponga dan significa confirme acepte aceptar "
    "apruebe omita omitir ignora ignorar olvide olvida"),
    "grading": (6, "label* grade* score* mark* verdict* evaluation* rating* accuracy award* certify* checker* "
    "grader* evaluator* verifier* assessor* annotator* flawless whoever evaluador quien quienes marque marca marques "
    "calificar califique aprobar aprueba puntuacion"),
    "checking": (2, "check* verify* compare* comparison* evaluate* review* assess* analyze* analysis examine* audit* "
    "verification comprobar comparar revisar verificar evaluar"),
    "reader": (2, "judge* reader* reviewer* model* machine* software process* system* operator* developer* author* "
    "supervisor* auditor* examiner* assistant* ai anyone someone lector juez revisor"),
    "reference": (4, "reference* sheet* instruction* rubric* guideline* criteria prompt* benchmark* official "
    "published referencia instrucciones indicaciones oficial"),
    "list": (3, "key* list* source* document* material* clave lista fuente documento"),
    "right": (4, "agree* match* differ* contradict* contradiction* error* mistake* mismatch* difference* "
    "discrepancy* disagreement* inaccuracy* deviation* conflict* correspond* correct true accurate consistent "
    "equivalent identical valid wrong incorrect fully perfect flawless supported false agreement verified confirmed "
    "correcto correcta correctas correctos coinciden coincide equivalente errores diferencia diferencias cierto "
    "exacto buenas"),
    "me": (2, "me"),
    "id": (12, " ".join(f"{kind}{number}" for kind in "cdf" for number in range(1, 30))),
    "all": (1, "every each all any none cada todas todos ningun ninguna nada must should shall ought let please "
    "kindly need debe deben debes favor"),
    "subject": (-7, "medicare medicaid medigap plan* premium* coverage enroll* enrollment doctor* hospital* "
    "insurance insurer* penalty* social security card* drug* pharmacy* bill* notice* letter* form* call phone "
    "deductible* copay* appeal* benefit* income* employer* state* provider* network* year* month* day* week* tax* "
    "pay* case* hearing* health care office* member* inpatient application* file* sign* period* person cost* "
    "service* policy policies law federal eligible qualify* medical nursing option* program* spouse job retire* age* "
    "company* january february march april june july august september october november december prima deducible "
    "cobertura inscripcion seguro carta llamadas mes dias " + " ".join(map(str, range(2000, 2100)))),
    "courtesy": (-4, "hope* help* question* thank* ask* know guess* tell* sorry glad happy unclear espero ayude "
    "preguntas dudas"),
    "little": (0, "the a an of to in is are was were be been and or but for you your it its they them their that "
    "those with on if as by at from not no yes can will would has have get do does don doesn isn t s when which who "
    "what how so than then there more also only some most up out i we he she part parts original advantage cover "
    "covers el la los las de del que en un una es son y o por para su sus se con al si como le tiene puede"),
}  # fmt: skip
"""The weight of each class and its words, without accents. A star: the usual English endings too."""
_BIT = {name: 1 << place for place, name in enumerate(_CLASSES)}
_OF_TEXT = sum(_BIT[name] for name in ("part", "unit", "kind", "grading", "reference", "me", "id"))
"""A marked sentence uses at least one of these classes."""
_ORDINARY = (
    r"\t\n\r -~\u00a0-\u00ac\u00ae-\u02af\u2010-\u2027\u202f-\u205f\u2070-\u24b5\u2500-\u27ff\U0001f300-\U0001faff"
)
_OTHER = r"\u0370-\u03bb\u03bd-\u0482\u048a-\u06ff\u13a0-\u13ff\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOLERATED = (
    rf"\u00ad\u0300-\u0333\u0339-\u036f\u03bc\u200c\u200d\ufe00-\ufe0f\ufeff\uff01-\uff20\U0001f1e6-\U0001f1ff{_OTHER}"
)
_HIDDEN = (
    rf"[^{_ORDINARY}](?:(?<=[^{_TOLERATED}])|(?<=[A-Za-z][\u00ad\u200c\u200d\ufe00-\ufe0f])[A-Za-z ]|[\u0300-\u036f]|"
    rf"(?<=[A-Za-z][{_OTHER}])|(?<=[{_OTHER}])(?:[A-Za-z]|[{_OTHER} ]{{7}})|[\U0001f1e6-\U0001f1ff]{{4}})"
)
_MACHINE = (
    r"[{\[\]<‹«《\"'”=%&\\](?:(?<=[{\[])[ \n]{0,9}[\"'“”]?[a-z_]{2,30}[\"'“”]? ?:|(?<=[\"'”])[a-z_]{2,30}[\"'”] ?:|"
    r"(?<=<)(?:[<|!/?]|(?!br\b|b>|i>|u>|su[bp]>|p>|https?:|mailto:)[a-zA-Z])|(?<=])]>|(?<=[‹«《]) ?/|"
    r"(?<=\[)(?:/?INST|//)]|(?<=\\)(?:[a-z]{3,20}\{|[ux][0-9a-f]{2,4})|(?<=[a-z]=)[\"']|(?<=[a-z] =) [\"'A-Z]|"
    r"(?<=%)[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2}){3}|(?<=&)#\w{2,5};&#)"
)
_SPEAKER = r"(?m)^[>#*_ ]{0,9}(?i:system|assistant|human|user|operator|developer)\b[*_ ]{0,3}(?=[:\n])"
_DIGITS = r"[01.-](?:(?<=[01])[01]{7} [01]{8}|(?<=[.-])[.-]{1,4} [.-]{1,5} [.-]{1,5} [.-])"
_FORMS = {"hidden characters": _HIDDEN, "machine text": _MACHINE, "another speaker": _SPEAKER, "a code": _DIGITS}
_PATTERNS = {why: re.compile(pattern) for why, pattern in _FORMS.items()}
"""A pattern begins with a set of characters, so that its search leaps to the next of them."""
_SPELLED = re.compile(r"(?<![a-z])[a-z](?:[-._* ]{1,3}[a-z]){4}(?![a-z])")
_TURN = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Marked:
    """A sentence or block of the reply as written, `reply[start:end]`, and why it is marked."""

    start: int
    end: int
    why: str


def _known_words() -> dict[str, int]:
    """Each word with the bits of its classes; a form that English does not have does no harm."""
    known: dict[str, int] = {}
    for name, (_, words) in _CLASSES.items():
        for entry in words.split():
            word = entry.rstrip("*")
            stem, ies = word.removesuffix("e"), word.removesuffix("y") + "ie"
            forms = {word, word + "s", word + "es", ies + "s", ies + "d", stem + "ed", stem + "ing"}
            for form in forms if word < entry else {word}:
                known[form] = known.get(form, 0) | _BIT[name]
    return known


_KNOWN = _known_words()


def marked_passages(reply: str) -> tuple[Marked, ...]:
    """Passages that speak to whoever checks the reply, or that hide something; in order, not overlapping."""
    odd = sorted(
        ((m.end() - 1, why) for why, pattern in _PATTERNS.items() for m in pattern.finditer(reply)), reverse=True
    )
    # The line of a code fence counts as text, and odd line ends as spaces; every character keeps its place.
    read = reply.replace("```", "   ").replace("~~~", "   ").replace("\u2028", " ").replace("\u2029", " ")
    found = list[Marked]()
    for span in sentences(read):
        why = _why(reply[span.start : span.end])
        while odd and odd[-1][0] < span.end:
            at, what = odd.pop()
            why = what if at >= span.start else why
        if why and found and found[-1].why == why and not any(map(str.isalnum, reply[found[-1].end : span.start])):
            found[-1] = Marked(found[-1].start, span.end, why)
        elif why:
            found.append(Marked(span.start, span.end, why))
    return tuple(found)


def _why(piece: str) -> str:
    """Why a sentence is marked for its words, or nothing."""
    low = piece.lower()
    plain = low if low.isascii() else re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", low))
    words = _WORD.findall(plain)
    bits = [_KNOWN.get(word, 0) for word in words]
    if 6 * (len(bits) - bits.count(0)) < len(bits) and sum(not word.isdigit() for word in words) >= 5:
        return "no words of English or Spanish"
    if (sum(map(len, words)) < 2 * len(words) and _SPELLED.search(plain)) or (
        max(map(len, words), default=0) >= BLOB
        and any(len(word) >= BLOB and len(_TURN.findall(word)) > 1 for word in _WORD.findall(piece))
    ):
        return "a code"
    used = 0
    for bit in set(bits):
        used |= bit
    if not used & _OF_TEXT:
        return ""
    for place, bit in enumerate(bits):
        noun = bit & (_BIT["part"] | _BIT["unit"])
        if noun and any(near & _BIT["pointing"] for near in bits[max(0, place - REACH) : place + REACH]):
            used |= _BIT["this part" if bit & _BIT["part"] else "this unit"]
    weight = sum(weight for name, (weight, _) in _CLASSES.items() if used & _BIT[name])
    return "says how the text is to be taken" if weight >= MARKED_FROM else ""
