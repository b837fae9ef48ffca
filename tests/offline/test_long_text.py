"""Very long replies of one repeated piece do not hang the reader of figures or the offline judge.

Work that grows with the square of the length would take hours here. The time limit only ends such a hang.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import ROOT

FIGURES = ["1,111", "9", "1-", "$", "one hundred ", "October ", "1/", "(800) ", "%", "20 to ", "-", "a "]
REPLIES = ["a, and the part ", "no ", "Dr. A ", "i can not ", "| ", "*", "[x", "a. ", "is; is "]
HANG_S = 900


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "pieces", "length"),
    [
        ("from src.text.figures import figures as read", FIGURES, 300_000),
        ("from tests.offline.test_rules import claims_of as read", REPLIES, 150_000),
    ],
    ids=["figures", "claims"],
)
def test_a_very_long_reply_of_one_piece_is_read_to_its_end(read: str, pieces: list[str], length: int) -> None:
    code = (
        f"{read}\nfor piece in {pieces!r}:\n    read(piece * ({length} // len(piece)))\n    print('read', repr(piece))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.stdout.splitlines() == [f"read {piece!r}" for piece in pieces]
