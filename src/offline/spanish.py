"""Some Spanish: Medicare words translated into English, so that a Spanish sentence can be compared."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_split = str.split
_SMALL = frozenset(
    _split(
        "el la los las de del que para por con una uno un es son se le les su sus en y o al "
        "lo como si no mas pero cuando sin todos todas"
    )
)
_ENGLISH = frozenset(_split("the of and to is are you your for with that this it a can not"))
_PHRASES: dict[str, str] = {
    "plan de pago de recetas de medicare": "medicare prescription payment plan", "parte a": "part a",
    "parte b": "part b",
    "parte c": "part c", "parte d": "part d", "medicare original": "original medicare", "ayuda adicional": "extra help",
    "seguro social": "social security", "programa de ahorros de medicare": "medicare savings program",
    "programas de ahorros de medicare": "medicare savings programs", "autorizacion previa": "prior authorization",
    "fuera de la red": "out of network", "de su bolsillo": "out of pocket",
    "periodo de inscripcion": "enrollment period",
    "periodo de inscripcion inicial": "initial enrollment period", "inscripcion abierta": "open enrollment",
    "periodo de inscripcion especial": "special enrollment period", "cuidado a largo plazo": "long-term care",
    "periodo de inscripcion general": "general enrollment period", "a largo plazo": "long-term",
    "centro de enfermeria especializada": "skilled nursing facility", "de por vida": "for life",
    "sin excepcion": "without exception",
    "de un plan a otro": "from plan to plan", "ya no": "not", "es posible que": "may",
    "no tiene que": "does not have to",
    "tiene que": "must", "tienen que": "must", "al mes": "a month", "por mes": "a month", "al dia": "a day",
    "por dia": "a day",
    "al ano": "a year", "por ano": "a year", "asi que": "so", "por ciento": "percent",
    "recetas medicas": "prescription drugs",
}  # fmt: skip
_TABLE = """
    prima=premium primas=premiums deducible=deductible coaseguro=coinsurance copago=copay copagos=copays
    cobertura=coverage cubre=covers cubren=cover cubierto=covered cubierta=covered paga=pays pagan=pay pagar=pay
    medicos=doctors medico=doctor hospitales=hospitals medicamentos=drugs medicinas=medicines
    recetas=prescriptions mensual=monthly mensuales=monthly mes=month meses=months ano=year anos=years dia=day
    dias=days anual=yearly cuotas=installments voluntario=voluntary opcional=optional obligatorio=mandatory
    gratis=free nada=nothing nunca=never siempre=always todos=all todas=all servicios=services exigen=require
    exige=requires requiere=requires requieren=require plan=plan planes=plans puede=can pueden=can debe=must
    deben=must inscribirse=enroll inscribe=enrolls inscripcion=enrollment multa=penalty penalidad=penalty
    ingresos=income ingreso=income limite=limit tope=cap costos=costs costo=cost cuesta=costs cuestan=cost
    empieza=begins comienza=begins comenzo=began empezo=began termina=ends terminan=end dura=lasts
    persona=person personas=people menos=fewer mas=more coordina=coordinates coordinan=coordinate
    beneficios=benefits beneficio=benefit varia=varies varian=vary depende=depends pierde=loses pierden=lose
    perder=lose solicitar=apply solicita=applies estado=state oficina=office red=network emergencia=emergency
    urgencia=urgent especialista=specialist remision=referral asegura=insures aseguradora=insurer
    aseguradoras=insurers poliza=policy polizas=policies comprar=buy compra=buys automaticamente=automatically
    no=not sin=without con=with y=and o=or para=for de=of en=in si=if cuando=when pero=but entre=between
    enero=January febrero=February marzo=March abril=April mayo=May junio=June julio=July agosto=August
    septiembre=September octubre=October noviembre=November diciembre=December hasta=through desde=from
    despues=after antes=before es=is son=are tiene=has tienen=have el=the la=the los=the las=the un=a una=a
    su=your sus=your deja=lets permite=allows ayuda=helps consejeros=counselors elegir=choose cambiar=switch
"""
_WORDS: dict[str, str] = {pair.split("=")[0]: pair.split("=")[1] for pair in _split(_TABLE)}
_PHRASE = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, _PHRASES), key=lambda p: (-len(p), p))) + r")\b")
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=4096)
def to_english(text: str) -> str:
    """The text or, if most of its function words are Spanish, the text with the known words in English."""
    plain = _unaccented(text)
    words = [word.lower() for word in _WORD.findall(plain)]
    spanish = sum(word in _SMALL for word in words) + (plain != text and any(map(str.isalpha, set(text) - set(plain))))
    if spanish < 2 or spanish <= sum(word in _ENGLISH for word in words):
        return text
    lowered = _PHRASE.sub(lambda match: _PHRASES[match.group()], plain.lower())
    return _WORD.sub(lambda match: _WORDS.get(match.group(), match.group()), lowered)


def _unaccented(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
