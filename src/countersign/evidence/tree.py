"""The Merkle tree of RFC 6962 §2.1: hashes, roots, and proofs made and verified (RFC 9162 §2.1).

A tree of n leaves is cut at the largest power of two below n, so that whatever is once complete
never changes. `Node` names such a complete (perfect) subtree: all that a proof needs are hashes of
a few of them, which the caller reads from wherever they are kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from countersign.evidence.errors import EvidenceError

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


def root_hash(leaf_hashes: Sequence[bytes]) -> bytes:
    """The root of the tree with these leaf hashes; of none, SHA-256 of nothing."""
    stack: list[bytes] = []
    for position, leaf in enumerate(leaf_hashes):
        node = leaf
        while position & 1:
            node = node_hash(stack.pop(), node)
            position >>= 1  # noqa: PLW2901 - its trailing ones count the subtrees to close
        stack.append(node)
    return fold(stack)


def fold(subtrees: Sequence[bytes]) -> bytes:
    """The root over adjoining complete subtrees, the largest first."""
    if not subtrees:
        return EMPTY_ROOT
    root = subtrees[-1]
    for left in reversed(subtrees[:-1]):
        root = node_hash(left, root)
    return root


def cover(start: int, end: int) -> list[Node]:
    """The complete subtrees that make up the leaves from `start` to before `end`.

    `start` must be where the tree over them can begin: a multiple of the largest power of two
    that fits.
    """
    found = []
    while start < end:
        level = (end - start).bit_length() - 1
        found.append(Node(level, start >> level))
        start += 1 << level
    return found


def root_at(size: int, read: Read) -> bytes:
    """The root that the tree had at this size."""
    return fold(read(cover(0, size)))


def inclusion_path(index: int, size: int, read: Read) -> list[bytes]:
    """The hashes that lead from a leaf to the root, the deepest first (RFC 6962 §2.1.1).

    Raises:
        EvidenceError: there is no such leaf in a tree of this size.
    """
    _check_size(size)
    if not 0 <= index < size:
        msg = f"a tree of {size} has no entry {index}"
        raise EvidenceError(msg)
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
    """The hashes that show the tree of `old` leaves to begin that of `new` (RFC 6962 §2.1.2).

    Raises:
        EvidenceError: `old` is larger than `new`.
    """
    _check_size(new)
    if not 0 <= old <= new:
        msg = f"a tree of {old} cannot be the beginning of one of {new}"
        raise EvidenceError(msg)
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
    """Check that a leaf is in the tree with this root (RFC 9162 §2.1.3.2).

    Args:
        index: the leaf's, from 0.
        size: of the tree, in leaves.
        leaf: the leaf's hash.
        path: what `inclusion_path` gave.
        root: of the tree.

    Raises:
        EvidenceError: it is not, or the path does not show it.
    """
    _check_size(size)
    _check_hashes(leaf, root, *path)
    if not 0 <= index < size:
        msg = f"there is no entry {index} in a tree of {size}"
        raise EvidenceError(msg)
    first, last, computed = index, size - 1, leaf
    for hash_ in path:
        if last == 0:
            msg = "the path is longer than the way to the root"
            raise EvidenceError(msg)
        if first & 1 or first == last:
            computed = node_hash(hash_, computed)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            computed = node_hash(computed, hash_)
        first, last = first >> 1, last >> 1
    if last:
        msg = "the path ends before the root"
        raise EvidenceError(msg)
    if computed != root:
        msg = "the path leads to another root"
        raise EvidenceError(msg)


def verify_consistency(  # noqa: C901, PLR0912 - the steps of the RFC, in its order
    old: int, new: int, path: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Check that one tree is the beginning of another (RFC 9162 §2.1.4.2).

    Raises:
        EvidenceError: it is not, or the path does not show it.
    """
    _check_size(new)
    _check_hashes(old_root, new_root, *path)
    if not 0 <= old <= new:
        msg = f"a tree of {old} cannot be the beginning of one of {new}"
        raise EvidenceError(msg)
    if old in {0, new}:
        if path:
            msg = "the path must be empty"
            raise EvidenceError(msg)
        if old == new and old_root != new_root:
            msg = "two roots for one size"
            raise EvidenceError(msg)
        if old == 0 and old_root != EMPTY_ROOT:
            msg = "the root of an empty tree is SHA-256 of nothing"
            raise EvidenceError(msg)
        return
    if not path:
        msg = "the path is empty"
        raise EvidenceError(msg)
    hashes = list(path) if old & (old - 1) else [old_root, *path]
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    first_root = second_root = hashes[0]
    for hash_ in hashes[1:]:
        if last == 0:
            msg = "the path is longer than the way to the root"
            raise EvidenceError(msg)
        if first & 1 or first == last:
            first_root = node_hash(hash_, first_root)
            second_root = node_hash(hash_, second_root)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            second_root = node_hash(second_root, hash_)
        first, last = first >> 1, last >> 1
    if last:
        msg = "the path ends before the root"
        raise EvidenceError(msg)
    if first_root != old_root:
        msg = "the path leads to another root of the smaller tree"
        raise EvidenceError(msg)
    if second_root != new_root:
        msg = "the path leads to another root of the larger tree"
        raise EvidenceError(msg)


def _split(size: int) -> int:
    """The largest power of two smaller than this number of leaves."""
    return 1 << (size - 1).bit_length() - 1


def _hashes(ranges: Sequence[tuple[int, int]], read: Read) -> list[bytes]:
    """The hash over each range of leaves; all that they are made of is read at once."""
    parts = [cover(start, end) for start, end in ranges]
    found = iter(read([node for nodes in parts for node in nodes]))
    return [fold([next(found) for _ in nodes]) for nodes in parts]


def _check_size(size: int) -> None:
    if not 0 <= size <= SIZE_MAX:
        msg = f"not the size of a tree: {size}"
        raise EvidenceError(msg)


def _check_hashes(*hashes: bytes) -> None:
    if any(len(hash_) != HASH_BYTES for hash_ in hashes):
        msg = f"a hash has {HASH_BYTES} bytes"
        raise EvidenceError(msg)
