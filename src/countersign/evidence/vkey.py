"""Verifier keys (c2sp.org/signed-note): the keys by which signatures on notes are verified.

Kinds: Ed25519 (0x01), and the timestamped cosignatures of a witness by Ed25519 (0x04) and by
ML-DSA-44 (0x06, both c2sp.org/tlog-cosignature).
"""

import re
from base64 import b64encode
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from countersign.evidence.cosignature import ed25519_message, mldsa_message
from countersign.evidence.encoding import strict_base64
from countersign.evidence.errors import EvidenceError

ED25519: Final = 0x01
COSIGNATURE: Final = 0x04
MLDSA_COSIGNATURE: Final = 0x06
KEY_ID_BYTES: Final = 4
TIME_BYTES: Final = 8
_PUBLIC_KEY_BYTES: Final = {ED25519: 32, COSIGNATURE: 32, MLDSA_COSIGNATURE: 1312}
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}\Z", re.ASCII)
_TIME_MAX: Final = 2**63 - 1
_P: Final = 2**255 - 19
_ORDER_8: Final = int("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7", 16)
_SMALL_ORDER: Final = frozenset({0, 1, _P - 1, _ORDER_8, _P - _ORDER_8})
"""The y of the eight points whose order divides 8: by such a key anyone signs anything."""


def check_name(name: str) -> None:
    """A key's name is not empty, and has no space (of any kind in Unicode) and no plus.

    Raises:
        EvidenceError: it is not a name.
    """
    if not name or "+" in name or any(character.isspace() for character in name):
        msg = "not the name of a key"
        raise EvidenceError(msg)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A key by which signatures are verified."""

    name: str
    kind: int
    public_key: bytes
    given_id: bytes | None = None
    """The id of a key whose kind is not known here: other kinds make their ids in other ways."""

    @property
    def key_id(self) -> bytes:
        """The first 4 bytes of SHA-256(name ‖ newline ‖ kind ‖ public key)."""
        if self.given_id is not None:
            return self.given_id
        key = self.name.encode() + b"\n" + bytes([self.kind]) + self.public_key
        return sha256(key).digest()[:KEY_ID_BYTES]

    @property
    def vkey(self) -> str:
        """The key as text: `name+hex8+base64(kind ‖ public key)`."""
        key = b64encode(bytes([self.kind]) + self.public_key).decode("ascii")
        return f"{self.name}+{self.key_id.hex()}+{key}"

    @property
    def checkable(self) -> bool:
        """Whether signatures by this kind of key can be checked here."""
        return self.kind in _PUBLIC_KEY_BYTES and not _lacks_mldsa(self)

    @classmethod
    def parse(cls, vkey: str, *, any_kind: bool = False) -> "Verifier":
        """Read a verifier key; `any_kind`: also of a kind that cannot be checked here.

        Raises:
            EvidenceError: it is malformed, its id is wrong, it is no key that anyone can have made
                honestly, or its kind cannot be checked here.
        """
        name, _, rest = vkey.partition("+")
        key_id, _, encoded = rest.partition("+")
        check_name(name)
        key = strict_base64(encoded)
        if not key:
            msg = "not a verifier key"
            raise EvidenceError(msg)
        verifier = cls(name, key[0], key[1:])
        if verifier.key_id.hex() != key_id:
            if verifier.kind not in _PUBLIC_KEY_BYTES and _KEY_ID.match(key_id):
                verifier = replace(verifier, given_id=bytes.fromhex(key_id))
            else:
                msg = "the id of the key does not go with it"
                raise EvidenceError(msg)
        length = _PUBLIC_KEY_BYTES.get(verifier.kind)
        if length is not None and len(verifier.public_key) != length:
            msg = f"a key of kind {verifier.kind} has {length} bytes"
            raise EvidenceError(msg)
        if verifier.kind in {ED25519, COSIGNATURE}:
            _check_point(verifier.public_key)
        if not any_kind and not verifier.checkable:
            msg = f"a kind of key that is not known here: {verifier.kind}"
            if length is not None:
                msg = f"kind {verifier.kind} of keys cannot be checked on this machine"
            raise EvidenceError(msg)
        return verifier

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a note's text."""
        time, message = 0, text
        if self.kind != ED25519:
            time, signature = (
                int.from_bytes(signature[:TIME_BYTES], "big"),
                signature[TIME_BYTES:],
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


def _check_point(public_key: bytes) -> None:
    """Refuse Ed25519 keys of small order, and other encodings than the one of RFC 8032 §5.1.2.

    Both would let one signature be good by several keys, and verifiers disagree about them.
    """
    y = int.from_bytes(public_key, "little") & (2**255 - 1)
    if y >= _P or y in _SMALL_ORDER:
        msg = "an Ed25519 key of small order, or not in canonical form"
        raise EvidenceError(msg)


def _lacks_mldsa(verifier: Verifier) -> bool:
    """Whether this needs ML-DSA and the OpenSSL here, another than that of the wheels, has none."""
    if verifier.kind != MLDSA_COSIGNATURE:
        return False
    try:
        MLDSA44PublicKey.from_public_bytes(verifier.public_key)
    except UnsupportedAlgorithm:
        return True
    return False
