"""The last published checkpoint, kept outside the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.domain.mode import Mode
from countersign.evidence.checkpoint import Checkpoint, sign_checkpoint
from countersign.evidence.note import Signer
from countersign.storage.heads import HeadFiles


def note(epoch: int, size: int, host: str = "example.com") -> bytes:
    origin = f"{host}/v1/log/live/{epoch}"
    return sign_checkpoint(Checkpoint(origin, size, bytes(32)), [Signer(origin, bytes(32))])


@pytest.mark.parametrize(
    ("kept", "offered", "taken"),
    [
        (note(1, 5), note(1, 6), True),
        (note(1, 5), note(1, 4), False),
        (note(1, 5), note(2, 0), True),
        (note(2, 0), note(1, 6), False),
        (note(9, 3), note(10, 0), True),
        (note(1, 5), note(2, 0, host="new.example.com"), True),
    ],
)
def test_only_a_later_checkpoint_takes_the_place_of_the_kept_one(
    tmp_path: Path, kept: bytes, offered: bytes, taken: bool
) -> None:
    """A server that has not noticed a new epoch must not put the head of the old log back."""
    heads = HeadFiles(tmp_path)
    heads.replace(Mode.LIVE, kept)
    heads.advance(Mode.LIVE, offered)
    assert heads.read(Mode.LIVE) == (offered if taken else kept)
