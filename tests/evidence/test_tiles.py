"""Tiles (c2sp.org/tlog-tiles): paths, the growing edge, reading proofs from tiles."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign_evidence import tree
from countersign_evidence.errors import EvidenceError
from countersign_evidence.tiles import (
    GrowingTree,
    TileId,
    TileReader,
    entry_bundle,
    parse_tile_path,
    tile_path,
)
from tests.evidence import rfc6962_reference as rfc
from tests.evidence.test_tree import entries
from tests.support import depth
from tests.support.merkle import parse_entry_bundle, root_at, root_hash, verify_consistency

BIG = 66_000
LEAVES = [tree.leaf_hash(entry) for entry in entries(BIG)]


class Tiles:
    """All tiles of a tree, made level by level from its leaves; counts reads."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.levels = [list(leaves)]
        while len(self.levels[-1]) >= 256:
            below = self.levels[-1]
            self.levels.append(
                [root_hash(below[at : at + 256]) for at in range(0, len(below) // 256 * 256, 256)]
            )
        self.asked: list[TileId] = []

    def __call__(self, tiles: Sequence[TileId]) -> list[bytes]:
        self.asked += tiles
        return [
            b"".join(self.levels[t.level][t.index * 256 : t.index * 256 + t.width]) for t in tiles
        ]


@pytest.fixture(scope="module")
def big() -> Tiles:
    return Tiles(LEAVES)


@pytest.mark.parametrize(
    ("path", "tile"),
    [
        ("0/001", (0, 1, 256)),
        ("0/001.p/5", (0, 1, 5)),
        ("5/x123/x456/078", (5, 123456078, 256)),
        ("5/x123/x456/078.p/2", (5, 123456078, 2)),
        ("0/x003/x057/500", (0, 3057500, 256)),
        ("entries/x001/x234/067", ("entries", 1234067, 256)),
        ("63/000.p/255", (63, 0, 255)),
    ],
)
def test_a_tile_has_one_path(path: str, tile: tuple[int, int, int]) -> None:
    """Paths as in golang.org/x/mod/sumdb/tlog and C2SP tlog-tiles, without the height."""
    assert tile_path(*tile) == path
    assert parse_tile_path(path) == tile


@pytest.mark.parametrize(
    "path",
    [
        "3/123/456/078", "-1/123", "0/1", "0/x000/001", "0/001.p/0", "0/001.p/256", "0/001.p/05",
        "data/001", "0/x1/001", "0/\u0661\u0661\u0661",
        "64/000", "00/000", "0/001/", "/0/001", "0/001.p/",
        "0/001\n", "0/x999/x999/x999/x999/x999/x999/999", "", "tile/0/001",
    ],
)  # fmt: skip
def test_no_other_path_is_accepted(path: str) -> None:
    """Other heights, leading zeros, partial tiles of full width, other digits."""
    with pytest.raises(EvidenceError):
        parse_tile_path(path)


@given(st.text(alphabet="0123456789/x.pentris-", max_size=24))
def test_a_parsed_path_is_written_the_same(path: str) -> None:
    """Reading lets out EvidenceError only, and never takes two paths for one tile."""
    try:
        tile = parse_tile_path(path)
    except EvidenceError:
        return
    assert tile_path(*tile) == path


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=3))
def test_a_tree_restored_from_its_edge_grows_the_same(steps: list[int]) -> None:
    """However often it stops: roots are those of all leaves, tiles those of the specification."""
    growing, taken, tiles = GrowingTree(), {}, Tiles([])
    for step in steps:
        for leaf in LEAVES[growing.size : growing.size + step]:
            growing.extend([leaf])
        assert growing.root() == root_hash(LEAVES[: growing.size])
        for tile in growing.take_tiles():
            assert (tile.level, tile.index) not in taken
            taken[tile.level, tile.index] = tile
        assert growing.take_tiles() == []
        tiles = Tiles(LEAVES[: growing.size])
        edge = [level[len(level) // 256 * 256 :] for level in tiles.levels]
        growing = GrowingTree(growing.size, edge)
        assert growing.root() == root_hash(LEAVES[: growing.size])
    for (level, index), tile in taken.items():
        hashes = tiles.levels[level][index * 256 : index * 256 + 256]
        assert tile.hashes == b"".join(hashes)
        assert tile.root == root_hash(hashes)
    assert len(taken) == sum(len(level) // 256 for level in tiles.levels)


def test_a_tree_of_two_full_levels_of_tiles_is_right() -> None:
    """Past 65,536 leaves, where a tile of the second level is complete."""
    growing = GrowingTree()
    for leaf in LEAVES:
        growing.extend([leaf])
    assert growing.root() == root_hash(LEAVES)
    full = [tile for tile in growing.take_tiles() if tile.level == 1]
    assert [(tile.index, tile.root) for tile in full] == [(0, root_hash(LEAVES[:65536]))]


@pytest.mark.parametrize(
    ("size", "edge"), [(1, ()), (0, ([b"x" * 32],)), (256, ([],)), (2, ([b"x" * 32],))]
)
def test_an_edge_of_another_size_is_refused(size: int, edge: Sequence[Sequence[bytes]]) -> None:
    """A damaged database does not become a tree."""
    with pytest.raises(EvidenceError):
        GrowingTree(size, edge)


@settings(max_examples=depth.drawn(60), deadline=None)
@given(st.integers(1, BIG), st.data())
def test_proofs_read_from_tiles_verify_and_read_few_tiles(
    big: Tiles, size: int, draw: st.DataObject
) -> None:
    """Any entry and any two sizes, from the tiles of a tree that may be larger."""
    held = draw.draw(st.integers(size, BIG))
    read = TileReader(big, held)
    root = root_at(size, read)
    assert root == root_hash(LEAVES[:size])
    index, old = draw.draw(st.integers(0, size - 1)), draw.draw(st.integers(1, size))
    big.asked.clear()
    path = tree.inclusion_path(index, size, read)
    assert len(big.asked) <= 2 * 3
    tree.verify_inclusion(index, size, LEAVES[index], path, root)
    consistent = tree.consistency_path(old, size, read)
    verify_consistency(old, size, consistent, root_hash(LEAVES[:old]), root)


@settings(max_examples=30)
@given(st.integers(1, 300), st.data())
def test_tiles_and_the_rfc_agree(size: int, draw: st.DataObject) -> None:
    """The path from tiles is PATH of the RFC, hash by hash."""
    index = draw.draw(st.integers(0, size - 1))
    data = entries(size)
    read = TileReader(Tiles([tree.leaf_hash(entry) for entry in data]), size)
    assert tree.inclusion_path(index, size, read) == rfc.path(index, data)


def test_a_truncated_tile_is_refused() -> None:
    """A store that gives too few bytes makes no proof."""
    read = TileReader(lambda tiles: [b"" for _ in tiles], 10)
    with pytest.raises(EvidenceError):
        tree.inclusion_path(3, 10, read)


@given(st.lists(st.binary(max_size=400), max_size=20))
def test_entries_are_read_back_from_their_bundle(data: list[bytes]) -> None:
    """Empty ones and long ones."""
    assert parse_entry_bundle(entry_bundle(data)) == data


@given(st.binary(max_size=64))
def test_any_bytes_are_a_bundle_of_entries_or_refused(data: bytes) -> None:
    """Parsed bytes are written the same; only EvidenceError is raised."""
    try:
        found = parse_entry_bundle(data)
    except EvidenceError:
        return
    assert entry_bundle(found) == data


def test_an_entry_that_does_not_fit_is_refused() -> None:
    """Two bytes tell its length."""
    assert len(entry_bundle([bytes(65535)])) == 65537
    with pytest.raises(EvidenceError):
        entry_bundle([bytes(65536)])
