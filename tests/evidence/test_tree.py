"""The Merkle tree: the published vectors, and RFC 6962 word for word on any tree."""

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from countersign_evidence import tree
from countersign_evidence.errors import EvidenceError
from tests.evidence import rfc6962_reference as rfc
from tests.support import depth
from tests.support.merkle import root_at, root_hash, verify_consistency

SIZES = st.integers(1, 300)


def entries(size: int) -> list[bytes]:
    return [b"entry %d" % number for number in range(size)]


def reader(data: Sequence[bytes]) -> tree.Read:
    """Reads nodes by hashing the entries below them, as the RFC does."""

    def read(nodes: Sequence[tree.Node]) -> list[bytes]:
        for node in nodes:
            assert node.index + 1 << node.level <= len(data)
        return [
            rfc.mth(data[node.index << node.level : node.index + 1 << node.level]) for node in nodes
        ]

    return read


def accepts(verify: Callable[[], None]) -> bool:
    try:
        verify()
    except EvidenceError:
        return False
    return True


def _cases(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(folder.rglob("*.json"))]


def _hashes(encoded: Sequence[str] | None) -> list[bytes]:
    return [b64decode(item) for item in encoded or ()]


def _included(case: dict[str, Any]) -> None:
    tree.verify_inclusion(
        case["leafIdx"],
        case["treeSize"],
        b64decode(case["leafHash"] or ""),
        _hashes(case["proof"]),
        b64decode(case["root"] or ""),
    )


def _consistent(case: dict[str, Any]) -> None:
    verify_consistency(
        case["size1"],
        case["size2"],
        _hashes(case["proof"]),
        b64decode(case["root1"] or ""),
        b64decode(case["root2"] or ""),
    )


@pytest.mark.vectors
@pytest.mark.parametrize(
    ("kind", "verify"), [("inclusion", _included), ("consistency", _consistent)]
)
def test_published_proofs_are_judged_as_published(
    shared_vectors: Path, kind: str, verify: Callable[[dict[str, Any]], None]
) -> None:
    """Each of transparency-dev/merkle's cases: accepted or refused as its file says."""
    cases = _cases(shared_vectors / "merkle" / kind)
    assert len(cases) > 20
    for case in cases:
        assert accepts(partial(verify, case)) is not case["wantErr"], case["desc"]


@given(st.integers(0, 300))
def test_a_root_matches_the_rfc(size: int) -> None:
    """From all leaves at once, and from complete subtrees."""
    data = entries(size)
    assert root_hash([tree.leaf_hash(entry) for entry in data]) == rfc.mth(data)
    assert root_at(size, reader(data)) == rfc.mth(data)


@settings(max_examples=depth.drawn(60))
@given(SIZES, st.data())
def test_an_inclusion_path_matches_the_rfc_and_verifies(size: int, draw: st.DataObject) -> None:
    """Any entry of any tree; no other entry, place or size passes with it."""
    data, index = entries(size), draw.draw(st.integers(0, size - 1))
    path, root = tree.inclusion_path(index, size, reader(data)), rfc.mth(data)
    assert path == rfc.path(index, data)
    leaf = tree.leaf_hash(data[index])
    tree.verify_inclusion(index, size, leaf, path, root)
    other = draw.draw(st.integers(0, size))
    if other != index:
        assert not accepts(lambda: tree.verify_inclusion(other, size, leaf, path, root))
    assert not accepts(lambda: tree.verify_inclusion(index, size, root, [*path, leaf], root))
    if path:
        assert not accepts(lambda: tree.verify_inclusion(index, size, leaf, path[:-1], root))
        assert not accepts(lambda: tree.verify_inclusion(index, size, leaf, path[::-1], leaf))


@settings(max_examples=depth.drawn(60))
@given(SIZES, st.data())
def test_a_consistency_path_matches_the_rfc_and_verifies(size: int, draw: st.DataObject) -> None:
    """Any two sizes of one tree; and a tree that was rewritten does not pass."""
    old = draw.draw(st.integers(1, size))
    data = entries(size)
    path = tree.consistency_path(old, size, reader(data))
    old_root, root = rfc.mth(data[:old]), rfc.mth(data)
    assert path == ([] if old == size else rfc.proof(old, data))
    verify_consistency(old, size, path, old_root, root)
    rewritten = rfc.mth([b"another", *data[1:old]])
    assert not accepts(lambda: verify_consistency(old, size, path, rewritten, root))
    assume(path)
    assert not accepts(lambda: verify_consistency(old, size, path[:-1], old_root, root))
    assert not accepts(lambda: verify_consistency(old, size, [*path, root], old_root, root))


@given(
    st.integers(-2, 2**65),
    st.integers(-2, 2**65),
    st.lists(st.binary(min_size=32, max_size=32), max_size=70),
    st.binary(min_size=30, max_size=33),
)
def test_noise_is_refused_with_an_evidence_error(
    first: int, second: int, path: list[bytes], hash_: bytes
) -> None:
    """Whatever the numbers and hashes are."""
    assume(first != second)
    assert not accepts(lambda: tree.verify_inclusion(first, second, hash_, path, b"\x01" * 32))
    if first != 0:
        assert not accepts(lambda: verify_consistency(first, second, path, hash_, b"\x01" * 32))


def test_a_path_needs_only_existing_entries() -> None:
    """Index and sizes outside of the tree."""
    read = reader(entries(3))
    for index in (-1, 3, 2**63):
        with pytest.raises(EvidenceError):
            tree.inclusion_path(index, 3, read)
    with pytest.raises(EvidenceError):
        tree.consistency_path(4, 3, read)
