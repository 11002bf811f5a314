"""The Merkle tree of RFC 6962 §2.1: hashes, roots, and proofs made and verified (RFC 9162 §2.1).

A tree of n leaves is cut at the largest power of two below n, so that whatever is once complete
never changes. `Node` names such a complete (perfect) subtree: a proof needs only a few of their
hashes, which the caller reads from its storage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline.verify import root_from

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
SIZE_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Node:
    """The complete subtree over the leaves from `index << level` to before `index + 1 << level`."""

    level: int
    index: int


Read: TypeAlias = Callable[[Sequence[Node]], Sequence[bytes]]
"""Gives the hashes of these nodes, in their order."""


def leaf_hash(entry: bytes) -> bytes:
    """The hash of a leaf: SHA-256(0x00 ‖ entry)."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node: SHA-256(0x01 ‖ left ‖ right)."""
    return sha256(b"\x01" + left + right).digest()


def fold(subtrees: Sequence[bytes]) -> bytes:
    """The root over adjoining complete subtrees, the largest first."""
    if not subtrees:
        return EMPTY_ROOT
    root = subtrees[-1]
    for left in reversed(subtrees[:-1]):
        root = node_hash(left, root)
    return root


def subtrees(start: int, end: int) -> list[Node]:
    """The fewest complete subtrees that hold the leaves from `start` to before `end`, in order."""
    found = []
    while start < end:
        level = (end - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        found.append(Node(level, start >> level))
        start += 1 << level
    return found


def root_over(nodes: Sequence[Node], hashes: Sequence[bytes]) -> bytes:
    """The root of the tree that these complete subtrees make up, in order from the first leaf."""
    found: list[tuple[int, bytes]] = []
    for node, hash_ in zip(nodes, hashes, strict=True):
        level, root = node.level, hash_
        while found and found[-1][0] == level:
            root = node_hash(found.pop()[1], root)
            level += 1
        found.append((level, root))
    return fold([root for _, root in found])


def inclusion_path(index: int, size: int, read: Read) -> list[bytes]:
    """The hashes that lead from a leaf to the root, the deepest first (RFC 6962 §2.1.1)."""
    _check_place(index, size)
    ranges: list[tuple[int, int]] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return _hashes(list(reversed(ranges)), read)


def consistency_path(old: int, new: int, read: Read) -> list[bytes]:
    """The hashes that prove the tree of `old` leaves a prefix of that of `new` (§2.1.2)."""
    if not 0 <= old <= new <= SIZE_MAX:
        raise EvidenceError(f"a tree of {old} cannot be the beginning of one of {new}")
    if old in {0, new}:
        return []
    ranges: list[tuple[int, int]] = []
    start, end, whole = 0, new, True
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start, whole = middle, False
    if not whole:
        ranges.append((start, end))
    return _hashes(list(reversed(ranges)), read)


def verify_inclusion(
    index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes
) -> None:
    """Check that the leaf with this index and hash is in the tree of this size and root.

    `path` is the result of `inclusion_path` (RFC 9162 §2.1.3.2).
    """
    _check_place(index, size)
    if any(len(hash_) != HASH_BYTES for hash_ in (leaf, root, *path)):
        raise EvidenceError(f"a hash has {HASH_BYTES} bytes")
    if by_the_rules(root_from)(index, size, leaf, path) != root:
        raise EvidenceError("the path leads to another root")


def _split(size: int) -> int:
    """The largest power of two smaller than this number of leaves."""
    return 1 << (size - 1).bit_length() - 1


def _hashes(ranges: Sequence[tuple[int, int]], read: Read) -> list[bytes]:
    """The hash over each range of leaves; all that they are made of is read at once."""
    parts = [subtrees(start, end) for start, end in ranges]
    found = iter(read([node for nodes in parts for node in nodes]))
    return [fold([next(found) for _ in nodes]) for nodes in parts]


def _check_place(index: int, size: int) -> None:
    if not 0 <= index < size <= SIZE_MAX:
        raise EvidenceError(f"a tree of {size} has no entry {index}")
