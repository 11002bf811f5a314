"""Signing for tests, by the specifications and `cryptography` alone."""

from base64 import b64encode
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from tests.offline.builder import vkey

MLDSA = MLDSA44PrivateKey.from_seed_bytes(bytes(32))
MLDSA_NAME = "pq.example.com/w"


def mldsa_key_id(name: str = MLDSA_NAME) -> bytes:
    key = MLDSA.public_key().public_bytes_raw()
    return sha256(name.encode() + b"\n\x06" + key).digest()[:4]


def mldsa_vkey(name: str = MLDSA_NAME) -> str:
    key = b64encode(b"\x06" + MLDSA.public_key().public_bytes_raw()).decode()
    return f"{name}+{mldsa_key_id(name).hex()}+{key}"


def mldsa_line(origin: str, size: int, root: bytes, time: int, by: str = MLDSA_NAME) -> str:
    """A cosignature line by ML-DSA-44 over a checkpoint, as tlog-cosignature lays it out."""
    name = by.encode()
    message = b"subtree/v1\n\x00" + bytes([len(name)]) + name + time.to_bytes(8, "big")
    message += bytes([len(origin)]) + origin.encode()
    message += bytes(8) + size.to_bytes(8, "big") + root
    signature = mldsa_key_id(by) + time.to_bytes(8, "big") + MLDSA.sign(message)
    return f"\u2014 {by} {b64encode(signature).decode()}\n"


__all__ = ["MLDSA", "MLDSA_NAME", "mldsa_line", "mldsa_vkey", "vkey"]
