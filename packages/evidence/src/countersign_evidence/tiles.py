"""Tiles of a tree (c2sp.org/tlog-tiles): 256 neighbouring hashes of every eighth level."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeAlias

from countersign_evidence.entry import entry_form, entry_length
from countersign_evidence.errors import EvidenceError
from countersign_evidence.tree import HASH_BYTES, SIZE_MAX, Node, fold, leaf_hash, node_hash

HEIGHT: Final = 8
WIDTH: Final = 1 << HEIGHT
ENTRY_BYTES_MAX: Final = 65535
_PATH: Final = re.compile(
    r"(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TileId:
    """A tile: its level (in tiles), its index there, and its number of hashes."""

    level: int
    index: int
    width: int

    @property
    def path(self) -> str:
        """Its path below `tile/`."""
        return tile_path(self.level, self.index, self.width)


@dataclass(frozen=True, slots=True)
class FullTile:
    """A tile that is complete, and the hash of the subtree that it is."""

    level: int
    index: int
    hashes: bytes
    root: bytes


ReadTiles: TypeAlias = Callable[[Sequence[TileId]], Sequence[bytes]]
"""Gives the hashes of these tiles, one after the other in each, in the order of the tiles."""


def tile_path(level: int | Literal["entries"], index: int, width: int = WIDTH) -> str:
    """The path of a tile, or of a bundle of entries, below `tile/`."""
    if (
        not (level == "entries" or 0 <= level <= 63)
        or not 0 <= index <= SIZE_MAX
        or not 1 <= width <= WIDTH
    ):
        raise EvidenceError(f"not a tile: level {level}, index {index}, width {width}")
    parts = [f"{index % 1000:03}"]
    rest = index // 1000
    while rest:
        parts.append(f"x{rest % 1000:03}")
        rest //= 1000
    partial = "" if width == WIDTH else f".p/{width}"
    return f"{level}/{'/'.join(reversed(parts))}{partial}"


def parse_tile_path(path: str) -> tuple[int | Literal["entries"], int, int]:
    """Level, index and width of the tile at this path below `tile/`."""
    found = _PATH.match(path)
    if found is None:
        raise EvidenceError("not the path of a tile")
    level: int | Literal["entries"] = "entries" if found[1] == "entries" else int(found[1])
    index = int(found[2].replace("/", "").replace("x", ""))
    width = int(found[3] or WIDTH)
    # Only the canonical path: no leading groups of zeros, no partial tile of full width.
    if (found[3] and width >= WIDTH) or tile_path(level, index, width) != path:
        raise EvidenceError("not the path of a tile")
    return level, index, width


class GrowingTree:
    """The right edge of a tree: enough to append to it and to compute its root.

    It keeps the incomplete tile of each level, and the complete subtrees of the tree (largest
    first), so that an append hashes twice on average and a root as often as the tree is high.
    """

    def __init__(self, size: int = 0, edge: Sequence[Sequence[bytes]] = ()) -> None:
        """A tree of this size; `edge[k]` are the hashes of its incomplete tile of level k."""
        self.size = size
        self._edge = [list(hashes) for hashes in edge]
        self._subtrees: list[bytes] = []
        self._tiles: list[FullTile] = []
        widths = [len(hashes) for hashes in self._edge]
        expected = [size >> HEIGHT * level & (WIDTH - 1) for level in range(len(widths))]
        if widths != expected or size >> HEIGHT * len(widths):
            raise EvidenceError(f"not the edge of a tree of {size}")
        for hashes in reversed(self._edge):
            start = 0
            while start < len(hashes):
                length = 1 << (len(hashes) - start).bit_length() - 1
                self._subtrees.append(_complete(hashes[start : start + length]))
                start += length

    @property
    def edge(self) -> tuple[tuple[bytes, ...], ...]:
        """The hashes of the incomplete tile of each level; a tree can be restored from them."""
        return tuple(tuple(hashes) for hashes in self._edge)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append these leaf hashes."""
        edge, subtrees = self._edge, self._subtrees
        if not edge:
            edge.append([])
        for node in leaves:
            position, height, level = self.size, 0, 0
            edge[0].append(node)
            while position & 1:
                node = node_hash(subtrees.pop(), node)  # noqa: PLW2901 - from the leaf to the root
                position >>= 1
                height += 1
                if height == HEIGHT:
                    # A full height of subtrees was closed: that tile is complete.
                    hashes = edge[level]
                    index = self.size >> HEIGHT * (level + 1)
                    self._tiles.append(FullTile(level, index, b"".join(hashes), node))
                    edge[level] = []
                    level, height = level + 1, 0
                    if level == len(edge):
                        edge.append([])
                    edge[level].append(node)
            subtrees.append(node)
            self.size += 1

    def root(self) -> bytes:
        return fold(self._subtrees)

    def take_tiles(self) -> list[FullTile]:
        """The tiles completed since the last call."""
        tiles, self._tiles = self._tiles, []
        return tiles


class TileReader:
    """Reads nodes of a tree from its tiles: a `tree.Read`."""

    def __init__(self, read: ReadTiles, size: int) -> None:
        """`read` gives tiles; `size` is that of a tree that the hashes are known to contain."""
        self._read = read
        self._size = size

    def __call__(self, nodes: Sequence[Node]) -> list[bytes]:
        """The hashes of these nodes; each tile is read once."""
        wanted = dict.fromkeys(self._tile(node) for node in nodes)
        found = dict(zip(wanted, self._read(list(wanted)), strict=True))
        for tile, hashes in found.items():
            if len(hashes) != tile.width * HASH_BYTES:
                raise EvidenceError(f"tile {tile.path} is not complete")
        return [self._hash(node, found[self._tile(node)]) for node in nodes]

    def _tile(self, node: Node) -> TileId:
        level = node.level // HEIGHT
        index = node.index >> HEIGHT - node.level % HEIGHT
        width = min(WIDTH, (self._size >> HEIGHT * level) - index * WIDTH)
        return TileId(level, index, width)

    @staticmethod
    def _hash(node: Node, hashes: bytes) -> bytes:
        length = 1 << node.level % HEIGHT
        start = (node.index * length) % WIDTH
        if (start + length) * HASH_BYTES > len(hashes):
            raise EvidenceError(f"the tree has no node {node.index} at level {node.level}")
        return _complete(
            [hashes[i * HASH_BYTES : (i + 1) * HASH_BYTES] for i in range(start, start + length)]
        )


def entry_bundle(entries: Sequence[bytes]) -> bytes:
    """A bundle of entries: each with its length before it, in two bytes, big-endian."""
    if any(len(entry) > ENTRY_BYTES_MAX for entry in entries):
        raise EvidenceError(f"an entry has at most {ENTRY_BYTES_MAX} bytes")
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def tiles_at(size: int) -> list[TileId]:
    """The incomplete tiles of a tree of this size, the lowest first."""
    levels = range((size.bit_length() + HEIGHT - 1) // HEIGHT)
    widths = [(size >> HEIGHT * level) % WIDTH for level in levels]
    return [
        TileId(level, size >> HEIGHT * (level + 1), width)
        for level, width in enumerate(widths)
        if width
    ]


def tree_of(size: int, read: Callable[[TileId], bytes]) -> GrowingTree:
    """The tree of this size by its incomplete tiles; EvidenceError if one is not complete."""
    edge: list[list[bytes]] = [[] for _ in range((size.bit_length() + HEIGHT - 1) // HEIGHT)]
    for tile in tiles_at(size):
        body = read(tile)
        edge[tile.level] = [body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)]
    return GrowingTree(size, edge)


def tile_nodes(path: str, body: bytes, host: str) -> list[tuple[Node, bytes]]:
    """The nodes and hashes of a tile, or of a bundle of entries of this host's log.

    In a complete tile, its root comes last. Raises EvidenceError if it is not what
    stands at this path: of another length, or with an entry of another form.
    """
    level, index, width = parse_tile_path(path)
    if level == "entries":
        hashes, base = leaves_of(body, host, width), 0
    else:
        if len(body) != width * HASH_BYTES:
            raise EvidenceError(f"has {len(body)} bytes, not {width * HASH_BYTES}")
        hashes = [body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)]
        base = level * HEIGHT
    said = [(Node(base, index * WIDTH + at), hash_) for at, hash_ in enumerate(hashes)]
    if width == WIDTH:
        said.append((Node(base + HEIGHT, index), _complete(hashes)))
    return said


def leaves_of(bundle: bytes, host: str, width: int) -> list[bytes]:
    """The leaf hashes of a bundle of so many entries of the log of this host.

    Raises EvidenceError if the bundle has another length, or an entry another form.
    """
    length = entry_length(host)
    if len(bundle) != width * (length + 2):
        raise EvidenceError(f"has {len(bundle)} bytes, not {width * (length + 2)}")
    if not _entries_form(host).fullmatch(bundle):
        raise EvidenceError("has an entry that is not of the form of this log's entries")
    return [leaf_hash(bundle[at + 2 : at + 2 + length]) for at in range(0, len(bundle), length + 2)]


@cache
def _entries_form(host: str) -> re.Pattern[bytes]:
    return re.compile(
        re.escape(entry_length(host).to_bytes(2, "big")).join((b"(?:", entry_form(host) + b")*"))
    )


def _complete(hashes: Sequence[bytes]) -> bytes:
    """The root over a power of two of neighbouring hashes."""
    while len(hashes) > 1:
        hashes = [node_hash(hashes[i], hashes[i + 1]) for i in range(0, len(hashes), 2)]
    return hashes[0]
