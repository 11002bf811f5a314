"""The public logs (c2sp.org/tlog-tiles): checkpoints, tiles, entries. Digests and nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from countersign.base.errors import InvalidRequest, NotFound, Overloaded, StorageUnavailable
from countersign.base.http.schemas import Request
from countersign.base.values import Mode
from countersign.core.gate.route import JSON, Call, Header, Reply, Route, etag_of, grouped, tagged
from countersign.core.log import tree_sql
from countersign.core.log.model import Log
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign_evidence.entry import entries_of
from countersign_evidence.errors import EvidenceError
from countersign_evidence.key_history import KeyHistory
from countersign_evidence.tiles import HEIGHT, WIDTH, TileId, entry_bundle, parse_tile_path

_LOG: Final = re.compile(r"(test|live)/([1-9][0-9]{0,8})/(checkpoint|epoch|keys|tile/.{1,200})\Z")
_TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")
_BYTES: Final[Header] = (b"content-type", b"application/octet-stream")
_CHANGES: Final[Header] = (b"cache-control", b"no-cache")
_IMMUTABLE: Final[Header] = (b"cache-control", b"public, max-age=31536000, immutable")
# Scripts of any page may read public data.
_OPEN: Final[Header] = (b"access-control-allow-origin", b"*")


class PolicyQuery(Request, frozen=True, kw_only=True):
    """The mode of the log."""

    mode: Annotated[Mode, Meta(examples=["test"])] = Mode.LIVE
    """The mode of the evidence. Left out: `live`."""


async def get_keys(room: LogRoom, _call: Call) -> Reply:
    """The verifier keys of every log, one a line (c2sp.org/signed-note)."""
    keys = await room.policy.keys()
    return Reply("".join(f"{key.vkey}\n" for key in keys).encode(), (_TEXT, _CHANGES, _OPEN))


async def get_policy(room: LogRoom, call: Call) -> Reply:
    """The policy to verify evidence of one mode (c2sp.org/tlog-policy); `live` by default."""
    query: PolicyQuery = call.query
    return Reply(await room.policy.text(query.mode), (_TEXT, _CHANGES, _OPEN))


async def get_resource(room: LogRoom, call: Call) -> Reply:
    """A checkpoint, a tile, entries, the keys or the first record, by the path in `/v1/log/`."""
    found = _LOG.match(call.parameter)
    log = found and await room.seal.log(Mode(found[1]), int(found[2]))
    if not found or log is None:
        raise NotFound
    if found[3] == "checkpoint":
        newest = await room.seal.newest(log, room.policy.quorum(log.mode))
        return tagged(call, newest, etag_of(newest), _TEXT, _CHANGES, _OPEN)
    if found[3] == "keys":
        note = await key_history(room, log)
        return tagged(call, note, etag_of(note), _TEXT, _CHANGES, _OPEN)
    if found[3] == "epoch":
        return await _beginning(room, log)
    return await _tile(room, log, found[3].removeprefix("tile/"))


async def _beginning(room: LogRoom, log: Log) -> Reply:
    """The first entry of a log that continues another one."""
    scan = room.database.scan
    if await room.seal.tiles_up_to(log):
        ((record_id, _),) = await scan(tree_sql.entries, log.id, 0, 1)
        body = (await scan(tree_sql.record_bodies, [record_id])).get(record_id, b"")
        if body and msgspec.json.decode(body)["type"] == RecordType.EPOCH:
            return Reply(body, (JSON, _IMMUTABLE, _OPEN))
    raise NotFound


async def key_history(room: LogRoom, log: Log) -> bytes:
    """The signed history of the keys of a log."""
    ranges = tuple(await room.policy.ranges(log))
    return await room.keys.sign_history(log, KeyHistory(log.origin, ranges))


async def _tile(room: LogRoom, log: Log, path: str) -> Reply:
    try:
        level, index, width = parse_tile_path(path)
    except EvidenceError:
        raise NotFound from None
    size = await room.seal.tiles_up_to(log)
    # How many nodes the level has in the tree of that size.
    nodes = size if level == "entries" else size >> (HEIGHT * level)
    start = index * WIDTH
    if start + width > nodes:
        raise NotFound
    scan = room.database.scan
    if level == "entries":
        digests = await scan(tree_sql.digests, log.id, start, start + width)
        body = entry_bundle(entries_of(log.origin, digests))
    else:
        body = await scan(tree_sql.tile_hashes, log.id, TileId(level, index, width))
    return Reply(body, (_BYTES, _IMMUTABLE, _OPEN))


_POLICY: Final = """\
log evidence.example.com/v1/log/test/1+8ba75e9d+ASdptqLHYwtWEO2zYL9ls21V0FRYpjAoo5pixlR/M183
quorum none
"""

ROUTES: Final = grouped(
    "Evidence",
    LogRoom,
    Route(
        address="GET /v1/log/policy",
        handler=get_policy,
        operation="getLogPolicy",
        summary="Get the policy to verify evidence against",
        query=PolicyQuery,
        media_type="text/plain; charset=utf-8",
        response_examples={"of a test log": _POLICY},
        refusals=(InvalidRequest, Overloaded, StorageUnavailable),
    ),
    Route(address="GET /v1/log/keys", handler=get_keys),
    Route(address="GET /v1/log/{path*}", handler=get_resource),
)
