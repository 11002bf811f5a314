"""Receipts: one signature for a batch, a path from each record, and no other way to read them."""

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.http.schemas import RECEIPT
from countersign_evidence.entry import entries_of
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Checkpoint, Signer, sign_checkpoint
from countersign_evidence.policy import parse_policy
from countersign_evidence.receipt import check_receipt, is_receipt, make_receipts
from tests.evidence.rfc6962_reference import mth, path

ORIGIN = "evidence.example.com:8443/v1/log/live/1"
SIGNER, OTHER = Signer.from_seed(ORIGIN, bytes(32)), Signer.from_seed(ORIGIN, bytes([1]) * 32)
POLICY = parse_policy(f"log {SIGNER.verifier.vkey}\nquorum none\n".encode())
UNTIL = datetime(2026, 11, 21, 21, 31, 5, 123000, tzinfo=UTC)
FIRST = b"evidence.example.com:8443/receipt/v1\n"


def digests(count: int) -> list[bytes]:
    return [sha256(bytes([n])).digest() for n in range(count)]


def receipts(count: int) -> list[bytes]:
    return [text.encode() for text in make_receipts(digests(count), UNTIL, [SIGNER])]


@given(st.integers(1, 70), st.data())
def test_each_receipt_of_a_batch_is_about_its_own_record(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    found = check_receipt(receipts(count)[index], POLICY)
    assert found.digest == digests(count)[index]
    assert (found.origin, found.sealed_by, found.key) == (ORIGIN, UNTIL, SIGNER.verifier)


@given(st.integers(1, 40))
def test_tree_and_paths_match_rfc_6962_over_the_log_entries(count: int) -> None:
    entries = entries_of(ORIGIN, digests(count))
    root = b64encode(mth(entries))
    for index, text in enumerate(receipts(count)):
        head, _, note = text.partition(b"\n\n")
        assert head.split(b"\n")[3:] == [*map(b64encode, path(index, entries))]
        assert note.split(b"\n")[2:4] == [str(count).encode(), root]


def test_the_example_of_the_api_is_possible_for_a_service() -> None:
    origin = "evidence.example.com/v1/log/test/1"
    seed = sha256(b"countersign: the key of a test log\x00" + origin.encode()).digest()
    until = datetime(2026, 11, 21, 21, 31, tzinfo=UTC)
    made = make_receipts([sha256(b"example").digest()], until, [Signer.from_seed(origin, seed)])
    assert made == [RECEIPT]


def test_no_changed_byte_leaves_a_receipt_with_another_meaning() -> None:
    for text in receipts(3)[1:]:
        for at in range(len(text)):
            changed = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
            with pytest.raises(EvidenceError):
                check_receipt(changed, POLICY)
        for at in range(len(text)):
            with pytest.raises(EvidenceError):
                check_receipt(text[:at], POLICY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"index 1", b"index 0"),
        (b"index 1", b"index 01"),
        (b"index 1\n", b"index 1\n\n"),
        (b"record ", b"record  "),
        (FIRST, FIRST.replace(b"v1", b"v2")),
        (FIRST, b"other.example.com/receipt/v1\n"),
        (b"sealed-by 2026", b"sealed-by 2027"),
        (b"05.123Z", b"05.123000Z"),
        (b"05.123Z\n", b"05.123Z\nmore\n"),
    ],
)
def test_a_receipt_has_one_form(old: bytes, new: bytes) -> None:
    text = receipts(3)[1]
    assert old in text
    with pytest.raises(EvidenceError):
        check_receipt(text.replace(old, new, 1), POLICY)
    with pytest.raises(EvidenceError):
        check_receipt(text.replace(old, new), POLICY)


def test_head_and_signed_text_of_two_receipts_cannot_be_combined() -> None:
    one, two = receipts(2)[0], receipts(3)[0]
    with pytest.raises(EvidenceError):
        check_receipt(one.partition(b"\n\n")[0] + b"\n\n" + two.partition(b"\n\n")[2], POLICY)


def test_only_a_log_of_the_policy_signs_receipts() -> None:
    for text in make_receipts(digests(1), UNTIL, [OTHER]):
        with pytest.raises(EvidenceError):
            check_receipt(text.encode(), POLICY)
    [both] = make_receipts(digests(1), UNTIL, [OTHER, SIGNER])
    assert check_receipt(both.encode(), POLICY).key == SIGNER.verifier


def test_neither_a_checkpoint_nor_a_receipt_passes_as_the_other() -> None:
    note = sign_checkpoint(Checkpoint(ORIGIN, 1, bytes(32)), [SIGNER])
    assert not is_receipt(note)
    [text] = receipts(1)
    assert is_receipt(text)
    head, _, signed = text.partition(b"\n\n")
    with pytest.raises(EvidenceError):
        check_receipt(head + b"\n\n" + note, POLICY)
    with pytest.raises(EvidenceError):
        POLICY.check_signature(signed)
