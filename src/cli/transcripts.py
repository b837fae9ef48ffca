"""`import-transcripts` and `collect`: conversations without an API, shown for confirmation before they are saved."""

from __future__ import annotations

import argparse
import shlex
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from ..api import transcripts as api
from ..errors import IncompleteRun, InputError
from ..inputs.transcripts.assemble import ConversationDraft
from ..inputs.transcripts.collect import CollectSession
from ..inputs.transcripts.read_file import decoded
from ..inputs.transcripts.redact import PersonalDetail
from ..inputs.transcripts.utterances import AskedScript
from ..records.model_name import PSEUDONYMS, is_pseudonym
from ..store.input_files import read_bytes
from ..text.count import counted
from ..text.escape import plain
from . import tables
from .options import own
from .review import place_for

SHOWN = 48
"""Characters of a question in a table."""
LOOPBACK = "127.0.0.1"
COMMANDS = "/skip (not asked), /no-reply, /undo, /quit"


def import_transcripts(arguments: argparse.Namespace) -> int:
    elsewhere = "scenario variant plan_year facts invented_plans yes"
    made = api.draft_transcripts(script=_script(arguments), **own(arguments, without=elsewhere))
    print("\n\n".join(_shown(one) for one in made.drafts))
    print(f"\n{_CONSENT}")
    if not arguments.yes and not _confirmed(f"Save {counted(len(made.drafts), 'conversation')} to {made.folder}?"):
        print("Nothing was saved.")
        return 0
    for path in api.save_transcripts(made):
        print(path)
    target = shlex.join(["--scenario", arguments.scenario, "--target", f"transcript:{made.folder}"])
    print(f"To judge what was said: medicare-eval run {target}")
    return 0


_CONSENT = "You are responsible for the consent of the people in these conversations."


def _script(arguments: argparse.Namespace) -> AskedScript:
    return api.load_script(
        arguments.scenario,
        arguments.variant,
        plan_year=arguments.plan_year,
        facts=arguments.facts,
        invented_plans=arguments.invented_plans,
    )


def _shown(one: ConversationDraft) -> str:
    """What a person confirms: who asks, which words are which question, and what is redacted."""
    conversation, alignment = one.conversation, one.alignment
    how = "recognized by the scripted questions" if alignment.recognized else "as given"
    lines = [
        f"{conversation.source.name} ({conversation.source.format}): {conversation.scenario_name}, "
        f"{conversation.kind}, {conversation.system}. Caller: {plain(alignment.caller)!r}, {how}.",
        _turn_table(one),
    ]
    used = {call for match in alignment.matches for call in match.calls}
    rest = [
        f"  {number:>3}  {_first_words(alignment.utterances[index].text)}"
        for number, index in enumerate(alignment.calls, 1)
        if number not in used
    ]
    if rest:
        lines += ["The caller also said (no scripted question; correct with --map TURN=NUMBER):", *rest]
    lines.append(_redaction_table(one.findings, one.places) if one.findings else "Nothing personal was found.")
    figures = sum(len(turn.added_figures) for turn in conversation.turns)
    if figures:
        lines.append(f"{counted(figures, 'figure')} in square brackets put behind amounts spoken in words.")
    return "\n".join(lines)


def _turn_table(one: ConversationDraft) -> str:
    rows = []
    for match, turn in zip(one.alignment.matches, one.conversation.turns, strict=True):
        if turn.outcome == "not_asked":
            early = f"not asked; see {turn.answered_early}" if turn.answered_early else "not asked"
            rows.append([turn.turn_id, "", "", early, ""])
            continue
        calls = str(match.calls[0]) if len(match.calls) == 1 else f"{match.calls[0]}-{match.calls[-1]}"
        reply = counted(len((turn.reply or "").split()), "word") if turn.reply else "no reply"
        alike = f"{match.similarity:.2f}" if match.similarity else ""
        rows.append([turn.turn_id, calls, alike, _first_words(turn.question or ""), reply])
    return tables.plain_table(("turn", "words", "alike", "asked as", "reply"), rows, "lrrll")


def _redaction_table(findings: Sequence[PersonalDetail], places: dict[int, str] | None = None) -> str:
    rows = [[str(one.number), one.placeholder, one.hint, (places or {}).get(one.number, "reply")] for one in findings]
    return tables.plain_table(("no.", "redacted as", "was", "where"), rows, "rlll")


def _first_words(text: str) -> str:
    shown = plain(text)
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1].rstrip()}…"


def _confirmed(asked: str) -> bool:
    if not sys.stdin.isatty():
        raise InputError("No one is at the terminal to confirm this. Check the tables above, then add --yes.")
    return input(f"{asked} [y/N] ").strip().lower() in ("y", "yes")


def collect(arguments: argparse.Namespace) -> int:
    if arguments.status:
        return _status(arguments.to)
    if not arguments.scenario:
        raise InputError("--scenario is missing: name the scenario whose questions you want to ask.")
    if arguments.by is not None and not is_pseudonym(arguments.by):
        raise InputError(f"--by {arguments.by[:40]!r} is not a pseudonym. {PSEUDONYMS}")
    _check_browser(arguments)
    script = _script(arguments)
    session = api.collect_session(arguments.to, script=script, system=arguments.system, names=arguments.names)
    continued = "Continued" if session.resumed else "Begun"
    total = counted(len(script.turns), "question")
    print(f"{continued}: {script.name} with {plain(session.system)}, {total}. Every reply is saved at once.")
    if arguments.browser:
        return _on_a_page(session, arguments)
    if arguments.reply_file:
        _save_reply(session, decoded(read_bytes(arguments.reply_file), str(arguments.reply_file)))
        _show_question(session)
    elif not _ask_all(session):
        raise IncompleteRun(_left(arguments, session))
    if session.next_question() is not None:
        raise IncompleteRun(_left(arguments, session))
    return _finish(session, arguments)


def _status(folder: Path) -> int:
    found = api.unfinished_conversations(folder)
    for one in found:
        asked = counted(one.turns, "question")
        print(f"{one.scenario_name} with {plain(one.system)}: {asked} asked, begun {one.started}")
    print(f"{folder}: {counted(len(found), 'unfinished conversation')}.")
    return 0


def _left(arguments: argparse.Namespace, session: CollectSession) -> str:
    done, total = len(session.turns), len(session.script.turns)
    variant = ["--variant", arguments.variant] if arguments.variant else []
    page = ["--browser"] if arguments.browser else []
    again = shlex.join(
        ["medicare-eval", "collect", "--scenario", arguments.scenario, *variant, "--to", str(arguments.to), *page]
    )
    return f"The conversation is not finished: {done} of {total} questions done. To continue: {again}"


def _check_browser(arguments: argparse.Namespace) -> None:
    if not arguments.browser and (arguments.port or not arguments.open):
        raise InputError("--port and --no-open are about a page. Add --browser.")
    if arguments.browser and (arguments.reply_file or arguments.yes):
        raise InputError("--reply-file and --yes are for the terminal. Leave them out, or leave out --browser.")


def _on_a_page(session: CollectSession, arguments: argparse.Namespace) -> int:
    """Serve the page of a conversation until Ctrl-C."""
    with place_for(arguments.port, LOOPBACK) as place:
        from ..workbench.collect_app import CollectApp
        from ..workbench.serve import access_for, link, serve

        variant = ["--variant", arguments.variant] if arguments.variant else []
        target = ["--target", f"transcript:{arguments.to}"]
        to_judge = shlex.join(["medicare-eval", "run", "--scenario", arguments.scenario, *variant, *target])

        def finished(path: Path) -> None:
            print(f"{path}\nTo judge it: {to_judge}\nEnd this program with Ctrl-C.", flush=True)

        pages = CollectApp(session, redacted_by=arguments.by or "rules", to_judge=to_judge, on_finish=finished)
        access = access_for([""], place)
        address = link(place, next(iter(access.links)))
        print(f"{arguments.to}: open {address}")
        print("The link works until this program ends. Stop it with Ctrl-C: every saved reply is kept.", flush=True)
        if arguments.open:
            webbrowser.open(address)
        serve(pages.app(), place, access)
    if not pages.written:
        raise IncompleteRun(_left(arguments, session))
    return 0


def _show_question(session: CollectSession) -> None:
    question = session.next_question()
    if question is None:
        return
    number = len(session.turns) + 1
    print(f"\n{question.turn_id} ({number} of {len(session.script.turns)}). Paste this into the app:\n")
    print(question.user_message)


def _ask_all(session: CollectSession) -> bool:
    """Ask until the end; False if the person stops before."""
    while session.next_question() is not None:
        _show_question(session)
        print(f"\nPaste the reply, and end it with a line that has only a period. Or: {COMMANDS}.", flush=True)
        try:
            text = _pasted()
        except KeyboardInterrupt:
            return False
        if text is None or text.strip() == "/quit":
            return False
        _take(session, text)
    return True


def _take(session: CollectSession, text: str) -> None:
    command = text.strip()
    if command == "/skip":
        session.skip()
    elif command == "/no-reply":
        session.no_reply()
    elif command == "/undo":
        removed = session.undo()
        print(f"Taken back: {removed}." if removed else "There is nothing to take back.")
    elif not command:
        print("The reply is empty. Use /no-reply if the app gave none.")
    else:
        _save_reply(session, text)


def _pasted() -> str | None:
    """Lines up to one with only a period; a command needs none. None at the end of the input."""
    lines: list[str] = []
    for raw in sys.stdin:
        line = raw.rstrip("\r\n")
        if line == ".":
            return "\n".join(lines)
        if not lines and line.strip() in ("/skip", "/no-reply", "/undo", "/quit"):
            return line.strip()
        lines.append(line)
    return None


def _save_reply(session: CollectSession, text: str) -> None:
    found = session.check(text)
    keep: list[int] = []
    if found.findings:
        print(_redaction_table(found.findings))
        if sys.stdin.isatty():
            typed = input("Numbers that are not personal and stay (Enter: none): ").replace(",", " ").split()
            keep = [int(one) for one in typed if one.isascii() and one.isdigit()]
    turn = session.answer(text, keep=keep)
    print(f"Saved: {turn.turn_id}, {counted(len((turn.reply or '').split()), 'word')}.", flush=True)


def _finish(session: CollectSession, arguments: argparse.Namespace) -> int:
    rows = [[turn.turn_id, turn.outcome, _first_words(turn.reply or "")] for turn in session.turns]
    print(tables.plain_table(("turn", "outcome", "reply, as it will be stored"), rows, "lll"))
    print(_CONSENT)
    if not arguments.yes and not _confirmed(f"Save the conversation to {arguments.to}?"):
        raise IncompleteRun(_left(arguments, session))
    print(session.finish(redacted_by=arguments.by or "rules"))
    return 0
