"""Reading a log: roots of leaves, entries of a bundle, and consistency of two trees.

The service itself only writes these.
"""

from __future__ import annotations

from collections.abc import Sequence

from countersign_evidence.errors import EvidenceError
from countersign_evidence.tree import EMPTY_ROOT, Read, fold, node_hash, subtrees


def root_hash(leaf_hashes: Sequence[bytes]) -> bytes:
    """The root of the tree with these leaf hashes; without any, SHA-256 of nothing."""
    stack: list[bytes] = []
    for position, leaf in enumerate(leaf_hashes):
        node = leaf
        while position & 1:
            node = node_hash(stack.pop(), node)
            position >>= 1  # noqa: PLW2901 - its trailing ones count the subtrees to close
        stack.append(node)
    return fold(stack)


def root_at(size: int, read: Read) -> bytes:
    """The root that the tree had at this size."""
    return fold(read(subtrees(0, size)))


def verify_consistency(  # noqa: C901, PLR0912 - the steps of the RFC, in its order
    old: int, new: int, path: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Check that one tree is the beginning of another (RFC 9162 §2.1.4.2)."""
    if any(len(hash_) != 32 for hash_ in (old_root, new_root, *path)):
        raise EvidenceError("a hash has 32 bytes")
    if not 0 <= old <= new:
        raise EvidenceError(f"a tree of {old} cannot be the beginning of one of {new}")
    if old in {0, new}:
        if path:
            raise EvidenceError("the path must be empty")
        if old == new and old_root != new_root:
            raise EvidenceError("two roots for one size")
        if old == 0 and old_root != EMPTY_ROOT:
            raise EvidenceError("the root of an empty tree is SHA-256 of nothing")
        return
    if not path:
        raise EvidenceError("the path is empty")
    hashes = list(path) if old & (old - 1) else [old_root, *path]
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    first_root = second_root = hashes[0]
    for hash_ in hashes[1:]:
        if last == 0:
            raise EvidenceError("the path is longer than the way to the root")
        if first & 1 or first == last:
            first_root = node_hash(hash_, first_root)
            second_root = node_hash(hash_, second_root)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            second_root = node_hash(second_root, hash_)
        first, last = first >> 1, last >> 1
    if last:
        raise EvidenceError("the path ends before the root")
    if first_root != old_root:
        raise EvidenceError("the path leads to another root of the smaller tree")
    if second_root != new_root:
        raise EvidenceError("the path leads to another root of the larger tree")


def parse_entry_bundle(data: bytes) -> list[bytes]:
    """The entries of a bundle."""
    entries, at = [], 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if at + 2 > len(data) or end > len(data):
            raise EvidenceError("the bundle ends in the middle of an entry")
        entries.append(data[at + 2 : end])
        at = end
    return entries
