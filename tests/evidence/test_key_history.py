"""The signed history of a log's keys: who trusts one of them learns the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from countersign.evidence.checkpoint import Checkpoint
from countersign.evidence.errors import EvidenceError
from countersign.evidence.key_history import (
    KeyHistory,
    KeyRange,
    check_history,
    sign_history,
)
from countersign.evidence.note import MLDSA_COSIGNATURE, Signer, sign_checkpoint

ORIGIN = "log.example.com:8443/v1/log/live/1"
OLD, NEW, THIEF = (Signer.from_seed(ORIGIN, bytes([n]) * 32) for n in (1, 2, 3))
PQ = Signer.from_seed(ORIGIN, bytes([4]) * 32, MLDSA_COSIGNATURE)


def history(*ranges: tuple[int, int | None, Signer]) -> KeyHistory:
    return KeyHistory(ORIGIN, tuple(KeyRange(a, b, key.verifier) for a, b, key in ranges))


HISTORY = history((0, 40, OLD), (30, None, NEW), (30, None, PQ))


def test_it_is_two_lines_and_one_for_each_key() -> None:
    """The exact bytes of the format."""
    text = sign_history(HISTORY, [NEW, OLD]).partition(b"\n\n")[0].decode()
    assert text == (
        f"log.example.com:8443/keys/v1\n{ORIGIN}\n0 40 {OLD.verifier.vkey}\n"
        f"30 - {NEW.verifier.vkey}\n30 - {PQ.verifier.vkey}"
    )


def test_who_trusts_one_key_learns_the_others_and_their_sizes() -> None:
    """With the oldest, or with the newest."""
    note = sign_history(HISTORY, [NEW, OLD])
    for trusted in (OLD, NEW):
        assert check_history(note, [trusted.verifier]) == HISTORY
    counted = [HISTORY.counts(OLD.verifier, size) for size in (0, 40, 41)]
    assert counted == [True, True, False]
    assert [HISTORY.counts(NEW.verifier, size) for size in (29, 30, 10**9)] == [False, True, True]
    assert not HISTORY.counts(THIEF.verifier, 35)


def rewritten(old: str, new: str, signers: Sequence[Signer] = (NEW, OLD)) -> bytes:
    """A history whose text was changed before it was signed."""
    text = sign_history(HISTORY, []).removesuffix(b"\n").replace(old.encode(), new.encode())
    return text + b"\n" + b"".join(signer.sign(text) for signer in signers)


BROKEN = {
    "by no key that is trusted": sign_history(HISTORY, [NEW]),
    "not by the newest key": sign_history(HISTORY, [OLD]),
    "changed": sign_history(HISTORY, [NEW, OLD]).replace(b"0 40 ", b"0 41 "),
    "a leading zero": rewritten("30 - ", "030 - "),
    "of another log": rewritten("live/1\n", "live/2\n"),
    "of another host": rewritten("8443/keys", "8444/keys"),
    "another kind of text": rewritten("/keys/v1", "/receipt/v1"),
    "a blank too many": rewritten("0 40 ", "0 40  "),
    "a checkpoint": sign_checkpoint(Checkpoint(ORIGIN, 0, bytes(32)), [NEW, OLD]),
    "of no key": sign_history(history(), [NEW, OLD]),
    "of a key of another name": sign_history(
        history((0, None, Signer.from_seed("other.example", bytes(32))), (0, None, NEW)),
        [NEW, OLD],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_another_history_is_refused(name: str) -> None:
    """Trusting the oldest key."""
    with pytest.raises(EvidenceError):
        check_history(BROKEN[name], [OLD.verifier])


def test_a_thief_of_an_old_key_changes_no_history_that_others_keep() -> None:
    """They can sign one of their own; with the archived one the old key counts no further."""
    stolen = sign_history(history((0, None, OLD)), [OLD])
    assert check_history(stolen, [OLD.verifier]).counts(OLD.verifier, 50)
    assert not check_history(sign_history(HISTORY, [NEW, OLD]), [OLD.verifier]).counts(
        OLD.verifier, 50
    )
    with pytest.raises(EvidenceError):
        check_history(stolen, [NEW.verifier])
