"""What is personal goes, what is Medicare stays. The sentences are invented; so are the people and numbers in them."""

from __future__ import annotations

from src.inputs.transcripts.redact import RedactionRules, redact
from src.inputs.transcripts.utterances import Utterance, WordConfidence
from tests.cases import each_case


def said(text: str, **rules: object) -> str:
    """The redacted text; `|` is where another speaker begins."""
    utterances = [Utterance("AB"[place % 2], part) for place, part in enumerate(text.split("|"))]
    return "|".join(one.text for one in redact(utterances, RedactionRules(**rules)).utterances)  # type: ignore[arg-type]


PERSONAL = [
    ("My Medicare number is <one E G four dash T E five dash M K seven three>, okay?", "MEDICARE NUMBER"),
    ("It's <1eg4 te5 mk73> on the card.", "MEDICARE NUMBER"),
    ("The MBI reads <one echo golf four, tango echo five, mike kilo seven three>.", "MEDICARE NUMBER"),
    ("<nine, X as in x-ray, six, three, R, N, eight, A, A, four, four>", "MEDICARE NUMBER"),
    ("His old number was <123-45-6789A>.", "MEDICARE NUMBER"),
    ("My social is <one two three, four five, six seven eight nine>.", "SSN"),
    ("Social security number? <double five five, one two, three four six seven>", "SSN"),
    ("My SSN: <078051120>", "SSN"),
    ("my socials <four twelve thirty three ninety eighty seven>", "SSN"),
    ("the last four of my social are <six seven eight nine>", "SSN"),
    ("call me back at <615-555-0142> after five", "PHONE"),
    ("my cell is <six one five five five five oh one four two>", "PHONE"),
    ("my number's <six fifteen, five fifty-five, oh one forty-two>", "PHONE"),
    ("email me at <jane.doe42@gmail.com>", "EMAIL"),
    ("It's <jane dot doe at gmail dot com>", "EMAIL"),
    ("my email address is <jane doe forty two at yahoo dot com>", "EMAIL"),
    ("I live at <1242 Maple Street, Apt 4B>, Nashville", "ADDRESS"),
    ("i'm over at <nine oh two pleasant ridge road>", "ADDRESS"),
    ("the zip is <37201-1234>", "ZIP"),
    ("I was born <March third nineteen fifty eight>", "DATE OF BIRTH"),
    ("date of birth is <03/03/1958>", "DATE OF BIRTH"),
    ("And your date of birth?|<March third, nineteen fifty-eight>.", "DATE OF BIRTH"),
    ("DOB <oh three oh three fifty eight>", "DATE OF BIRTH"),
    ("the card is <4111 1111 1111 1111>", "CARD"),
    ("visa <four one one one, one one one one, one one one one, one one one one>", "CARD"),
    ("my driver's license is <T64-2231-9087>", "LICENSE"),
    ("member ID is <XJK 4471 9023>", "ID"),
    ("Your confirmation number is <QX7 88 2>", "ID"),
    ("The case number's <448812>", "ID"),
    ("My name is <Jane Doe> and I'm calling about Medicare", "NAME"),
    ("my name is <jane doe> and i'm calling", "NAME"),
    ("this is <robert kowalski> speaking, how can i help", "NAME"),
    ("I'm <Beatrice Thornquist>.", "NAME"),
    ("Thank you, Mrs. <Kowalski>.", "NAME"),
    ("And your name, please?|<Beatrice Thornquist>.", "NAME"),
    ("I spoke with <Tyrone Biggs> at the county office", "NAME"),
    ("I'm <Trevor>, a volunteer.", "NAME"),
    ("You've reached <Trevor> at SHIP", "NAME"),
    ("Patient name: <Kowalczyk, Magdalena>", "NAME"),
    ("my late husband, <Zbigniew>, had it", "NAME"),
    ("hi this is <magdalena kowalczyk> i have a question about part b", "NAME"),
    ("born <september ninth fifty nine>", "DATE OF BIRTH"),
    ("<09-09-59> is my date of birth", "DATE OF BIRTH"),
    ("the reference number I got was <R-77821>", "ID"),
    ("Account ending in <4471>", "ID"),
    ("<five one oh five, one oh five one, oh five one oh, five one oh oh> is the card", "CARD"),
    ("write to me at <mkowal underscore seventy seven at gmail dot com>", "EMAIL"),
]
STAYS = [
    "Open Enrollment runs from October 15 to December 7.",
    "The Part B premium is $202.90 a month in 2026, it was $185.",
    "it's two hundred two ninety a month in twenty twenty six",
    "You turned 65 in March, so your window is December through June.",
    "Call 1-800-MEDICARE (1-800-633-4227), TTY 1-877-486-2048, 24 hours a day, 7 days a week.",
    "Call Social Security at 1-800-772-1213, 8 a.m. to 7 p.m.",
    "one eight hundred six three three four two two seven",
    "call eight hundred seven seven two twelve thirteen",
    "Plan H1234-001 and contract S5601-014 are public.",
    "See 42 CFR 423.38, OAR 836-052-0143(2) and section 1851(e)(2); form CMS-40B or CMS-L564.",
    "You pay 20% for days 61 to 90, $434 a day; lifetime reserve days $868.",
    "Extra Help income limit is $23,475 for one and $31,725 for a couple.",
    "If you were born in 1960 or later your full retirement age is 67.",
    "If your birthday is on the first of the month, Medicare starts the month before.",
    "Your 65th birthday is in July 2026, so the window is April to October.",
    "ages 65, 66, 67, 68, 69, 70",
    "Your Medicare number is on your card and has 11 characters.",
    "I'm on Medicare Advantage in Davidson County, Tennessee, ZIP 37201.",
    "This is Original Medicare, not Medicare Advantage.",
    "look at medicare dot gov slash plan compare",
    "Virginia and Georgia residents, Jackson County, Madison, Wisconsin",
    "It's a two way street; 30 minute drive; 90 days in a row.",
    "The premium in 2024 was 174.70, in 2025 185.00, in 2026 202.90 and 2027 not yet known.",
    "Will Medicare pay? May 1 is fine. Mark the date.",
    "On July 30, 1965 the law was signed.",
    "A person whose 65th birthday is August 14 can sign up from May 1.",
    "My name is not on the card, and my name is spelled wrong.",
    "I'm a volunteer, and this is the general enrollment period.",
    "Between 2025-2026 the premium rose; in 2026 the cap is $2,100, or 2,100 dollars.",
    "twenty one hundred dollars a year and thirty five dollars for insulin",
    "the plan's number is on the card: 1-888-555-1234, 8 to 8, seven days a week",
    "it's plan H five five two one dash oh three six",
    "Call us at 1 (866) 836-6678 or 1.855.334.7266. Thank you, Goodbye.",
    "You have 63 days, then 8 months, then 5 years; see page 104.",
    "The name of the plan is Healthy Connections, a 4.5-star plan.",
]


@each_case(("text", "kind"), PERSONAL)
def test_what_is_personal_is_replaced_and_nothing_else(text: str, kind: str) -> None:
    before, _, rest = text.partition("<")
    _, _, after = rest.partition(">")
    assert said(text.replace("<", "").replace(">", "")) == f"{before}[{kind} 1]{after}"


@each_case("text", STAYS)
def test_dates_amounts_and_public_numbers_stay(text: str) -> None:
    assert said(text) == text


def test_a_number_said_in_several_breaths_is_found() -> None:
    found = said("Your Medicare number?|It's two A A nine|uh-huh|A A nine|okay|A A nine nine, and I turned 65.")
    mark = "[MEDICARE NUMBER 1]"
    assert found == f"Your Medicare number?|It's {mark}|uh-huh|{mark}|okay|{mark}, and I turned 65."


def test_the_same_value_has_the_same_placeholder() -> None:
    found = said("Call 615-555-0142 or 615-555-0199.|So six one five, five five five, oh one four two?")
    assert found == "Call [PHONE 1] or [PHONE 2].|So [PHONE 1]?"


def test_invented_people_are_not_personal() -> None:
    text = "This is Terrence Oglesby. My doctor is Dr. Nora Ellingham, not Dr. Patel."
    kept = said(text, fictional=("Terrence Oglesby", "Dr. Nora Ellingham"))
    assert kept == text.replace("Patel", "[NAME 1]")


def test_listed_names_are_found_in_any_form() -> None:
    found = said("thornquist here. Ask for Fern. That is F-E-R-N. may i?", names=("Fern Thornquist", "thornquist"))
    assert "ornquist" not in found and "Fern" not in found and "F-E-R-N" not in found


def test_a_person_can_keep_and_add() -> None:
    text = "Call 615-555-0142. It is about Project Bluebird."
    assert said(text, keep=(1,), also=("project  bluebird",)) == "Call 615-555-0142. It is about [REDACTED 1]."


def test_no_original_value_is_in_what_is_shown() -> None:
    found = redact([Utterance("A", "My social is 412-33-9087 and I'm Jane Doe.")])
    assert [(one.kind, one.hint) for one in found.findings] == [
        ("SSN", "4… (11 characters)"),
        ("NAME", "J… (8 characters)"),
    ]
    assert "9087" not in repr(found) and "Doe" not in repr(found)


def test_redacting_twice_changes_nothing() -> None:
    for text, _ in PERSONAL:
        once = said(text.replace("<", "").replace(">", ""))
        assert said(once) == once


def test_words_with_a_confidence_move_with_the_text() -> None:
    text = "Call 615-555-0142 on Tuesday"
    words = (WordConfidence(5, 17, 0.9), WordConfidence(21, 28, 0.3))
    found = redact([Utterance("A", text, words=words)]).utterances[0]
    assert [found.text[word.start : word.end] for word in found.words] == ["Tuesday"]
