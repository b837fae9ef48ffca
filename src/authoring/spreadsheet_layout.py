"""The sheets of a workbook of scenarios: their columns, and what each is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ..schemas import ConfirmedBy, Style
from . import spreadsheet_forms as forms
from .spreadsheet_forms import Form

Path = tuple[str, ...]
"""A field of a record, such as ("persona", "age")."""
SEVERITIES = ("low", "medium", "high")


@dataclass(frozen=True)
class Column:
    header: str
    path: Path
    help: str
    form: Form = forms.TEXT
    width: int = 18
    choices: tuple[str, ...] = ()
    read_only: bool = False
    """Shown for reading; not read back."""


@dataclass(frozen=True)
class Sheet:
    name: str
    about: str
    columns: tuple[Column, ...]

    def column(self, path: Path) -> Column:
        return next(column for column in self.columns if column.path == path)


SCENARIO = ("scenario_id",)
REST: Path = ()
"""The JSON column: every field of the row that has no other cell."""
_REST = Column(
    "More (JSON)", REST, "Rarely needed: fields that no other column can show, as JSON. Leave it as it is.", width=30
)
_OF_SCENARIO = Column("Scenario", SCENARIO, "The id of a scenario of the sheet Scenarios.", width=22)
STYLES = get_args(Style)

SCENARIOS = Sheet(
    "Scenarios",
    "One row for each scenario: what it is about, and the invented person who asks.",
    (
        Column("Scenario", SCENARIO, "A short id: letters, digits, - and _. Its file gets this name.", width=22),
        Column("Title", ("title",), "One line, shown in lists.", width=36),
        Column("Effective date", ("effective_date",), "First day on which the key may be used.", forms.DATE, 14),
        Column("Themes", ("themes",), "One to a line.", forms.LINES, 24),
        Column("Style", ("style",), "How the questions are asked, if there are no variants.", choices=STYLES, width=12),
        Column("Notes", ("notes",), "What the key leaves out, and why.", width=44),
        Column("Person", ("persona", "description"), "Who asks, in a sentence. Always invented.", width=44),
        Column("Name", ("persona", "name"), "An invented name."),
        Column("Age", ("persona", "age"), "A whole number.", forms.WHOLE, 8),
        Column("City", ("persona", "city"), "An invented town."),
        Column("State", ("persona", "state"), "A real state, written out."),
        Column("ZIP code", ("persona", "zip_code"), "As text, so that a leading zero is kept.", width=10),
        Column("County", ("persona", "county"), "An invented county."),
        Column("Language", ("persona", "language"), "The language that the person writes.", width=12),
        Column("Monthly income", ("persona", "monthly_income"), "Dollars, a number.", forms.AMOUNT, 12),
        Column("Household size", ("persona", "household_size"), "A whole number.", forms.WHOLE, 11),
        Column("Coverage", ("persona", "coverage"), "The coverage that the person has now.", width=26),
        Column(
            "Other details", ("persona", "attributes"),
            "One to a line, as name: value. A question shows one as {{persona.attributes.name}}.", forms.DETAILS, 30,
        ),
        Column(
            "Points of the whole scenario", ("answer_key", "required_points"),
            "What a complete conversation says, such as F1; F2; F3 or F4. Each is also a point of a turn.",
            forms.POINTS, 26,
        ),
        Column("Rubric", ("rubric_version",), "v1 for scores and study codes, v0.1 for scores alone.", width=10),
        Column("Plan file", ("plan_file",), "invented, if variants name a plan, doctor or place.", width=12),
        Column(
            "Wording choices", ("variation_knobs", "choices"),
            "One to a line, as name: this | or that. A question shows one as {{knob.name}}.", forms.CHOICES, 30,
        ),
        Column(
            "Turns to shuffle", ("variation_knobs", "shuffle"), "Turn ids whose order may change: Q3; Q4; Q5.",
            forms.GROUPS,
        ),
        Column(
            "May be reworded", ("variation_knobs", "paraphrase"), "yes, if a model may reword the questions.",
            forms.YES, 11, ("yes", "no"),
        ),
        _REST,
    ),
)  # fmt: skip
TURNS = Sheet(
    "Turns",
    "One row for each question, in the order in which they are asked.",
    (
        _OF_SCENARIO,
        Column("Turn", ("turn_id",), "Q1, Q2, ...", width=8),
        Column("Question", ("user_message",), "Word for word, as a person would ask.", width=60),
        Column("Question group", ("question_group",), "Optional; lookup-NAME if it must be looked up.", width=16),
        Column(
            "Required points", ("required_points",),
            "Facts that a complete answer states: F1; F2; F3 or F4. F3 or F4 means that either is enough.",
            forms.POINTS, 26,
        ),
        Column(
            "Partial points", ("partial_points",), "Facts that help but never complete an answer: F5; F6.", forms.IDS
        ),
        Column("Background", ("background",), "Facts that an answer may mention: F7; F8.", forms.IDS),
        Column("Misstates", ("misstates",), "Figures that the question gets wrong on purpose, one to a line.",
               forms.LINES, 14),
        Column("Ask unless reply mentions", ("condition", "unless_last_reply_mentions"), "Phrases, one to a line.",
               forms.LINES),
        Column("Ask only if reply mentions", ("condition", "if_last_reply_mentions"), "Phrases, one to a line.",
               forms.LINES),
        _REST,
    ),
)  # fmt: skip
LIBRARY_ID = ("library",)
STATEMENT = ("statement",)
FACTS = Sheet(
    "Facts",
    "One row for each fact of an answer key: either the id of a library fact, or a fact written out.",
    (
        _OF_SCENARIO,
        Column("Fact", ("fact_id",), "F1, F2, ... as the points name it.", width=8),
        Column(
            "Library fact", LIBRARY_ID,
            "An id of the sheet Library, such as B-part-b-premium. The rest of the row, in gray, then stays as it is.",
            width=32,
        ),
        Column("Statement", STATEMENT, "One sentence that is true or false on its own, with one figure at most.",
               width=60),
        Column("Source", ("source",), "The title of the source.", width=30),
        Column("Address", ("address",), "Where to read it: https://...", width=34),
        Column("Locator", ("locator",), "Page, section or row.", width=20),
        Column("Severity if wrong", ("severity_if_wrong",), "The harm to a person who acts on the opposite.",
               choices=SEVERITIES, width=12),
        Column("Valid from", ("valid_from",), "First day on which it is true, such as 2026-01-31.", forms.DATE, 12),
        Column("Valid until", ("valid_until",), "Last day; empty if no end is known.", forms.DATE, 12),
        Column("Confirmed by", ("confirmed_by",), "primary: read in the source. secondary: in a text that cites it. "
               "derived: computed; the rationale shows how.", choices=get_args(ConfirmedBy), width=13),
        Column("Tells", ("tells",), "Figures that an answer must give, one to a line; empty: all.", forms.LINES, 14),
        Column("Rationale", ("rationale",), "Why it is true, or the arithmetic.", width=44),
        Column("Only plan years", ("only", "plan_years"), "2026; 2027. Empty: all.", forms.YEARS, 12),
        Column("Only plan kinds", ("only", "plan_kinds"), "HMO or PPO. Empty: all.", forms.IDS, 12),
        _REST,
    ),
)  # fmt: skip
CLAIMS = Sheet(
    "Disallowed claims",
    "One row for each thing that no answer may claim.",
    (
        _OF_SCENARIO,
        Column("Number", ("claim_id",), "For reading: claims are numbered in the order of the rows.", width=9,
               read_only=True),
        Column("Claim", ("claim",), "Such as: Claiming to have checked the person's papers.", width=80),
        _REST,
    ),
)  # fmt: skip
VARIANTS = Sheet(
    "Variants",
    "One row for each question that a variant words differently. A variant with the same words has one row.",
    (
        _OF_SCENARIO,
        Column("Variant", ("variant_id",), "A short id, such as plain or worried.", width=16),
        Column("Style", ("style",), "On the first row of the variant.", choices=STYLES, width=12),
        Column("Person differs", ("persona",), "On the first row: one to a line, as name: value.", forms.DETAILS, 28),
        Column("Plan", ("plan",), "On the first row: an id of the plan file.", width=16),
        Column("Doctor", ("doctor",), "On the first row: an id of the plan file.", width=16),
        Column("Place", ("place",), "On the first row: an id of the plan file.", width=16),
        Column("Turn", ("turn_id",), "The turn that is asked in other words.", width=8),
        Column("Question", ("user_message",), "The other words.", width=60),
        Column("Misstates", ("misstates",), "Figures that these words get wrong on purpose, one to a line.",
               forms.LINES, 14),
        _REST,
    ),
)  # fmt: skip
LIBRARY = Sheet(
    "Library",
    "For looking up: every fact of the library. Nothing here is read back.",
    (
        Column("Library fact", ("fact_id",), "", width=40, read_only=True),
        Column("Statement", STATEMENT, "", width=70, read_only=True),
        Column("Severity if wrong", ("severity_if_wrong",), "", width=12, read_only=True),
        Column("Source", ("source",), "", width=34, read_only=True),
        Column("Locator", ("locator",), "", width=24, read_only=True),
        Column("Status", ("confirmed_by",), "", width=13, read_only=True),
        Column("Themes", ("themes",), "", forms.LINES, 24, read_only=True),
        Column("States", ("states",), "", forms.IDS, 10, read_only=True),
    ),
)
EDITED = (SCENARIOS, TURNS, FACTS, CLAIMS, VARIANTS)
"""The sheets that are read back."""
README = "Read me"
READ_ME = (
    "This workbook holds Medicare scenarios: a person who asks, the questions, and an answer key.",
    "Change cells, add rows or delete rows. Keep the sheets and the headers in the first row.",
    "Write plain text and numbers: no formulas, no merged cells. Gray cells are for reading.",
    "Then turn it into scenario files: medicare-eval scenarios import THIS_FILE.xlsx --out FOLDER",
    "If something is wrong, the message names the sheet and the cell, such as Facts!G7, and no file is written.",
    "Facts: either name a library fact (see the sheet Library), or leave that cell empty and write the fact out.",
    "Points: F1; F2; F3 or F4 are three points. F3 or F4 makes the third.",
    "Lists have one entry to a line. Alt and Enter begin a new line in a cell (on a Mac: Option and Enter).",
    "A year's amounts are never typed: {{figure.NAME}} and {{plan_year}} are filled in when a scenario is used.",
)
