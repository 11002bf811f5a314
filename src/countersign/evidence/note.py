"""Signed notes (c2sp.org/signed-note): a text, and signature lines of named keys below it.

Kinds of keys: Ed25519 (0x01), and the timestamped cosignatures of a witness by Ed25519 (0x04) and
by ML-DSA-44 (0x06, both c2sp.org/tlog-cosignature). A signature by a key that is not asked for is
ignored, as the specification says; one by a known key has to be good.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from countersign.evidence.cosignature import ed25519_message, mldsa_message
from countersign.evidence.encoding import strict_base64
from countersign.evidence.errors import EvidenceError

ED25519: Final = 0x01
COSIGNATURE: Final = 0x04
MLDSA_COSIGNATURE: Final = 0x06
NOTE_BYTES_MAX: Final = 1_000_000
SIGNATURES_MAX: Final = 100
_KEY_ID_BYTES: Final = 4
_PUBLIC_KEY_BYTES: Final = {ED25519: 32, COSIGNATURE: 32, MLDSA_COSIGNATURE: 1312}
_TIME_BYTES: Final = 8
_TIME_MAX: Final = 2**63 - 1
_DASH: Final = "\u2014 "


def _key_id(name: str, kind: int, public_key: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + public_key).digest()[:_KEY_ID_BYTES]


def _check_name(name: str) -> None:
    """A key's name is not empty, and has no space (of any kind in Unicode) and no plus."""
    if not name or "+" in name or any(character.isspace() for character in name):
        msg = "not the name of a key"
        raise EvidenceError(msg)


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
        return int.from_bytes(self.signature[:_TIME_BYTES], "big")


class Note(NamedTuple):
    """A note: the text, which ends in a newline, and its signatures. Nothing is verified yet."""

    text: bytes
    signatures: tuple[SignatureLine, ...]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A key by which signatures are verified."""

    name: str
    kind: int
    public_key: bytes

    @property
    def key_id(self) -> bytes:
        """The first 4 bytes of SHA-256(name ‖ newline ‖ kind ‖ public key)."""
        return _key_id(self.name, self.kind, self.public_key)

    @property
    def vkey(self) -> str:
        """The key as text: `name+hex8+base64(kind ‖ public key)`."""
        key = b64encode(bytes([self.kind]) + self.public_key).decode("ascii")
        return f"{self.name}+{self.key_id.hex()}+{key}"

    @classmethod
    def parse(cls, vkey: str) -> "Verifier":
        """Read a verifier key.

        Raises:
            EvidenceError: it is malformed, its id is wrong, or its kind is not known here.
        """
        name, _, rest = vkey.partition("+")
        key_id, _, encoded = rest.partition("+")
        _check_name(name)
        key = strict_base64(encoded)
        if not key:
            msg = "not a verifier key"
            raise EvidenceError(msg)
        verifier = cls(name, key[0], key[1:])
        if verifier.key_id.hex() != key_id:
            msg = "the id of the key does not go with it"
            raise EvidenceError(msg)
        length = _PUBLIC_KEY_BYTES.get(verifier.kind)
        if length is None:
            msg = f"a kind of key that is not known here: {verifier.kind}"
            raise EvidenceError(msg)
        if len(verifier.public_key) != length:
            msg = f"a key of kind {verifier.kind} has {length} bytes"
            raise EvidenceError(msg)
        if verifier.kind == MLDSA_COSIGNATURE:
            try:
                MLDSA44PublicKey.from_public_bytes(verifier.public_key)
            except UnsupportedAlgorithm as error:  # with another OpenSSL than that of the wheels
                msg = "ML-DSA-44 (kind 6) cannot be checked on this machine"
                raise EvidenceError(msg) from error
        return verifier

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a note's text."""
        time, message = 0, text
        if self.kind != ED25519:
            time, signature = (
                int.from_bytes(signature[:_TIME_BYTES], "big"),
                signature[_TIME_BYTES:],
            )
        if time > _TIME_MAX:
            return False
        try:
            if self.kind == MLDSA_COSIGNATURE:
                message = mldsa_message(self.name, time, text)
                MLDSA44PublicKey.from_public_bytes(self.public_key).verify(signature, message)
                return True
            if self.kind == COSIGNATURE:
                message = ed25519_message(time, text)
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except (InvalidSignature, ValueError):  # an EvidenceError is a ValueError
            return False
        return True


class Signer:
    """An Ed25519 key that signs notes, from its 32-byte seed (RFC 8032 §5.1.5)."""

    def __init__(self, name: str, seed: bytes) -> None:
        _check_name(name)
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(name, ED25519, self._key.public_key().public_bytes_raw())
        self._key_id = self.verifier.key_id

    def __repr__(self) -> str:
        return f"Signer({self.verifier.vkey})"

    def sign(self, text: bytes) -> bytes:
        """The signature line for a text, with its newline."""
        encoded = b64encode(self._key_id + self._key.sign(text)).decode("ascii")
        return f"{_DASH}{self.verifier.name} {encoded}\n".encode()


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
        if not found or (line.name, line.key_id) in good:
            continue
        if len(found) > 1:
            msg = f"two keys go by {line.name}+{line.key_id.hex()}"
            raise EvidenceError(msg)
        if not found[0].verify(note.text, line.signature):
            msg = f"the signature by {line.name} is wrong"
            raise EvidenceError(msg)
        good[line.name, line.key_id] = line
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
    _check_name(name)
    data = strict_base64(encoded)
    if len(data) <= _KEY_ID_BYTES:
        msg = "a signature is longer than the id of its key"
        raise EvidenceError(msg)
    return SignatureLine(name, data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])
