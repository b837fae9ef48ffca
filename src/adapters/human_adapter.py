"""`human:r1`: a person who judges under a pseudonym. Nobody is called here: calls to people wait in `calls.people`."""

from __future__ import annotations

import re

from ..errors import InputError
from .base import CallFailure, ModelReply, ModelRequest

_NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
PSEUDONYMS = "Use up to 30 small letters, digits and hyphens, such as r1."


def is_pseudonym(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


class HumanAdapter:
    def check(self, model: str) -> None:
        people = model.split("+")
        for name in people:
            if not is_pseudonym(name):
                raise InputError(f"human:{model[:80]}: {name[:40]!r} is not a pseudonym. {PSEUDONYMS}")
        if len(set(people)) < len(people):
            raise InputError(f"human:{model[:80]} names somebody twice.")

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        raise CallFailure("permanent", "a person is not called; a run with people asks them in a form")

    async def aclose(self) -> None:
        """Nothing to close."""
