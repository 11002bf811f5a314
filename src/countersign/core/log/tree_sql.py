"""The Merkle trees of the logs in the database: entries, tiles, and the hashes of proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from sqlalchemy import Connection, select, type_coerce
from sqlalchemy.types import NullType

from countersign.base.db.statements import DriverStatement, SelectAmong, chunks
from countersign.base.db.tables import deployment_records, records
from countersign.core.log.model import SQL
from countersign_evidence.entry import leaves_of
from countersign_evidence.tiles import HEIGHT, GrowingTree, TileId, TileReader, tree_of
from countersign_evidence.tree import consistency_path, inclusion_path

_places: Final = SelectAmong(SQL["places"])
_origin: Final = DriverStatement(SQL["origin"])
_tile: Final = DriverStatement(SQL["tile"])
_roots: Final = DriverStatement(SQL["roots"])
_entries: Final = DriverStatement(SQL["entries"])
_SURPLUS: Final = "surplus_entries", "surplus_tiles", "surplus_checkpoints"
_surplus: Final = [DriverStatement(SQL[name]) for name in _SURPLUS]


def sealed(connection: Connection, record_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """For records with an entry: the id of the log, and the index in it."""
    places = (_places(connection, chunk) for chunk in chunks(record_ids))
    return {row[0]: (row[1], row[2]) for chunk in places for row in chunk}


def tile_hashes(connection: Connection, log_id: int, tile: TileId) -> bytes:
    """The first `width` hashes of a tile (c2sp.org/tlog-tiles).

    A tile that is not complete up to that width is shorter.
    """
    full = stored_tile(connection, log_id, tile.level, tile.index)
    if full is not None:
        return full[0][: tile.width * 32]
    start = tile.index << HEIGHT
    if tile.level == 0:
        [origin] = _origin(connection, log_id).fetchone()
        found = digests(connection, log_id, start, start + tile.width)
        return b"".join(leaves_of(origin, found))
    roots = _roots(connection, log_id, tile.level - 1, start, start + tile.width)
    return b"".join(bytes(root) for (root,) in roots)


def tree_at(connection: Connection, log_id: int, size: int) -> GrowingTree:
    """The tree of the first `size` entries; EvidenceError if entries or tiles are missing."""
    return tree_of(size, partial(tile_hashes, connection, log_id))


def inclusion(connection: Connection, log_id: int, index: int, size: int) -> Sequence[bytes]:
    """The hashes that lead from an entry to the root of the tree of this size (RFC 6962)."""
    return inclusion_path(index, size, _reader(connection, log_id, size))


def consistency(connection: Connection, log_id: int, old: int, new: int) -> Sequence[bytes]:
    """The hashes that prove the tree of size `old` a prefix of that of `new` (RFC 6962)."""
    return consistency_path(old, new, _reader(connection, log_id, new))


def _reader(connection: Connection, log_id: int, size: int) -> TileReader:
    return TileReader(lambda tiles: [tile_hashes(connection, log_id, t) for t in tiles], size)


def entries(
    connection: Connection, log_id: int, start: int, end: int
) -> Sequence[tuple[str, bytes]]:
    """Record id and digest of each entry from `start` to before `end`."""
    return [(row[0], bytes(row[1])) for row in _entries(connection, log_id, start, end)]


def digests(connection: Connection, log_id: int, start: int, end: int) -> Sequence[bytes]:
    """The digests of the records of the entries from `start` to before `end`."""
    return [digest for _, digest in entries(connection, log_id, start, end)]


def stored_tile(
    connection: Connection, log_id: int, level: int, index: int
) -> tuple[bytes, bytes] | None:
    """A complete stored tile: its hashes, and the root stored with them."""
    found = _tile(connection, log_id, level, index).fetchone()
    return None if found is None else (bytes(found[0]), bytes(found[1]))


def surplus(connection: Connection, log_id: int) -> Sequence[str]:
    """Entries, complete tiles and checkpoints beyond the size of the log; at most 100 of each."""
    return [one for part in _surplus for (one,) in part(connection, log_id, log_id)]


def record_bodies(connection: Connection, ids: Sequence[str]) -> Mapping[str, bytes]:
    """The exact bytes of these records, of any type; missing ones are left out."""
    found: dict[str, bytes] = {}
    for table in (records, deployment_records):
        # Whatever its type is by now: bytes that became text are found out by their digest.
        body = type_coerce(table.c.body, NullType())
        rows = connection.execute(select(table.c.id, body).where(table.c.id.in_(ids)))
        found |= {r[0]: r[1].encode() if isinstance(r[1], str) else bytes(r[1]) for r in rows}
    return found
