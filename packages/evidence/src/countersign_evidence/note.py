"""Signed notes (c2sp.org/signed-note): a text, and signature lines of named keys below it.

A checkpoint (c2sp.org/tlog-checkpoint), the signed head of a log, is one.

A signature by an unknown key is ignored, as the specification says; each one by a known key must be
valid, a second one too. Kinds of keys: Ed25519 (0x01), and the timestamped cosignatures of a
witness by Ed25519 (0x04) and by ML-DSA-44 (0x06, c2sp.org/tlog-cosignature).
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, NamedTuple, Self, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.errors import EvidenceError
from countersign_evidence.instant import EPOCH
from countersign_evidence.offline import verify as rules
from countersign_evidence.offline.verify import is_sound

Checkpoint: TypeAlias = rules.Checkpoint
"""The head of a log: its origin, how many entries it has, and their root."""
parse_checkpoint: Final = by_the_rules(rules.read_checkpoint)
"""Reads the text of a note; extension lines are allowed and ignored."""


def format_checkpoint(checkpoint: Checkpoint) -> bytes:
    root = b64encode(checkpoint.root).decode("ascii")
    return f"{checkpoint.origin}\n{checkpoint.size}\n{root}\n".encode()


def cosigned_at(time: int) -> datetime | None:
    """When a witness signed, from the Unix seconds in its cosignature; None if it is out of range.

    The holder of the witness's key may sign any number below 2^63, far beyond the year 9999.
    """
    try:
        return EPOCH + timedelta(seconds=time)
    except OverflowError:
        return None


ED25519: Final = 0x01
COSIGNATURE: Final = 0x04
MLDSA_COSIGNATURE: Final = 0x06
TIME_BYTES: Final = 8
NOTE_BYTES_MAX: Final = 1_000_000
_DASH: Final = "\u2014 "

RawSignature: TypeAlias = Callable[[bytes], bytes]
"""Makes the bytes of a signature of a message: 64 by Ed25519, 2,420 by ML-DSA-44."""


check_name: Final = by_the_rules(rules.check_key_name)
"""A key's name is not empty, and has no space (of any kind in Unicode) and no plus."""


class Verifier(rules.Key):
    """A key that signs notes. Its signatures are checked by OpenSSL."""

    __slots__ = ()

    def __new__(cls, name: str, kind: int, public_key: bytes, key_id: bytes | None = None) -> Self:
        """`key_id` is for kinds that are not known here, which make their ids in other ways.

        Without it, it is the first 4 bytes of SHA-256(name ‖ newline ‖ kind ‖ public key).
        """
        key_id = key_id or sha256(name.encode() + b"\n" + bytes([kind]) + public_key).digest()[:4]
        return super().__new__(cls, name, kind, public_key, key_id)

    @property
    def signs_as(self) -> tuple[str, bytes]:
        """Name and id of the key, as they stand before its signatures."""
        return self.name, self.key_id

    @property
    def vkey(self) -> str:
        """The key as text: `name+hex8+base64(kind ‖ public key)`."""
        key = b64encode(bytes([self.kind]) + self.public_key).decode("ascii")
        return f"{self.name}+{self.key_id.hex()}+{key}"

    @classmethod
    def parse(cls, vkey: str, *, any_kind: bool = False) -> "Verifier":
        """Read a verifier key; `any_kind`: also of a kind that cannot be checked here.

        Raises EvidenceError if it is malformed, its id is wrong, it is no key that anyone can have
        made honestly, or its kind cannot be checked here.
        """
        verifier = cls(*by_the_rules(rules.read_vkey)(vkey))
        if not any_kind:
            verifier.check_kind()
        return verifier

    def check_kind(self) -> None:
        """Refuse a key of a kind that cannot be checked here; raises EvidenceError."""
        if not self.checkable:
            raise EvidenceError(f"a key of kind {self.kind} cannot be checked here")

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of these bytes."""
        if self.kind != MLDSA_COSIGNATURE:
            return ed25519_verify(self.public_key, message, signature)
        try:
            MLDSA44PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except UnsupportedAlgorithm:  # by another OpenSSL than that of the wheels
            return super().signed(message, signature)
        except (InvalidSignature, ValueError):
            return False
        return True


def ed25519_verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """`verify.ed25519_verify` by OpenSSL, with the points refused that OpenSSL is lax about.

    OpenSSL accepts keys of small order, even in an encoding other than that of RFC 8032 §5.1.2.
    """
    if not (is_sound(public_key) and is_sound(signature[:32])):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def verifies(key: rules.Key, text: bytes, signature: bytes) -> bool:
    """Whether this is the key's signature of a note's text, by OpenSSL."""
    return Verifier(*key).verifies(text, signature)


class NoKnownSignature(EvidenceError):
    """None of the given keys signed the note."""


class SignatureLine(rules.Signature):
    """A signature in a note: the name, the key, and the bytes after the key's id."""

    @property
    def by(self) -> tuple[str, bytes]:
        """Name and id of the key."""
        return self.name, self.key_id

    def text(self) -> bytes:
        """The line again, with its newline."""
        encoded = b64encode(self.key_id + self.signature).decode("ascii")
        return f"{_DASH}{self.name} {encoded}\n".encode()

    @property
    def time(self) -> int:
        """For a cosignature: the time of signing, in Unix seconds."""
        return int.from_bytes(self.signature[:TIME_BYTES], "big")


class Note(NamedTuple):
    """A note: the text, which ends in a newline, and its signatures. Nothing is verified yet."""

    text: bytes
    signatures: tuple[SignatureLine, ...]


class Signer:
    """A key that signs notes: its public half, and a function that signs messages.

    The private key is in this process (`from_seed`), or on a device that does not let it out.
    """

    def __init__(self, verifier: Verifier, raw: RawSignature) -> None:
        self.verifier = verifier
        self._raw = raw
        self._start = f"{_DASH}{verifier.name} "
        self._key_id = verifier.key_id

    @classmethod
    def from_seed(cls, name: str, seed: bytes, kind: int = ED25519) -> "Signer":
        """The key of a 32-byte seed: of RFC 8032 §5.1.5, or for ML-DSA-44 of FIPS 204 §5.1."""
        check_name(name)
        key: Ed25519PrivateKey | MLDSA44PrivateKey
        if kind == MLDSA_COSIGNATURE:
            key = MLDSA44PrivateKey.from_seed_bytes(seed)
        else:
            key = Ed25519PrivateKey.from_private_bytes(seed)
        return cls(Verifier(name, kind, key.public_key().public_bytes_raw()), key.sign)

    def __repr__(self) -> str:
        return f"Signer({self.verifier.vkey})"

    def sign(self, text: bytes, time: int = 0) -> bytes:
        """The signature line for a text, with its newline; `time` is stated in a cosignature.

        An ML-DSA-44 key signs checkpoints only: EvidenceError for any other text.
        """
        if self.verifier.kind == ED25519:
            made = self._raw(text)
        else:
            message = by_the_rules(self.verifier.message)(text, time)
            made = time.to_bytes(TIME_BYTES, "big") + self._raw(message)
        return f"{self._start}{b64encode(self._key_id + made).decode('ascii')}\n".encode()


def sign_checkpoint(checkpoint: Checkpoint, signers: Sequence[Signer], time: int = 0) -> bytes:
    """The signed note of a checkpoint, with one signature of each key, in their order.

    `time`, in Unix seconds, is for cosignatures.
    """
    text = format_checkpoint(checkpoint)
    return text + b"\n" + b"".join(signer.sign(text, time) for signer in signers)


def parse_note(data: bytes) -> Note:
    text, signatures = by_the_rules(rules.read_note)(data)
    return Note(text, tuple(SignatureLine(*one) for one in signatures))


def checkpoint_of(note: bytes) -> Checkpoint:
    """The content of a signed checkpoint; signatures are not checked."""
    return parse_checkpoint(parse_note(note).text)


def open_note(
    data: bytes, verifiers: Sequence[Verifier]
) -> tuple[bytes, tuple[SignatureLine, ...]]:
    """The text of a note and its signatures by these keys, all valid.

    Raises EvidenceError if it is malformed, a signature by one of the keys is wrong, there is none,
    or two of the keys have the same signature name and id.
    """
    note = parse_note(data)
    signed, _, _ = by_the_rules(rules.check_signatures)(verifiers, *note)
    if not signed:
        raise NoKnownSignature("no signature by a key that is trusted")
    first = {line.by: line for line in reversed(note.signatures)}
    return note.text, tuple(first[key.name, key.key_id] for key in signed)


def parse_cosignature(line: bytes) -> SignatureLine:
    """Read one signature line with its newline, as a witness gives it."""
    _, (found, *more) = parse_note(b"\n\n" + line)
    if more:
        raise EvidenceError("a signature line is one line")
    return found
