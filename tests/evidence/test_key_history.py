"""The signed history of a log's keys: trust in one key leads to the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from countersign_evidence.errors import EvidenceError
from countersign_evidence.key_history import (
    KeyHistory,
    KeyRange,
    check_checkpoint,
    check_history,
    keys_for,
    sign_history,
)
from countersign_evidence.note import MLDSA_COSIGNATURE, Checkpoint, Signer, sign_checkpoint
from countersign_evidence.policy import Policy, UnnamedKey

ORIGIN = "log.example.com:8443/v1/log/live/1"
OLD, NEW, THIEF = (Signer.from_seed(ORIGIN, bytes([n]) * 32) for n in (1, 2, 3))
PQ = Signer.from_seed(ORIGIN, bytes([4]) * 32, MLDSA_COSIGNATURE)


def history(*ranges: tuple[int, int | None, Signer]) -> KeyHistory:
    return KeyHistory(ORIGIN, tuple(KeyRange(a, b, key.verifier) for a, b, key in ranges))


HISTORY = history((0, 40, OLD), (30, None, NEW), (30, None, PQ))


def test_a_history_is_two_lines_and_one_for_each_key() -> None:
    """The exact bytes of the format."""
    text = sign_history(HISTORY, [NEW, OLD]).partition(b"\n\n")[0].decode()
    assert text == (
        f"log.example.com:8443/keys/v1\n{ORIGIN}\n0 40 {OLD.verifier.vkey}\n"
        f"30 - {NEW.verifier.vkey}\n30 - {PQ.verifier.vkey}"
    )


def test_trust_in_one_key_leads_to_the_others_and_their_sizes() -> None:
    """With the oldest, or with the newest."""
    note = sign_history(HISTORY, [NEW, OLD])
    for trusted in (OLD, NEW):
        assert check_history(note, [trusted.verifier]) == HISTORY
    counted = [HISTORY.counts(OLD.verifier, size) for size in (0, 40, 41)]
    assert counted == [True, True, False]
    assert [HISTORY.counts(NEW.verifier, size) for size in (29, 30, 10**9)] == [False, True, True]
    assert not HISTORY.counts(THIEF.verifier, 35)


def rewritten(old: str, new: str, signers: Sequence[Signer] = (NEW, OLD)) -> bytes:
    """A history whose text was changed before signing."""
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


def test_a_thief_of_an_old_key_cannot_change_histories_kept_by_others() -> None:
    """They can sign one of their own; with the archived one the old key counts no further."""
    stolen = sign_history(history((0, None, OLD)), [OLD])
    assert check_history(stolen, [OLD.verifier]).counts(OLD.verifier, 50)
    assert not check_history(sign_history(HISTORY, [NEW, OLD]), [OLD.verifier]).counts(
        OLD.verifier, 50
    )
    with pytest.raises(EvidenceError):
        check_history(stolen, [NEW.verifier])


def policy(*keys: Signer) -> Policy:
    return Policy(tuple(key.verifier for key in keys), (), {}, "none")


def checkpoint(size: int, *signers: Signer) -> bytes:
    return sign_checkpoint(Checkpoint(ORIGIN, size, bytes(32)), signers)


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 40, OLD), (30, 50, NEW), (51, None, THIEF)],
        [(0, 10, NEW), (11, 50, OLD), (51, None, THIEF)],
        [(0, 50, OLD), (51, None, THIEF)],
    ],
)
def test_a_thief_of_one_key_adds_none_for_readers_who_trust_another_one_too(
    ranges: Sequence[tuple[int, int | None, Signer]],
) -> None:
    """Whether the history lists the other one, and wherever it does."""
    stolen = sign_history(history(*ranges), [THIEF, OLD])
    with pytest.raises(EvidenceError, match="not every trusted key"):
        check_history(stolen, [OLD.verifier, NEW.verifier])
    with pytest.raises(UnnamedKey):
        check_checkpoint(checkpoint(60, THIEF), policy(OLD, NEW), [stolen])


THEN = history((0, None, OLD))
NEXT = history((0, 40, OLD), (30, 70, NEW), (71, None, THIEF))


def test_a_history_continues_the_one_known_before() -> None:
    """The newest known key signs it; a key that was lost meanwhile need not."""
    known = check_history(sign_history(THEN, [OLD]), [OLD.verifier])
    both = check_history(sign_history(HISTORY, [NEW, OLD]), [OLD.verifier], known)
    assert both == HISTORY
    later = history((0, 40, OLD), (30, 70, NEW), (30, None, PQ), (71, None, THIEF))
    assert check_history(sign_history(later, [THIEF, NEW]), [OLD.verifier], both) == later
    other = {
        "without the newest": sign_history(later, [THIEF, OLD]),
        "without a key": sign_history(NEXT, [THIEF, NEW, OLD]),
        "with another size": sign_history(
            history((0, 41, OLD), (30, None, NEW), (30, None, PQ)), [NEW, OLD]
        ),
        "shorter": sign_history(history((0, 40, OLD), (30, None, NEW)), [NEW, OLD]),
    }
    for name, note in other.items():
        with pytest.raises(EvidenceError):
            pytest.fail(f"{name}: {check_history(note, [OLD.verifier], both)}")


def test_a_key_counts_for_its_sizes_by_a_history_that_the_trusted_keys_signed() -> None:
    """By no other history; those known longer come first."""
    note = sign_history(HISTORY, [NEW, OLD])
    assert check_checkpoint(checkpoint(30, NEW), policy(OLD), [note]).key == NEW.verifier
    assert check_checkpoint(checkpoint(40, OLD), policy(NEW), [note]).key == OLD.verifier
    assert check_checkpoint(checkpoint(35, PQ), policy(OLD), [note]).key == PQ.verifier
    stolen = sign_history(history((0, 20, OLD), (21, None, THIEF)), [THIEF, OLD])
    refused = [
        (checkpoint(29, NEW), OLD, [note]),
        (checkpoint(41, OLD), NEW, [note]),
        (checkpoint(35, NEW), OLD, []),
        (checkpoint(35, NEW), OLD, [b"no history", sign_history(HISTORY, [NEW])]),
        (checkpoint(35, THIEF), OLD, [note, stolen]),
    ]
    for signed, trusted, notes in refused:
        with pytest.raises(UnnamedKey):
            check_checkpoint(signed, policy(trusted), notes)
    keys = keys_for(policy(OLD), ORIGIN, None, [note, stolen])
    assert keys == (OLD.verifier, NEW.verifier, PQ.verifier)


def test_a_log_that_the_policy_does_not_name_gets_no_key() -> None:
    """And a wrong signature by a known key is no unknown key."""
    note = sign_history(HISTORY, [NEW, OLD])
    stranger = Policy((Signer.from_seed("other.example", bytes(32)).verifier,), (), {}, "none")
    with pytest.raises(EvidenceError) as raised:
        check_checkpoint(checkpoint(35, NEW), stranger, [note])
    assert not isinstance(raised.value, UnnamedKey)
    wrong = checkpoint(35, OLD).replace(b"\n35\n", b"\n36\n") + NEW.sign(b"other")
    with pytest.raises(EvidenceError, match="is wrong"):
        check_checkpoint(wrong, policy(OLD), [note])
