"""Signed notes (c2sp.org/signed-note): a text, and signature lines of named keys below it.

A signature by a key that is not asked for is ignored, as the specification says; each by a known
key has to be good, a second one too.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.evidence.checkpoint import Checkpoint, format_checkpoint
from countersign.evidence.encoding import strict_base64
from countersign.evidence.errors import EvidenceError
from countersign.evidence.vkey import (
    COSIGNATURE,
    ED25519,
    KEY_ID_BYTES,
    MLDSA_COSIGNATURE,
    TIME_BYTES,
    Verifier,
    check_name,
)

__all__ = [
    "COSIGNATURE",
    "ED25519",
    "MLDSA_COSIGNATURE",
    "NoKnownSignature",
    "Note",
    "SignatureLine",
    "Signer",
    "Verifier",
    "open_note",
    "parse_cosignature",
    "parse_note",
    "sign_checkpoint",
]
NOTE_BYTES_MAX: Final = 1_000_000
SIGNATURES_MAX: Final = 100
_DASH: Final = "\u2014 "


class NoKnownSignature(EvidenceError):
    """None of the keys that were given signed the note."""


class SignatureLine(NamedTuple):
    """A signature as it stands in a note: who, by which key, and the bytes after the key's id."""

    name: str
    key_id: bytes
    signature: bytes

    @property
    def time(self) -> int:
        """Of a cosignature: when the witness signed, in Unix seconds."""
        return int.from_bytes(self.signature[:TIME_BYTES], "big")


class Note(NamedTuple):
    """A note: the text, which ends in a newline, and its signatures. Nothing is verified yet."""

    text: bytes
    signatures: tuple[SignatureLine, ...]


class Signer:
    """An Ed25519 key that signs notes, from its 32-byte seed (RFC 8032 §5.1.5)."""

    def __init__(self, name: str, seed: bytes) -> None:
        check_name(name)
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(name, ED25519, self._key.public_key().public_bytes_raw())
        self._key_id = self.verifier.key_id

    def __repr__(self) -> str:
        return f"Signer({self.verifier.vkey})"

    def sign(self, text: bytes) -> bytes:
        """The signature line for a text, with its newline."""
        encoded = b64encode(self._key_id + self._key.sign(text)).decode("ascii")
        return f"{_DASH}{self.verifier.name} {encoded}\n".encode()


def sign_checkpoint(checkpoint: Checkpoint, signers: Sequence[Signer]) -> bytes:
    """The signed note of a checkpoint, with one signature of each key, in their order."""
    text = format_checkpoint(checkpoint)
    return text + b"\n" + b"".join(signer.sign(text) for signer in signers)


def parse_note(data: bytes) -> Note:
    """Read a note.

    Raises:
        EvidenceError: it is malformed.
    """
    if len(data) > NOTE_BYTES_MAX:
        msg = f"a note has at most {NOTE_BYTES_MAX} bytes"
        raise EvidenceError(msg)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = "a note is UTF-8"
        raise EvidenceError(msg) from error
    if any(ord(character) < 32 and character != "\n" for character in text):
        msg = "a note has no control characters but newlines"
        raise EvidenceError(msg)
    body, blank, lines = text.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        msg = "a note is a text, an empty line, and signature lines"
        raise EvidenceError(msg)
    signatures = tuple(_signature_line(line) for line in lines[:-1].split("\n"))
    if len(signatures) > SIGNATURES_MAX:
        msg = f"a note has at most {SIGNATURES_MAX} signatures"
        raise EvidenceError(msg)
    return Note((body + "\n").encode(), signatures)


def open_note(
    data: bytes, verifiers: Sequence[Verifier]
) -> tuple[bytes, tuple[SignatureLine, ...]]:
    """The text of a note and those of its signatures that are by these keys, all good.

    Raises:
        EvidenceError: it is malformed, a signature by one of the keys is wrong, there is none, or
            two of the keys go by the name and id of a signature.
    """
    note = parse_note(data)
    known: dict[tuple[str, bytes], list[Verifier]] = {}
    for verifier in verifiers:
        known.setdefault((verifier.name, verifier.key_id), []).append(verifier)
    good: dict[tuple[str, bytes], SignatureLine] = {}
    for line in note.signatures:
        found = known.get((line.name, line.key_id), [])
        if not found:
            continue
        if len(found) > 1:
            msg = f"two keys go by {line.name}+{line.key_id.hex()}"
            raise EvidenceError(msg)
        if not found[0].verify(note.text, line.signature):
            msg = f"the signature by {line.name} is wrong"
            raise EvidenceError(msg)
        good.setdefault((line.name, line.key_id), line)
    if not good:
        msg = "no signature by a key that is trusted"
        raise NoKnownSignature(msg)
    return note.text, tuple(good.values())


def parse_cosignature(line: bytes) -> SignatureLine:
    """Read one signature line with its newline, as a witness gives it.

    Raises:
        EvidenceError: it is malformed.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = "a signature line is UTF-8"
        raise EvidenceError(msg) from error
    if not text.endswith("\n") or "\n" in text[:-1]:
        msg = "a signature line is one line"
        raise EvidenceError(msg)
    return _signature_line(text[:-1])


def _signature_line(line: str) -> SignatureLine:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH):
        msg = "a signature line begins with a dash"
        raise EvidenceError(msg)
    check_name(name)
    data = strict_base64(encoded)
    if len(data) <= KEY_ID_BYTES:
        msg = "a signature is longer than the id of its key"
        raise EvidenceError(msg)
    return SignatureLine(name, data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])
