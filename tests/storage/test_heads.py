"""The last published checkpoint, kept outside the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.base.errors import HeadUnavailable
from countersign.base.values import Mode
from countersign.core.log.head_files import HeadFiles
from countersign_evidence.note import Checkpoint, Signer, sign_checkpoint


def note(
    epoch: int, size: int, *, mode: Mode = Mode.LIVE, root: int = 0, host: str = "example.com"
) -> bytes:
    origin = f"{host}/v1/log/{mode.value}/{epoch}"
    signer = Signer.from_seed(origin, bytes(32))
    return sign_checkpoint(Checkpoint(origin, size, bytes([root] * 32)), [signer])


@pytest.mark.parametrize("kept", [None, note(1, 5)])
def test_a_process_that_compared_the_head_replaces_it(tmp_path: Path, kept: bytes | None) -> None:
    """The first one, too."""
    heads = HeadFiles(tmp_path / "heads")
    if kept is not None:
        heads.advance(Mode.LIVE, kept, None)
    assert heads.advance(Mode.LIVE, note(1, 6), kept)
    assert heads.read(Mode.LIVE) == note(1, 6)
    assert heads.read(Mode.TEST) is None


@pytest.mark.parametrize("kept", [None, note(1, 4), note(1, 7), note(2, 0)])
def test_another_processs_later_head_stays(tmp_path: Path, kept: bytes | None) -> None:
    """It was not compared with the database yet: it may be later, or of a new epoch."""
    heads = HeadFiles(tmp_path)
    if kept is not None:
        heads.advance(Mode.LIVE, kept, None)
    assert not heads.advance(Mode.LIVE, note(1, 6), note(1, 5))
    assert heads.read(Mode.LIVE) == kept


def test_how_much_was_accepted_only_grows_until_the_operator_decides(tmp_path: Path) -> None:
    """Another process may be late to note less; a later log counts from its beginning."""
    heads = HeadFiles(tmp_path)
    assert heads.accepted(Mode.TEST) is None
    for place, kept in (((2, 5), (2, 5)), ((2, 4), (2, 5)), ((3, 1), (3, 1)), ((2, 9), (3, 1))):
        heads.accept(Mode.TEST, *place)
        assert heads.accepted(Mode.TEST) == kept
    assert heads.accepted(Mode.LIVE) is None
    heads.forget_accepted(Mode.TEST)
    assert heads.accepted(Mode.TEST) is None
    (tmp_path / "test.accepted").write_bytes(b"no size")
    assert heads.accepted(Mode.TEST) is None


def test_a_damaged_file_is_not_replaced(tmp_path: Path) -> None:
    """Only the operator can know its content, and names it."""
    heads = HeadFiles(tmp_path)
    (tmp_path / "live.checkpoint").write_bytes(b"no checkpoint")
    with pytest.raises(HeadUnavailable):
        heads.read(Mode.LIVE)
    assert not heads.advance(Mode.LIVE, note(1, 6), None)
    assert heads.stored(Mode.LIVE) == b"no checkpoint"
    assert heads.advance(Mode.LIVE, note(1, 6), heads.stored(Mode.LIVE))
    assert heads.read(Mode.LIVE) == note(1, 6)


def test_a_size_is_noted_in_the_directory_that_is_there_now(tmp_path: Path) -> None:
    """A restore may have replaced it under a running process."""
    heads = HeadFiles(tmp_path / "heads")
    for size in (5, 3):
        heads.named_place()
        heads.accept(Mode.TEST, 1, size)
        assert heads.accepted(Mode.TEST) == (1, size)
        (tmp_path / "heads").rename(tmp_path / f"moved {size}")
    heads.accept(Mode.TEST, 1, 9)
    assert heads.accepted(Mode.TEST) is None
