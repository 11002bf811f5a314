"""Ed25519, by `cryptography`: the extra `tokens`."""

from __future__ import annotations

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError as error:
    raise ImportError("Ed25519 needs: pip install 'countersign-client[tokens]'") from error


def verifies(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the holder of the private key signed this message."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
