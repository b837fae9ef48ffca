"""System prompts: read from `prompts/`, filled strictly, fingerprinted.

A template may hold `{{output_schema}}` and nothing else in double braces. A slot without a value, or a value without
a slot, is an error: a prompt that silently lost a part would still get answers.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import ConfigError
from ..schemas import (
    ROLES,
    SLOT,
    AdjudicatorReply,
    ExtractorReply,
    Prompt,
    QuestionerOutput,
    Record,
    Role,
    ScorerReply,
    VerifierOutput,
)
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from ..text import fence

REPLY_TYPES: dict[Role, type[Record]] = {
    "questioner": QuestionerOutput,
    "extractor": ExtractorReply,
    "verifier": VerifierOutput,
    "scorer": ScorerReply,
    "adjudicator": AdjudicatorReply,
}
"""What each role's model must answer with."""


def load_prompts() -> dict[Role, Prompt]:
    """Every role's prompt, filled and ready to be sent, with the fingerprint of its file."""
    return {role: _load(data_folder("prompts") / f"{role}_system.txt", role) for role in REPLY_TYPES}


def _load(path: Path, role: Role) -> Prompt:
    try:
        template = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}). Each of the {len(ROLES)} roles needs a prompt.") from None
    return Prompt(sha256=sha256(template), text=fill(template, path.name, reply_schema(role)))


def fill(template: str, name: str, schema: dict[str, object]) -> str:
    slots = set(SLOT.findall(template))
    rest = SLOT.sub("", template)
    if slots != {"output_schema"} or "{{" in rest or "}}" in rest:
        raise ConfigError(
            f"prompts/{name} has the slots {sorted(slots)}. It must have {{{{output_schema}}}} and no other."
        )
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return SLOT.sub(lambda match: text, template)


def reply_schema(role: Role) -> dict[str, object]:
    """The JSON Schema a role's model must answer to."""
    return fence.reply_schema(REPLY_TYPES[role])
