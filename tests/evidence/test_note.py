"""Signed notes, by the specification and golang.org/x/mod/sumdb/note.

The two keys and signatures of `PETER` and `ENOCH` are those of its note_test.go.
"""

from base64 import b64decode, b64encode
from hashlib import sha256

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence import note as notes
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Signer, Verifier, open_note, parse_note
from tests.evidence.keys import MLDSA_NAME, mldsa_line, mldsa_vkey
from tests.offline.builder import COSIGNED_AT, signature_line, vkey

PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SEED = b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
PETER_SIGNED = (
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXg"
    "KvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_SIGNED = (
    "\u2014 EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01"
    "oOTGwnWLox33WWd1RvMc+QQ=\n"
)
peter, enoch = Verifier.parse(PETER), Verifier.parse(ENOCH)
ROOT = sha256(b"root").digest()
CHECKPOINT = f"log.example.com\n7\n{b64encode(ROOT).decode()}\n"


def _note(*lines: str, text: str = TEXT) -> bytes:
    return f"{text}\n{''.join(lines)}".encode()


def _names(note: bytes, *verifiers: Verifier) -> list[str]:
    return [line.name for line in open_note(note, verifiers)[1]]


def test_a_verifier_key_is_read_and_written_the_same() -> None:
    """Name, id and key; the id is the first 4 bytes of SHA-256(name, newline, kind, key)."""
    assert peter.vkey == PETER
    assert peter.key_id.hex() == "c74f20a3"
    assert Signer.from_seed("PeterNeumann", PETER_SEED).verifier == peter


def test_no_mangled_verifier_key_is_accepted() -> None:
    """Every part of it, and every one with one character changed, as in note_test.go."""
    mangled = [
        PETER[start:end] for start in range(len(PETER)) for end in range(start, len(PETER) + 1)
    ]
    mangled.remove(PETER)
    mangled += [PETER[:at] + chr(ord(PETER[at]) + 1) + PETER[at + 1 :] for at in range(len(PETER))]
    mangled += [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER.replace("Peter", "Peter "),
    ]
    for text in mangled:
        with pytest.raises(EvidenceError):
            Verifier.parse(text)


def test_signing_gives_the_published_bytes() -> None:
    """Ed25519 is deterministic: the line is the one of note_test.go."""
    signer = Signer.from_seed("PeterNeumann", PETER_SEED)
    assert signer.sign(TEXT.encode()).decode() == PETER_SIGNED
    assert PETER_SEED.hex() not in repr(signer)


def test_the_example_of_the_specification_is_a_note() -> None:
    """An empty line in the text: the last one parts text and signatures."""
    note = (
        "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned \u00e8 subito "
        "sera.\n\n\u2014 quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+"
        "EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
    )
    read = parse_note(note.encode())
    assert read.text.endswith(b"sole:\n\ned \xc3\xa8 subito sera.\n")
    assert [(line.name, line.key_id.hex()) for line in read.signatures] == [
        ("quasimodo.example/salvatore", "367ba04b")
    ]


def test_signatures_of_requested_keys_are_verified_and_others_ignored() -> None:
    """One, the other, both; repeated ones count once, unknown ones may be anything."""
    note = _note(PETER_SIGNED, ENOCH_SIGNED)
    assert _names(note, peter) == ["PeterNeumann"]
    assert _names(note, peter, enoch) == ["PeterNeumann", "EnochRoot"]
    damaged = ENOCH_SIGNED[:60] + "ABCD" + ENOCH_SIGNED[60:]
    assert _names(_note(PETER_SIGNED, PETER_SIGNED, ENOCH_SIGNED, damaged), peter) == [
        "PeterNeumann"
    ]


@pytest.mark.parametrize("wrong_first", [True, False])
def test_a_second_signature_by_a_known_key_must_be_valid_too(wrong_first: bool) -> None:
    """Otherwise readers that look at another line than the first judge differently."""
    wrong = PETER_SIGNED[:60] + ("A" if PETER_SIGNED[60] != "A" else "B") + PETER_SIGNED[61:]
    lines = [wrong, PETER_SIGNED] if wrong_first else [PETER_SIGNED, wrong]
    with pytest.raises(EvidenceError, match="PeterNeumann is wrong"):
        open_note(_note(*lines), (peter,))


P = 2**255 - 19
ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
# Each with both signs; with y = 1 and -1 the second is not even canonical.
SMALL_ORDER = [y | sign << 255 for y in (0, 1, P - 1, ORDER_8, P - ORDER_8) for sign in (0, 1)]


@pytest.mark.parametrize("number", [*SMALL_ORDER, P, P + 1, P + 18, P | 1 << 255])
@pytest.mark.parametrize("kind", [1, 4])
def test_a_key_that_no_one_can_have_made_honestly_is_refused(kind: int, number: int) -> None:
    """Of small order, so that anyone can sign by it, or not in the canonical form of RFC 8032."""
    key = Verifier("weak.example", kind, number.to_bytes(32, "little"))
    with pytest.raises(EvidenceError, match="small order"):
        Verifier.parse(key.vkey)
    with pytest.raises(EvidenceError, match="small order"):
        Verifier.parse(key.vkey, any_kind=True)


def test_a_key_of_a_future_kind_is_read_only_on_request() -> None:
    """It is recognised as another key, and verifies nothing."""
    key = Verifier("new.example", 200, b"of whatever length")
    with pytest.raises(EvidenceError, match="200"):
        Verifier.parse(key.vkey)
    assert Verifier.parse(key.vkey, any_kind=True) == key
    assert (key.checkable, peter.checkable) == (False, True)
    assert Verifier.parse(mldsa_vkey()).checkable


@pytest.mark.parametrize(
    ("note", "verifiers"),
    [
        (_note(PETER_SIGNED), ()),
        (_note(PETER_SIGNED), (enoch,)),
        (_note(PETER_SIGNED[:60] + "ABCD" + PETER_SIGNED[60:]), (peter,)),
        (_note(PETER_SIGNED, ENOCH_SIGNED, text=TEXT.replace("don't", "do")), (peter,)),
        (_note(PETER_SIGNED.replace("PeterNeumann", "CarmenSandiego")), (peter,)),
        (_note(PETER_SIGNED.replace("x08g", "xxxx")), (peter,)),
        (_note(ENOCH_SIGNED), (enoch, peter, enoch)),
    ],
    ids=["nobody", "another", "longer", "changed", "misnamed", "other-id", "ambiguous"],
)
def test_a_note_without_a_good_signature_is_refused(
    note: bytes, verifiers: tuple[Verifier, ...]
) -> None:
    """The cases of note_test.go."""
    with pytest.raises(EvidenceError):
        open_note(note, verifiers)


def test_a_key_given_twice_matters_only_if_it_signed() -> None:
    """As note_test.go has it."""
    assert _names(_note(PETER_SIGNED), enoch, peter, enoch) == ["PeterNeumann"]


@pytest.mark.parametrize(
    "note",
    [
        TEXT.encode(),
        _note(),
        _note(PETER_SIGNED)[:-1],
        b"\x01" + _note(PETER_SIGNED),
        b"\xff" + _note(PETER_SIGNED),
        b"a\tb" + _note(PETER_SIGNED),
        _note(PETER_SIGNED.replace("PeterNeumann", "Bad Name")),
        _note(PETER_SIGNED.replace("PeterNeumann", "Bad+Name")),
        _note(PETER_SIGNED.replace("PeterNeumann", "Bad\u2003Name")),
        _note(PETER_SIGNED.replace("PeterNeumann", "")),
        _note(PETER_SIGNED + "Unexpected line.\n"),
        _note(PETER_SIGNED * 101),
        _note(PETER_SIGNED.replace("AM=\n", "AN=\n")),
        _note("\u2014 short x08go/Y\n"),
        _note("\u2014 empty \n"),
        _note("\u2014 four x08goA==\n"),
        _note("- dash x08go/ZJkuBS\n"),
        b"",
    ],
)
def test_an_invalid_note_is_refused(note: bytes) -> None:
    """Malformed, no matter which keys are trusted."""
    with pytest.raises(EvidenceError):
        parse_note(note)


def test_sixteen_signatures_and_more_are_read() -> None:
    """The specification asks for 16 at least, and post-quantum ones have nearly 5 kB."""
    line = f"\u2014 name {b64encode(bytes(5000)).decode()}\n"
    assert len(parse_note(_note(*[line] * 100)).signatures) == 100


def test_a_cosignature_is_over_its_time_and_the_text() -> None:
    """Kind 0x04; the same key as kind 0x01 does not pass for it."""
    seed = bytes(range(32))
    line = signature_line("w.example", 4, seed, CHECKPOINT.encode())
    witness = Verifier.parse(vkey("w.example", 4, seed))
    _, (signed,) = open_note(_note(line, text=CHECKPOINT), [witness])
    assert signed.time == COSIGNED_AT
    with pytest.raises(EvidenceError):
        open_note(_note(line, text=CHECKPOINT + "extension\n"), [witness])
    later = signed.signature[:7] + bytes([signed.signature[7] ^ 1]) + signed.signature[8:]
    assert not witness.verifies(CHECKPOINT.encode(), later)
    assert not witness.verifies(CHECKPOINT.encode(), signed.signature[8:])
    as_log = Verifier("w.example", 1, witness.public_key)
    assert not as_log.verifies(CHECKPOINT.encode(), signed.signature)


def test_a_cosignature_beyond_63_bits_of_time_is_refused() -> None:
    """A timestamp must not exceed 2^63 - 1, even if it is signed."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    witness = Verifier("w.example", 4, key.public_key().public_bytes_raw())
    for time, good in ((2**63 - 1, True), (2**63, False)):
        signature = key.sign(f"cosignature/v1\ntime {time}\n{CHECKPOINT}".encode())
        assert witness.verifies(CHECKPOINT.encode(), time.to_bytes(8, "big") + signature) is good


def test_an_ml_dsa_cosignature_is_over_name_origin_size_and_root() -> None:
    """Kind 0x06: the structure of tlog-cosignature; extension lines are no part of it."""
    line = mldsa_line("log.example.com", 7, ROOT, 1_800_000_000)
    witness = Verifier.parse(mldsa_vkey())
    assert witness.vkey == mldsa_vkey()
    assert _names(_note(line, text=CHECKPOINT), witness) == [MLDSA_NAME]
    assert _names(_note(line, text=CHECKPOINT + "extension\n"), witness) == [MLDSA_NAME]
    for text in (
        CHECKPOINT.replace("\n7\n", "\n8\n"),
        CHECKPOINT.replace("log.", "lag."),
        CHECKPOINT.replace(b64encode(ROOT).decode(), b64encode(bytes(32)).decode()),
        TEXT,
    ):
        with pytest.raises(EvidenceError):
            open_note(_note(line, text=text), [witness])


def test_ml_dsa_is_checked_without_openssl_s_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another OpenSSL than that of the wheels may lack it; verify.py has its own."""

    class Lacking:
        @staticmethod
        def from_public_bytes(_: bytes) -> None:
            raise UnsupportedAlgorithm("ML-DSA")

    monkeypatch.setattr(notes, "MLDSA44PublicKey", Lacking)
    line = mldsa_line("log.example.com", 7, ROOT, 1_800_000_000)
    witness = Verifier.parse(mldsa_vkey())
    assert _names(_note(line, text=CHECKPOINT), witness) == [MLDSA_NAME]
    with pytest.raises(EvidenceError):
        open_note(_note(line, text=CHECKPOINT.replace("\n7\n", "\n8\n")), [witness])


def test_an_origin_too_long_for_ml_dsa_is_not_cosigned() -> None:
    """Its length has one byte: the note is refused, and nothing else happens."""
    long = "l" * 256
    witness = Verifier.parse(mldsa_vkey())
    line = mldsa_line("log.example.com", 7, ROOT, 1)
    with pytest.raises(EvidenceError):
        open_note(_note(line, text=CHECKPOINT.replace("log.example.com", long)), [witness])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_note_or_refused(data: bytes) -> None:
    """Behind good signatures too; nothing but EvidenceError comes out."""
    for note in (data, data + b"\n\n" + PETER_SIGNED.encode(), _note(PETER_SIGNED) + data):
        try:
            read = parse_note(note)
        except EvidenceError:
            continue
        assert read.text.endswith(b"\n")
        assert note.startswith(read.text + b"\n")


@given(st.text(max_size=80))
def test_any_text_is_a_verifier_key_or_refused(text: str) -> None:
    """Parsed text is written the same."""
    for key in (text, PETER[: len(text)] + text, f"{text}+c74f20a3+{PETER[22:]}"):
        try:
            assert Verifier.parse(key).vkey == key
        except EvidenceError:
            continue
