"""Checkpoints and proof files: C2SP tlog-checkpoint and tlog-proof, with published cases."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Checkpoint, format_checkpoint, parse_checkpoint
from countersign_evidence.proof import Proof, format_proof, parse_proof

H1, H2 = sha256(b"hash1").digest(), sha256(b"hash2").digest()
B1, B2 = b64encode(H1).decode(), b64encode(H2).decode()
FIRST = "c2sp.org/tlog-proof@v1\n"


@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (
            Proof(b"extra information", 10, (H1,), b"checkpoint data\n"),
            f"{FIRST}extra ZXh0cmEgaW5mb3JtYXRpb24=\nindex 10\n{B1}\n\ncheckpoint data\n",
        ),
        (Proof(b"", 0, (), b"checkpoint\n"), f"{FIRST}extra \nindex 0\n\ncheckpoint\n"),
        (
            Proof(b"x", 2**63 - 1, (H1, H2) + (H1,) * 61, b"a\n\n\nb\n"),
            f"{FIRST}extra eA==\nindex {2**63 - 1}\n{B1}\n{B2}\n{(B1 + chr(10)) * 61}\na\n\n\nb\n",
        ),
    ],
    ids=["extra", "no hashes", "largest"],
)
def test_a_proof_is_written_and_read_to_the_byte(proof: Proof, text: str) -> None:
    """The first one is from transparency-dev/formats, proof/tlog_proof_test.go."""
    assert format_proof(proof).decode() == text
    assert parse_proof(text.encode()) == proof


@pytest.mark.parametrize(
    "text",
    [
        "wrong-header\nindex 0\n\ncheckpoint\n",
        f"{FIRST}extra !!notbase64!!\nindex 0\n\ncheckpoint\n",
        f"{FIRST}\n\ncheckpoint\n",
        f"{FIRST}index notanumber\n\ncheckpoint\n",
        f"{FIRST}index -5\n\ncheckpoint\n",
        f"{FIRST}index 0\n!!notbase64!!\n\ncheckpoint\n",
        f"{FIRST}index 0\n{b64encode(bytes(64)).decode()}\n\ncheckpoint\n",
        f"{FIRST}index 0\n{'a' * 65 * 1024}\n",
        f"{FIRST}index 05\n\ncheckpoint\n",
        f"{FIRST}index +5\n\ncheckpoint\n",
        f"{FIRST}index 1_0\n\ncheckpoint\n",
        f"{FIRST}index \u0665\n\ncheckpoint\n",
        f"{FIRST}index 9223372036854775808\n\ncheckpoint\n",
        f"{FIRST}index  5\n\ncheckpoint\n",
        f"{FIRST}index 5 \n\ncheckpoint\n",
        f"{FIRST}index 5\r\n\ncheckpoint\n",
        f"{FIRST}index 5\n{B1[:-1]}\n\ncheckpoint\n",
        f"{FIRST}index 5\n{B1[:-2]}V=\n\ncheckpoint\n",
        f"{FIRST}index 5\n{(B1 + chr(10)) * 64}\ncheckpoint\n",
        f"{FIRST}index 5\nextra QQ==\n\ncheckpoint\n",
        f"{FIRST}extra QQ==\nextra QQ==\nindex 5\n\ncheckpoint\n",
        f"{FIRST}index 5\n{B1}\n",
        f"{FIRST}index 5\n\n",
        f" {FIRST}index 5\n\ncheckpoint\n",
        "",
    ],
)
def test_an_invalid_proof_is_refused(text: str) -> None:
    """Beginning with the cases of proof/tlog_proof_test.go; numbers and base64 have one form."""
    for each in (text, text.replace(f"{FIRST}index", f"{FIRST}extra QQ==\nindex", 1)):
        with pytest.raises(EvidenceError):
            parse_proof(each.encode())


@pytest.mark.parametrize("rest", [f"index 5\n{B1}\n{B2}\n\ntest", "index 0\n\ncheckpoint\n"])
def test_a_proof_without_its_record_is_refused(rest: str) -> None:
    """Cases of proof/tlog_proof_test.go: C2SP allows it, `spec/evidence-format.md` does not."""
    with pytest.raises(EvidenceError, match="does not contain its record"):
        parse_proof(f"{FIRST}{rest}".encode())


def test_a_proof_larger_than_any_is_refused() -> None:
    """Before anything is parsed."""
    with pytest.raises(EvidenceError):
        parse_proof(f"{FIRST}extra {'A' * 2_000_000}\nindex 5\n\ncheckpoint\n".encode())


@given(
    st.binary(max_size=50),
    st.integers(0, 2**63 - 1),
    st.lists(st.binary(min_size=32, max_size=32), max_size=63),
    st.binary(min_size=1, max_size=80),
)
def test_any_proof_survives_a_round_trip(
    extra: bytes, index: int, path: list[bytes], checkpoint: bytes
) -> None:
    """The checkpoint is taken verbatim, whatever its content."""
    proof = Proof(extra, index, tuple(path), checkpoint)
    assert parse_proof(format_proof(proof)) == proof


@given(st.binary(max_size=100), st.integers(0, 60))
def test_any_bytes_are_a_proof_or_refused(data: bytes, at: int) -> None:
    """Parsed bytes are written the same, byte for byte."""
    good = format_proof(Proof(b"x", 3, (H1,), b"checkpoint\n"))
    for text in (data, good[:at] + data + good[at:], good[:at] + data):
        try:
            assert format_proof(parse_proof(text)) == text
        except EvidenceError:
            continue


def test_a_checkpoint_is_an_origin_a_size_and_a_root() -> None:
    """The example of the specification; extension lines are allowed."""
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    read = parse_checkpoint(text.encode())
    assert (read.origin, read.size) == ("example.com/behind-the-sofa", 20852163)
    assert format_checkpoint(read).decode() == text
    assert parse_checkpoint(text.encode() + b"one\ntwo\n") == read
    assert parse_checkpoint(f"a\n0\n{B1}\n".encode()) == Checkpoint("a", 0, H1)


@pytest.mark.parametrize(
    "text",
    [
        f"\n7\n{B1}\n", f"a\n07\n{B1}\n", f"a\n-7\n{B1}\n", f"a\n{2**63}\n{B1}\n", f"a\n\n{B1}\n",
        "a\n7\n\n", f"a\n7\n{B1[:-4]}\n", f"a\n7\n{B1}", f"a\n7\n{B1}\n\n", f"a\n7\n{B1}\n\nx\n",
        "a\n7\n", "", f"a\n7 \n{B1}\n", f"a\n7\n{B1} \n", f"a\n7.0\n{B1}\n",
    ],
)  # fmt: skip
def test_an_invalid_checkpoint_is_refused(text: str) -> None:
    """Lines that are missing or empty, numbers and hashes in another form."""
    with pytest.raises(EvidenceError):
        parse_checkpoint(text.encode())


@given(st.binary(max_size=100))
def test_any_bytes_are_a_checkpoint_or_refused(data: bytes) -> None:
    """Only EvidenceError is raised."""
    for text in (data, b"a\n7\n" + data, b"a\n" + data + f"\n{B1}\n".encode()):
        try:
            assert text.startswith(format_checkpoint(parse_checkpoint(text)))
        except EvidenceError:
            continue
