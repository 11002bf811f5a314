"""Reading the entries and tiles of a log up to a signed checkpoint, and checking each of them.

Every bundle of entries is hashed and compared with its tile, every tile above with those below, and
the root with the signed one. It continues from the tree read so far.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from countersign_evidence.alarm import ENTRY, AlarmKind
from countersign_evidence.check_alarm import contradiction
from countersign_evidence.entry import entry_form, entry_host, entry_length
from countersign_evidence.errors import EvidenceError
from countersign_evidence.monitor.source import CONNECTIONS, Missing, Unreachable
from countersign_evidence.note import Checkpoint
from countersign_evidence.tiles import (
    ENTRY_BYTES_MAX,
    HEIGHT,
    WIDTH,
    GrowingTree,
    TileId,
    TileReader,
    leaves_of,
    tile_path,
    tiles_at,
)
from countersign_evidence.tree import HASH_BYTES, Node, inclusion_path, leaf_hash, verify_inclusion

SAID_EVERY: Final = 100 * 256
"""Number of entries after which progress is said, and saved."""
Read = Callable[[str, int], Awaitable[bytes]]
"""Returns the resource at a path below the address of the log, up to one byte more than the
limit."""
Keep = Callable[[str, bytes], None]
"""Takes a tile, or a bundle of entries, that was found to be right, with its path below `tile/`."""


@dataclass(eq=False)
class Wrong(Exception):
    """The served data differs from the signed tree."""

    kind: AlarmKind
    message: str
    resources: dict[str, bytes | None]
    index: int | None = None
    path: Sequence[bytes] = ()


class _Bundle(NamedTuple):
    """A bundle of entries with the tile of its leaves, as served."""

    number: int
    width: int
    path: str
    entries: bytes
    tile_path: str
    tile: bytes

    @property
    def served(self) -> dict[str, bytes]:
        return {self.path: self.entries, self.tile_path: self.tile}


def nothing(_path: str, _body: bytes) -> None:
    pass


class Reader:
    """Reads one log up to one checkpoint."""

    def __init__(self, read: Read, checkpoint: Checkpoint, keep: Keep = nothing) -> None:
        self._read = read
        self._checkpoint = checkpoint
        self._host = entry_host(checkpoint.origin)
        self._keep = keep

    async def grow(self, tree: GrowingTree, say: Callable[[int], None] = lambda _: None) -> None:
        """Let a tree grow up to the checkpoint; says from time to time how many entries it has.

        Raises Wrong if any served data is not in the signed tree; this tree must then not be used
        any further.
        """
        size = self._checkpoint.size
        if tree.size == size and tree.root() == self._checkpoint.root:
            return  # there is nothing new
        said = tree.size
        async for bundle in self._bundles(tree.size):
            known = tree.edge[0] if tree.edge else ()
            leaves = await self._leaves(bundle)
            if tuple(leaves[: len(known)]) != known:
                raise await self._wrong("entries were changed", bundle.served, bundle.number)
            tree.extend(leaves[len(known) :])
            self._keep(bundle.path, bundle.entries)
            self._keep(bundle.tile_path, bundle.tile)
            for tile in tree.take_tiles():
                if tile.level:  # the lowest ones were compared with their entries
                    await self._above(TileId(tile.level, tile.index, WIDTH), tile.hashes)
            if tree.size - said >= SAID_EVERY:
                said = tree.size
                say(said)
        for tile_id in tiles_at(size):
            if tile_id.level:
                await self._above(tile_id, b"".join(tree.edge[tile_id.level]))
        if tree.root() != self._checkpoint.root:
            raise await self._wrong("the entries do not lead to the signed root", {})

    async def nodes(self, nodes: Sequence[Node]) -> list[bytes]:
        """The hashes of these nodes, from as few tiles as hold them; nothing is checked."""
        wanted: list[TileId] = []

        def note(tiles: Sequence[TileId]) -> list[bytes]:
            wanted.extend(tiles)
            return [bytes(tile.width * HASH_BYTES) for tile in tiles]

        TileReader(note, self._checkpoint.size)(nodes)
        found = dict(zip(wanted, await asyncio.gather(*map(self._tile, wanted)), strict=True))
        return TileReader(lambda tiles: [found[t] for t in tiles], self._checkpoint.size)(nodes)

    async def path(self, index: int) -> list[bytes]:
        """The hashes from an entry to the root, as the tiles have them; nothing is checked."""
        needed: list[Node] = []

        def note(nodes: Sequence[Node]) -> list[bytes]:
            needed.extend(nodes)
            return [bytes(HASH_BYTES)] * len(nodes)

        inclusion_path(index, self._checkpoint.size, note)
        found = await self.nodes(needed)
        return inclusion_path(index, self._checkpoint.size, lambda _: found)

    async def leaf(self, index: int) -> bytes:
        """The leaf hash of an entry, from the entry itself."""
        return (await self._leaves(await self._bundle(index >> HEIGHT)))[index % WIDTH]

    async def again(self, numbers: Sequence[int]) -> None:
        """Read these bundles of entries once more, with all tiles between them and the root.

        Raises Wrong if served data is not in the signed tree.
        """
        for first in range(0, len(numbers), CONNECTIONS):
            await asyncio.gather(*map(self._again, numbers[first : first + CONNECTIONS]))

    async def _again(self, number: int) -> None:
        bundle, index = await self._bundle(number), number << HEIGHT
        leaves = await self._leaves(bundle)
        # From one leaf to the root, every hash of every tile on the way counts.
        path = await self.path(index)
        try:
            size, root = self._checkpoint.size, self._checkpoint.root
            verify_inclusion(index, size, leaves[0], path, root)
        except EvidenceError as error:
            message = f"tile/{bundle.tile_path} does not lead to the signed root"
            raise await self._wrong(message, bundle.served, number) from error
        self._keep(bundle.path, bundle.entries)
        self._keep(bundle.tile_path, bundle.tile)

    async def wrong_edge(self) -> Exception:
        """The error if the tiles do not give the signed root."""
        return await self._wrong("the tiles do not lead to the signed root", {})

    async def _tile(self, tile: TileId) -> bytes:
        body = await self._get(tile.level, tile.index, tile.width, tile.width * HASH_BYTES)
        if len(body) != tile.width * HASH_BYTES:
            message = f"tile/{tile.path} has {len(body)} bytes, not {tile.width * HASH_BYTES}"
            raise Wrong(AlarmKind.UNBACKED, message, {tile.path: body})
        return body

    async def _get(
        self, level: int | Literal["entries"], index: int, width: int, most: int
    ) -> bytes:
        """A tile or a bundle; a log may drop an incomplete one when the complete one is there."""
        path = tile_path(level, index, width)
        try:
            return await self._read(f"tile/{path}", most)
        except Missing:
            if width == WIDTH:
                raise _gap(path) from None
        full = (entry_length(self._host) + 2 if level == "entries" else HASH_BYTES) * WIDTH
        try:
            body = await self._read(f"tile/{tile_path(level, index)}", full)
        except Missing:
            raise _gap(path) from None
        return body[:most]

    async def _bundles(self, start: int) -> AsyncIterator[_Bundle]:
        """The bundles from this entry on, in order; a few requests run concurrently."""
        size = self._checkpoint.size
        under_way: deque[asyncio.Task[_Bundle]] = deque()
        try:
            for index in range(start >> HEIGHT, (size + WIDTH - 1) >> HEIGHT):
                under_way.append(asyncio.create_task(self._bundle(index)))
                if len(under_way) >= CONNECTIONS:
                    yield await under_way.popleft()
            while under_way:
                yield await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _bundle(self, index: int) -> _Bundle:
        width = min(WIDTH, self._checkpoint.size - (index << HEIGHT))
        most = (entry_length(self._host) + 2) * width
        entries = await self._get("entries", index, width, most)
        tile = await self._get(0, index, width, width * HASH_BYTES)
        paths = tile_path("entries", index, width), tile_path(0, index, width)
        return _Bundle(index, width, paths[0], entries, paths[1], tile)

    async def _leaves(self, bundle: _Bundle) -> list[bytes]:
        number, served = bundle.number, bundle.served
        try:
            leaves = leaves_of(bundle.entries, self._host, bundle.width)
        except EvidenceError as error:
            await self._look_at_entries(bundle)
            raise await self._wrong(f"tile/{bundle.path} {error}", served, number) from error
        if b"".join(leaves) != bundle.tile:
            raise await self._wrong("entries and tile differ", served, number)
        return leaves

    async def _look_at_entries(self, bundle: _Bundle) -> None:
        """Check whether the log itself contains a malformed entry: Wrong if so."""
        number, width = bundle.number, bundle.width
        data = await self._get("entries", number, width, (2 + ENTRY_BYTES_MAX) * width)
        form, at = re.compile(entry_form(self._host)), 0
        for leaf in range(width):
            end = at + 2 + int.from_bytes(data[at : at + 2], "big")
            entry, at = data[at + 2 : end], end
            if leaf_hash(entry) != bundle.tile[leaf * HASH_BYTES : (leaf + 1) * HASH_BYTES]:
                return
            if not form.fullmatch(entry):
                place = (number << HEIGHT) + leaf
                path = await self.path(place)
                message = f"entry {place} is not of the form of this log's entries"
                raise Wrong(AlarmKind.ENTRY, message, {ENTRY: entry}, index=place, path=path)

    async def _above(self, tile: TileId, hashes: bytes) -> None:
        body = await self._tile(tile)
        if body == hashes:
            self._keep(tile.path, body)
            return
        at = next(i for i in range(tile.width) if _hash(body, i) != _hash(hashes, i))
        child = TileId(tile.level - 1, (tile.index << HEIGHT) + at, WIDTH)
        served = {tile.path: body, child.path: await self._tile(child)}
        message = f"tile/{tile.path} contradicts the tiles below it"
        raise await self._wrong(message, served, child.index, child.level)

    async def _wrong(
        self, message: str, served: Mapping[str, bytes], index: int = 0, level: int = 0
    ) -> Exception:
        """The served data, with the tiles up to the root, as proof for others."""
        size, resources = self._checkpoint.size, dict[str, bytes | None](served)
        wanted = tiles_at(size)
        while index < (nodes := size >> HEIGHT * (level := level + 1)):
            above = index >> HEIGHT
            wanted.append(TileId(level, above, min(WIDTH, nodes - (above << HEIGHT))))
            index = above
        for tile in wanted:
            if tile.path not in resources:
                try:
                    resources[tile.path] = await self._tile(tile)
                except Wrong as wrong:
                    resources |= wrong.resources
        found = contradiction(self._checkpoint, resources)
        if found is None:
            # The log now serves different data than a moment ago: no proof for others.
            return Unreachable(f"{message}, and then did not: it is served differently each time")
        return Wrong(AlarmKind.UNBACKED, found, resources)


def _hash(tile: bytes, index: int) -> bytes:
    return tile[index * HASH_BYTES : (index + 1) * HASH_BYTES]


def _gap(path: str) -> Wrong:
    return Wrong(AlarmKind.GAP, f"tile/{path} was not found", {path: None})
