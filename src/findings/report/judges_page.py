"""The page of two judgings of the same transcripts: which labels and codes changed, and why."""

from __future__ import annotations

from ...text.count import counted
from ...text.rounded import percent
from ..analysis.compare_judges import Change, ChangedCode, JudgesCompared, Side
from .analysis_pages import Page, caveat, methods_section, notice_sections
from .document import (
    Block,
    Bullets,
    Cell,
    Column,
    Count,
    Entry,
    Exhibit,
    Paragraph,
    Passage,
    Piece,
    Section,
    Table,
    Text,
    Words,
    say,
    words,
)

SHOWN = 200
"""Changed claims, and changed codes, on the page."""
JUDGES_NOTE = (
    "Both runs judged the same replies. Claims may have been extracted again, so they are matched within a reply by "
    "what they quote. A claim that matches none of the other run is counted as only in its own."
)


def judges_page(found: JudgesCompared, *, first: str, second: str) -> Page:
    """`first` and `second` name the two runs."""
    return Page(
        "Do two judgings of the same answers agree?",
        say("Run ", Text(first), " and run ", Text(second), "."),
        (Paragraph(judges_sentence(found), "answer"), caveat((), found.notices)),
        (
            Section(words("What differs between the judgings"), (Bullets(_differences(found)),), short="Differences"),
            Section(words("Labels of claims"), (_moves(found), *_claims(found))),
            Section(words("Study codes of questions"), (_codes(found), *_changed_codes(found))),
            methods_section((JUDGES_NOTE,)),
            *notice_sections(found.notices),
        ),
    )


def judges_sentence(found: JudgesCompared) -> tuple[Cell, ...]:
    total, changed = found.same + len(found.changed), len(found.changed)
    codes = sum(found.codes_changed.values())
    share = f" ({percent(changed / total)}%)" if total else ""
    return words(
        f"Of {counted(total, 'claim')} in both judgings of {counted(found.trials, 'trial')}, {changed:,} got another "
        f"label{share}; of {counted(found.codes_same + codes, 'question')}, {codes:,} got another code."
    )


def _differences(found: JudgesCompared) -> tuple[tuple[Cell, ...], ...]:
    return tuple((Text(one),) for one in found.differences) or (words("no known change"),)


def _moves(found: JudgesCompared) -> Table:
    rows = tuple(
        (Text(str(one.first)), Text(str(one.second)), Count(n))
        for one, n in sorted(found.moves.items(), key=lambda move: (-move[1], str(move[0])))
    )
    caption = f"Labels of matched claims; {found.gone:,} only in the first run, {found.new:,} only in the second"
    return Table(caption, (Column("first", "text"), Column("second", "text"), Column("claims")), rows)


def _claims(found: JudgesCompared) -> list[Block]:
    return [*_cut(len(found.changed), "changed claim"), *(_claim(one) for one in found.changed[:SHOWN])]


def _cut(n: int, what: str) -> list[Block]:
    return [Paragraph(words(f"{SHOWN} of {n:,} {what}s shown; --json has all."))] if n > SHOWN else []


def _claim(one: Change) -> Exhibit:
    title = say(
        Text(one.trial_id, code=True), " ", Text(one.turn_id), ": ",
        Text(str(one.before.label)), " → ", Text(str(one.after.label)),
    )  # fmt: skip
    quote = Passage((Piece(one.quote, False),)) if one.quote else Words("no quote")
    return Exhibit(title, (Entry("quote", (quote,)), *_side("first", one.before), *_side("second", one.after)))


def _side(name: str, side: Side) -> tuple[Entry, ...]:
    evidence = Entry(name, say(Text(str(side.label)), " (", Text(", ".join(side.evidence) or "–"), ")"))
    return (evidence, *(Entry("reason", (Text(reason),)) for reason in side.reasons))


def _codes(found: JudgesCompared) -> Table:
    rows = tuple(
        (Text(one.question_group), Text(one.first), Text(one.second), Count(n))
        for one, n in sorted(found.codes_changed.items(), key=lambda change: (-change[1], str(change[0])))
    )
    columns = (Column("question", "text"), Column("first", "text"), Column("second", "text"), Column("trials"))
    return Table(f"Changed codes; {found.codes_same:,} are the same", columns, rows)


def _changed_codes(found: JudgesCompared) -> list[Block]:
    return [*_cut(len(found.changed_codes), "changed code"), *(_code(one) for one in found.changed_codes[:SHOWN])]


def _code(one: ChangedCode) -> Exhibit:
    title = say(
        Text(one.trial_id, code=True), " ", Text(one.question_group), ": ",
        Text(str(one.before)), " → ", Text(str(one.after)),
    )  # fmt: skip
    return Exhibit(
        title,
        (Entry("first", (Text(one.reason_before or "–"),)), Entry("second", (Text(one.reason_after or "–"),))),
    )
