"""One short call in every format that can be imported. The words are invented."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import dataclass
from xml.sax.saxutils import escape

from src.api.transcripts import load_script
from src.inputs.transcripts.utterances import AskedScript
from tests.runs import ONE


@dataclass(frozen=True)
class Line:
    who: str
    text: str


CALL = (
    Line("Counselor", "Good morning, this is the insurance assistance program. How can I help?"),
    Line("Caller", "Hello, I have some questions about Medicare."),
    Line("Counselor", "Of course, go ahead."),
    Line("Caller", "I just turned 65 and signed up for Medicare. I'm trying to decide between Original Medicare and Medicare Advantage. What's the difference?"),
    Line("Counselor", "Original Medicare has no network. Medicare Advantage plans usually do."),
    Line("Caller", "Okay, I see."),
    Line("Counselor", "The Part B premium is two hundred two dollars and ninety cents a month."),
    Line("Caller", "If I try Medicare Advantage first and don't like it, when can I go back to Original Medicare? And could I buy a Medigap policy then?"),
    Line("Counselor", "You have a trial right for twelve months. Call 1-800-633-4227 before December 7."),
    Line("Caller", "And what's the most I could pay out of pocket in a year with each of the two in 2026?"),
    Line("Counselor", "At most $9,250 in the network. You can reach me at 615-555-0142."),
)  # fmt: skip
REPLIES = {
    "Q1": "Original Medicare has no network. Medicare Advantage plans usually do. The Part B premium is two hundred two "
    "dollars and ninety cents [$202.90] a month.",
    "Q2": "You have a trial right for twelve months. Call 1-800-633-4227 before December 7.",
    "Q3": None,
    "Q4": "At most $9,250 in the network. You can reach me at [PHONE 1].",
}


def script() -> AskedScript:
    return load_script(ONE, plan_year=2026)


def as_text() -> bytes:
    lines = [f"[00:00:{number:02}] {line.who}: {line.text}" for number, line in enumerate(CALL)]
    return "\n".join(lines).encode()


def as_csv() -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["time", "speaker", "text", "confidence"])
    for number, line in enumerate(CALL):
        writer.writerow([f"00:00:{number:02}", line.who, line.text, "0.9"])
    return out.getvalue().encode()


def _stamp(number: int, mark: str) -> str:
    return f"00:00:{number:02}{mark}000 --> 00:00:{number + 1:02}{mark}000"


def as_vtt() -> bytes:
    cues = [f"{_stamp(number, '.')}\n<v {line.who}>{line.text}</v>" for number, line in enumerate(CALL)]
    return ("WEBVTT\n\n" + "\n\n".join(cues) + "\n").encode()


def as_srt() -> bytes:
    """Cues are cut in the middle of a sentence, and only the first cue of a speaker has a name."""
    cues = []
    for line in CALL:
        words = line.text.split()
        half = len(words) // 2 or 1
        cues += [f"{line.who}: {' '.join(words[:half])}", " ".join(words[half:])]
    return "\r\n\r\n".join(
        f"{number}\r\n{_stamp(number, ',')}\r\n{cue}" for number, cue in enumerate(cues, 1) if cue.strip()
    ).encode("utf-16")


def as_docx() -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    paragraphs = "".join(
        f"<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>{line.who}:</w:t></w:r><w:r><w:t> {escape(line.text)}</w:t></w:r></w:p>"
        for line in CALL
    )
    return docx(f'<w:document xmlns:w="{space}"><w:body>{paragraphs}</w:body></w:document>')


def docx(xml: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml)
    return out.getvalue()


def as_whisper() -> bytes:
    segments = [
        {"id": number, "start": number, "end": number + 1, "text": f" {line.text}", "avg_logprob": -0.1,
         "speaker": f"SPEAKER_{line.who == 'Caller':02}",
         "words": [{"word": f" {word}", "probability": 0.2 if word == "trial" else 0.9} for word in line.text.split()]}
        for number, line in enumerate(CALL)
    ]  # fmt: skip
    return json.dumps({"text": "", "language": "en", "segments": segments}).encode()


def as_whisper_without_speakers() -> bytes:
    segments = [
        {"start": number, "end": number + 1, "text": f" {line.text}", "avg_logprob": -0.1}
        for number, line in enumerate(CALL)
    ]
    return json.dumps({"text": "", "segments": segments}).encode()


def as_aws() -> bytes:
    items, labels, at = [], [], 0.0
    for line in CALL:
        speaker = f"spk_{int(line.who == 'Caller')}"
        timed = []
        for word in line.text.split():
            bare = word.rstrip(".,?")
            start = f"{at:.2f}"
            items.append({"start_time": start, "end_time": f"{at + 0.2:.2f}", "type": "pronunciation",
                          "alternatives": [{"confidence": "0.35" if bare == "trial" else "0.99", "content": bare}]})  # fmt: skip
            timed.append({"start_time": start, "speaker_label": speaker})
            items += [
                {"type": "punctuation", "alternatives": [{"confidence": "0.0", "content": mark}]}
                for mark in word[len(bare) :]
            ]
            at += 0.25
        labels.append({"speaker_label": speaker, "items": timed})
    return json.dumps(
        {"jobName": "x", "results": {"transcripts": [], "items": items, "speaker_labels": {"segments": labels}}}
    ).encode()


def as_chat() -> bytes:
    names = {"Caller": "You said:", "Counselor": "ChatGPT said:"}
    return "\n".join(f"{names[line.who]}\n{line.text}\n" for line in CALL).encode()


def as_messages() -> bytes:
    roles = {"Caller": "user", "Counselor": "assistant"}
    return json.dumps([{"role": roles[line.who], "content": line.text} for line in CALL]).encode()


FORMATS = {
    "call.txt": as_text, "call.csv": as_csv, "call.vtt": as_vtt, "call.srt": as_srt, "call.docx": as_docx,
    "whisper.json": as_whisper, "plain_whisper.json": as_whisper_without_speakers, "aws.json": as_aws,
    "chat.txt": as_chat, "messages.json": as_messages,
}  # fmt: skip
