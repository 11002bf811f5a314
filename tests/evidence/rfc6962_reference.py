"""RFC 6962 §2.1 word for word: slow, recursive, and sharing nothing with the code under test."""

from collections.abc import Sequence
from hashlib import sha256


def split(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def mth(d: Sequence[bytes]) -> bytes:
    """MTH(D[n]) of §2.1, over entries."""
    if not d:
        return sha256().digest()
    if len(d) == 1:
        return sha256(b"\x00" + d[0]).digest()
    k = split(len(d))
    return sha256(b"\x01" + mth(d[:k]) + mth(d[k:])).digest()


def path(m: int, d: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D[n]) of §2.1.1."""
    if len(d) == 1:
        return []
    k = split(len(d))
    if m < k:
        return [*path(m, d[:k]), mth(d[k:])]
    return [*path(m - k, d[k:]), mth(d[:k])]


def proof(m: int, d: Sequence[bytes]) -> list[bytes]:
    """PROOF(m, D[n]) of §2.1.2, for 0 < m < n."""
    return subproof(m, d, whole=True)


def subproof(m: int, d: Sequence[bytes], *, whole: bool) -> list[bytes]:
    """SUBPROOF(m, D[n], b) of §2.1.2."""
    if m == len(d):
        return [] if whole else [mth(d)]
    k = split(len(d))
    if m <= k:
        return [*subproof(m, d[:k], whole=whole), mth(d[k:])]
    return [*subproof(m - k, d[k:], whole=False), mth(d[:k])]
